// The programs that measure and try the service explain themselves, and say in one line why a call is wrong, before they open anything.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { BARE_ENV } from './children.ts'

const ROOT = join(import.meta.dirname, '..')

/** What is typed before the arguments, and what the help must name. */
const PROGRAMS: Record<string, { file: string; names: RegExp[] }> = {
  'npm run bench --': {
    file: 'bench/main.ts',
    names: [/--quick/, /--profile DIR/, /^ {2}retrieval {2,}\w/m, /DATABASE_URL/, /pictures FOLDER/, /--only TEXT/],
  },
  'npm run chaos --': {
    file: 'bench/chaos.ts',
    names: [/--seed N/, /--minutes N/, /^ {2}house {2,}\w/m],
  },
  'npm run eval --': {
    file: 'bench/eval.ts',
    names: [/--data/, /--service/, /--part PART/, /--save/, /ANTHROPIC_API_KEY/],
  },
  'node bench/text.ts': { file: 'bench/text.ts', names: [/--quick/, /--data FILE/, /--hostile/] },
  'node bench/fidelity.ts': { file: 'bench/fidelity.ts', names: [/--data PATH/, /--half HALF/, /--diff/] },
  'npm run image --': { file: 'ops/image-steps.ts', names: [/--by-steps/] },
  'node bench/slow-origins.ts': { file: 'bench/slow-origins.ts', names: [/--quick/, /DATABASE_URL/] },
}

/** Calls that are wrong in another way than by an option that does not exist, and what is said. */
const WRONG: Record<string, [string[], RegExp][]> = {
  'npm run bench --': [
    [['recepts'], /No part is called recepts: there are admission, /],
    [['pictures'], /pictures needs one folder\./],
  ],
  'npm run chaos --': [[['house', '--minutes', 'x'], /--minutes x is no number above 0\./]],
  'npm run eval --': [
    [['--assessor', 'me'], /--assessor me is none of literal, local, semantic, oracle\./],
    [['--service'], /--service goes with --assessor local alone/],
  ],
  'node bench/text.ts': [[['--hostile', '--reader', 'x'], /No reader is called x: there are /]],
  'node bench/fidelity.ts': [
    [[], /Without --data there are no pages\./],
    [['--half', 'x'], /--half x is none of look, report\./],
  ],
  'npm run image --': [[['more'], /"more" is one word too many\. See /]],
}

async function run(file: string, ...args: string[]) {
  const child = spawn(process.execPath, [file, ...args], {
    cwd: ROOT,
    env: BARE_ENV,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code, stdout, stderr }
}

for (const [name, { file, names }] of Object.entries(PROGRAMS))
  t.test(name, async (t) => {
    const { code, stdout, stderr } = await run(file, '--help')
    t.same({ code, stderr }, { code: 0, stderr: '' })
    for (const about of [...names, new RegExp(`^${name}`), /Exit status: 0 .*2 wrong usage/]) t.match(stdout, about)
    for (const [args, why] of [[['--bogus'], /Unknown option '--bogus'\./] as const, ...(WRONG[name] ?? [])]) {
      const wrong = await run(file, ...args)
      t.equal(wrong.code, 2)
      t.equal(wrong.stdout, '')
      t.match(wrong.stderr, why)
      t.match(wrong.stderr, new RegExp(`^[^\\n]+ See ${name} --help\\.\\n$`), 'one line')
    }
  })

t.test('the scripts of package.json start them', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const [name, { file }] of Object.entries(PROGRAMS)) {
    const [, script] = name.match(/^npm run (\w+)/) ?? []
    if (script) t.equal(scripts[script], `node ${file}`)
  }
})
