// What a page gets that spends its budget, and what the costliest pages of the largest size take. How work grows is in
// test/readers.test.ts.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { LIMITS } from '../../server/interface/limits.ts'
import { extract } from '../../workers/text/page/text-thread.ts'
import { hostilePages } from './hostile-pages.ts'

const encoder = new TextEncoder()
const read = (html: string) =>
  extract({ body: encoder.encode(html), contentEncoding: 'identity', contentType: 'text/html; charset=utf-8' })

t.test('a page that spends its budget is flagged, and text that rules would hide is kept', async (t) => {
  const flagged = (html: string) => {
    const outcome = read(html)
    return outcome.ok && outcome.extraction.riskFlags.includes('style_passed_over')
  }
  t.ok(flagged(hostilePages['classes, each another, of many rules']!(262_144)), 'matching')
  t.ok(flagged(hostilePages['nested rules that declare nothing']!(262_144)), 'reading')
  t.ok(flagged(`<style>${'i{color:red} '.repeat(90_000)}p{display:none}</style><p>x`), 'characters of style')
  t.notOk(flagged('<style>p{display:none}</style><p>x</p>y'))
})

/** Processor time of the largest page: several times what it takes on one slow core. */
const MOST_MS = 20_000
/** Of a process that reads one page, with the heap that a thread has. */
const MOST_MB = 320

/** Those that need most memory at their limit. */
const HEAVY = [
  'words and carriage returns',
  'many rules for one class',
  'some attributes copied by formatting',
  'a flood of attributes on many elements',
  'style attributes, each another',
  'non-breaking spaces and line feeds',
  'one huge tag name of non-breaking spaces',
]

t.test('at the limit each ends within a bound of processor time and memory', async (t) => {
  const program = `
    import { hostilePages } from ${JSON.stringify(new URL('./hostile-pages.ts', import.meta.url))}
    import { readPeak } from ${JSON.stringify(new URL('../peak-memory.ts', import.meta.url))}
    import { extract } from ${JSON.stringify(new URL('../../workers/text/page/text-thread.ts', import.meta.url))}
    const body = new TextEncoder().encode(hostilePages[process.argv[1]](${LIMITS.decodedBytes})).slice(0, ${LIMITS.decodedBytes})
    const { ok } = extract({ body, contentEncoding: 'identity', contentType: 'text/html; charset=utf-8' })
    const { user, system } = process.cpuUsage()
    console.log(JSON.stringify([(user + system) / 1000, readPeak(), ok]))`
  for (const name of HEAVY) {
    const flags = ['--max-old-space-size=160', '--max-semi-space-size=16', '--input-type=module', '-e', program, name]
    const { stdout } = await promisify(execFile)(process.execPath, flags)
    const [ms, megabytes] = JSON.parse(stdout)
    t.ok(ms < MOST_MS, `${name}: ${Math.round(ms)} ms`)
    t.ok(megabytes < MOST_MB, `${name}: ${Math.round(megabytes)} MB`)
  }
})
