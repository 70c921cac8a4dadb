// How the work of each reader of page bytes grows with the worst pages, from 1 kB to the limit. Processor time of this thread, so
// that other work on the machine counts little; and the steps that the budgets charge, which no machine changes.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { LIMITS } from '../../server/interface/limits.ts'
import { matchingSteps, openBudgets, readingSteps } from '../../workers/text/budget.ts'
import { Lines } from '../../workers/text/lines.ts'
import { extract } from '../../workers/text/text-thread.ts'
import { addVisibleText } from '../../workers/text/visible-text.ts'
import { growthFault } from '../growth.ts'
import { hostilePages } from './hostile-pages.ts'

const encoder = new TextEncoder()
const contentType = 'text/html; charset=utf-8'
const read = (html: string) => {
  const body = encoder.encode(html)
  return extract({ body: body.slice(0, LIMITS.decodedBytes), contentEncoding: 'identity', contentType })
}

t.test('the time of every hostile page grows as the page does', async (t) => {
  const faults: string[] = []
  for (const [name, build] of Object.entries(hostilePages)) {
    const fault = await growthFault((size) => read(build(size)), [1024, 16_384, 131_072])
    if (fault) faults.push(`${name}: ${fault}`)
  }
  t.same(faults, [])
})

/** Of the largest page: several times what it takes on one slow core. */
const MOST_MS = 6000
/** Of a process that reads one page, with the heap that a thread has. */
const MOST_MB = 320

/** Those that cost most at their limit. */
const HEAVY = [
  'comments in a string in a condition',
  'words in a long attribute',
  'words and carriage returns',
  'carriage returns in pre',
  'many rules for one class',
  'classes, each another, of many rules',
  'some attributes copied by formatting',
  'a flood of attributes on many elements',
  'style attributes, each another',
]

t.test('at the limit each ends within a bound of time and memory', async (t) => {
  const program = `
    import { hostilePages } from ${JSON.stringify(new URL('./hostile-pages.ts', import.meta.url))}
    import { extract } from ${JSON.stringify(new URL('../../workers/text/text-thread.ts', import.meta.url))}
    const body = new TextEncoder().encode(hostilePages[process.argv[1]](${LIMITS.decodedBytes}))
    const { ok } = extract({ body, contentEncoding: 'identity', contentType: '${contentType}' })
    const { user, system } = process.cpuUsage()
    console.log(JSON.stringify([(user + system) / 1000, process.resourceUsage().maxRSS / 1024, ok]))`
  for (const name of HEAVY) {
    const flags = ['--max-old-space-size=160', '--max-semi-space-size=16', '--input-type=module', '-e', program, name]
    const { stdout } = await promisify(execFile)(process.execPath, flags)
    const [ms, megabytes] = JSON.parse(stdout)
    t.ok(ms < MOST_MS, `${name}: ${Math.round(ms)} ms`)
    t.ok(megabytes < MOST_MB, `${name}: ${Math.round(megabytes)} MB`)
  }
})

t.test('style draws from its budgets: the steps of reading grow as the page does', async (t) => {
  const steps = (html: string) => {
    const budgets = openBudgets()
    try {
      addVisibleText(html, new Lines(), { length: 0 }, { length: 0 }, budgets)
    } catch {
      // Refused, which the other tests look at.
    }
    return [readingSteps - budgets.reading.left, matchingSteps - budgets.matching.left] as const
  }
  const tooMuch: string[] = []
  for (const [name, build] of Object.entries(hostilePages)) {
    const [small, large] = [2048, 16_384].map((size) => steps(build(size)))
    // Nested rules are the product of rules and parents, and matching that of rules and elements: the budgets alone bound them.
    if (large![0] > 20_000 && large![0] < readingSteps && large![0] > 8 ** 1.15 * small![0])
      tooMuch.push(`${name}: ${small![0]} and ${large![0]}`)
  }
  t.same(tooMuch, [])
})

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
