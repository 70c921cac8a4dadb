// `node bench/text.ts`: how fast bytes become text, and what the worst inputs of each reader take. `--help` lists the options.
import { spawnSync } from 'node:child_process'
import { readers } from '../test/readers.ts'
import { readCall, refuse } from './program.ts'

const NAME = 'node bench/text.ts'
const { options: values } = await readCall(NAME, {
  summary: 'measure how fast bytes become text, beside parsers and the usual recipe with cheerio',
  operands: [],
  usage: '[--quick] [--data FILE]... [--hostile [--reader NAME]]',
  about: 'parse5 alone decodes and builds a tree, and makes no text of it.',
  examples: ['node bench/text.ts --quick', 'node bench/text.ts --data pages.jsonl.gz', 'node bench/text.ts --hostile'],
  exitStatus: '0 good, 2 wrong usage.',
  options: {
    quick: { type: 'boolean', default: false, help: 'one short round instead of three' },
    data: {
      type: 'string',
      value: 'FILE',
      multiple: true,
      help: 'its pages too: a .jsonl.gz file with rows {html}; repeatable',
    },
    hostile: {
      type: 'boolean',
      default: false,
      help:
        'the inputs of test/readers.ts instead, each in a process of its own, from 1 kB to the limit of its reader:\n' +
        'the exponent of the time, and at the limit the time and the most memory that the process held',
    },
    reader: { type: 'string', value: 'NAME', help: 'of this reader alone, such as "pages of HTML"' },
    input: { type: 'string', value: 'NAME', help: 'this input alone, in this process' },
  },
})
const { reader, input } = values
if (reader && !Object.hasOwn(readers, reader))
  refuse(NAME, `No reader is called ${reader}: there are ${Object.keys(readers).join(', ')}.`)
if (input && !(reader && Object.hasOwn(readers[reader]!.inputs, input)))
  refuse(NAME, `No input of ${reader ?? 'a reader'} is called ${input}.`)
if (values.hostile && !input)
  for (const name of reader ? [reader] : Object.keys(readers))
    for (const one of Object.keys(readers[name]!.inputs))
      spawnSync(process.execPath, [import.meta.filename, '--reader', name, '--input', one], {
        stdio: ['ignore', 'inherit', 'inherit'],
      })
else {
  // Loaded when it runs, so that the help comes at once.
  const { benchText, runHostile } = await import('./text-rates.ts')
  if (reader && input) await runHostile(reader, input)
  else await benchText(values)
}
