// `node bench/text.ts`: how fast bytes become text, and what a hostile page takes. `--help` lists the options.
import { spawnSync } from 'node:child_process'
import { hostilePages } from '../test/text/hostile-pages.ts'
import { readCall, refuse } from './program.ts'

const NAME = 'node bench/text.ts'
const { options: values } = await readCall(NAME, {
  summary: 'measure how fast bytes become text, beside parsers and the usual recipe with cheerio',
  operands: [],
  usage: '[--quick] [--data FILE]... [--hostile]',
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
        'the pages of test/text/hostile-pages.ts at 8 MiB instead, each in a process of its own: how it ended,\n' +
        'after how long, and the most memory that the process held',
    },
    page: { type: 'string', value: 'NAME', help: 'this hostile page alone, in this process' },
  },
})
if (values.page && !Object.hasOwn(hostilePages, values.page))
  refuse(NAME, `No page is called ${values.page}: there are ${Object.keys(hostilePages).join(', ')}.`)
if (values.hostile && !values.page)
  for (const page of Object.keys(hostilePages))
    spawnSync(process.execPath, [import.meta.filename, '--page', page], { stdio: ['ignore', 'inherit', 'inherit'] })
else {
  // Loaded when it runs, so that the help comes at once.
  const { benchText, runHostile } = await import('./text-rates.ts')
  if (values.page) await runHostile(values.page)
  else await benchText(values)
}
