// The work of everything that reads what strangers send grows no faster than its input, from 1 kB to its limit, and at the limit it stays
// within a bound of time and memory. A new reader is a row of readers.ts.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { MAX_REPORT } from '../client/report/complexity.ts'
import { readHtml } from '../client/report/html.ts'
import { readMarkdown } from '../client/report/markdown.ts'
import { BARE_ENV } from './children.ts'
import { growthOf, MOST_EXPONENT } from './growth.ts'
import { LONG } from './long.ts'
import type { Taken } from './reader-memory.ts'
import { readers } from './readers.ts'

const PROGRAM = join(import.meta.dirname, 'reader-growth.ts')
const MEMORY = join(import.meta.dirname, 'reader-memory.ts')

/**
 * A thread that is out of memory gets 16 MB more from Node, in which it ends. An array that needs more than those at once ends the whole process.
 * This is how long an array can be for which V8 has allocated no more: its place grows by a half each time, and an element takes eight bytes.
 */
const MOST_ELEMENTS = 1_956_331

/** The exponents of the inputs of a reader. Infinity is null in JSON. */
type Exponents = [exponent: number | null, input: string][]

/** A process loads the code of all readers, which is most of the work for one with few inputs: those share a process. */
const FEW_INPUTS = 90
const [few, many] = [true, false].map((isFew) =>
  Object.keys(readers).filter((name) => Object.keys(readers[name]!.inputs).length <= FEW_INPUTS === isFew),
) as [string[], string[]]
const counts = new Map<string, Promise<string[]>>()

/** In the long run each reader has its own process: the largest inputs take much memory. */
async function exponentsOf(name: string): Promise<Exponents> {
  const names = LONG || many.includes(name) ? [name] : few
  const key = names.join()
  const counted = counts.get(key) ?? count(names)
  counts.set(key, counted)
  const line = (await counted)[names.indexOf(name)] ?? ''
  if (!line.startsWith('[')) throw new Error(`not counted: ${line}`)
  return JSON.parse(line)
}

/** A line for each reader, up to the one that fails, and then why. */
async function count(names: readonly string[]): Promise<string[]> {
  const args = [PROGRAM, ...names, ...(LONG ? ['--whole'] : [])]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: BARE_ENV }).catch((error) => ({
    stdout: `${error.stdout}${error.message}`,
  }))
  return stdout.split('\n')
}

for (const [name, { inputs }] of Object.entries(readers))
  t.test(name, async (t) => {
    const exponents = await exponentsOf(name)
    t.equal(exponents.length, Object.keys(inputs).length)
    t.comment(`the steepest of ${exponents.length}: ${exponents[0]?.join(', ')}`)
    t.same(
      exponents.filter(([exponent]) => exponent === null || exponent > MOST_EXPONENT),
      [],
    )
  })

for (const [name, { inputs, limit, most, heaviest = [] }] of Object.entries(readers)) {
  const chosen = LONG ? Object.keys(inputs) : heaviest
  if (chosen.length === 0) continue
  t.test(`${name}: memory and time at the limit`, async (t) => {
    const args = [MEMORY, name, most.heap, String(limit), ...(LONG ? [] : chosen)]
    const { stdout, failed } = await promisify(execFile)(process.execPath, args, { env: BARE_ENV })
      .then(({ stdout }) => ({ stdout, failed: null }))
      .catch((error) => ({ stdout: String(error.stdout), failed: error }))
    const lines: Taken[] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    t.notOk(failed, `${lines.at(-1)?.input}: ${failed?.message}`)
    const taken = lines.flatMap(({ ms, ...more }) => (ms === undefined ? [] : [{ ms, ...more }]))
    t.same(taken.map(({ input }) => input).sort(), chosen.toSorted())
    const [slowest] = taken.toSorted((a, b) => b.ms - a.ms)
    t.ok(slowest!.ms <= most.ms, `the slowest: ${slowest!.input}, ${slowest!.ms} ms of ${most.ms}`)
    const { longest = 0, input } = taken.toSorted((a, b) => (b.longest ?? 0) - (a.longest ?? 0))[0]!
    t.ok(longest <= MOST_ELEMENTS, `the longest array: ${input}, ${longest} of ${MOST_ELEMENTS} elements`)
    const megabytes = taken.at(-1)?.megabytes ?? Number.POSITIVE_INFINITY
    // The peak of the process never falls, so the first line that has it names the input.
    const last = taken.find((one) => one.megabytes === megabytes)
    t.ok(megabytes <= most.megabytes, `the heaviest: ${last?.input}, ${megabytes} MB of ${most.megabytes}`)
  })
}

t.test('Markdown of more parts than a small machine can hold is refused before it is parsed', async (t) => {
  for (const unit of ['a ', 'e\u0301', '\\', '- a\n', 'a\n\n', '| a '])
    await t.rejects(
      readMarkdown(unit.repeat(MAX_REPORT / 4)),
      { message: /^Line \d+ comes after too many words/ },
      unit,
    )
  const prose = 'The harbour was opened by the county engineer, two years later than planned. It has three piers.\n\n'
  await readMarkdown(prose.repeat(6000))
})

t.test('HTML of more parts than a small machine can hold is refused, and what people write is not', async (t) => {
  for (const unit of ['a<i></i>', '<p>x', '<p a=b>', '<!---->', '&amp;', '<br><p>', 'a  '])
    await t.rejects(
      readHtml(unit.repeat(MAX_REPORT / unit.length)),
      { message: 'The report has more than 300,000 elements, attributes, texts and references.' },
      unit,
    )
  const note =
    '<p class="note">The <em>harbour</em> was opened by the <a href="https://s.test/a">county</a>,\n  later.</p>\n'
  await readHtml(note.repeat(20_000))
  await readHtml(`<table>${'<tr><td>1<td>22<td>333'.repeat(40_000)}</table>`)
  await readHtml('The harbour was opened by the county engineer.\n'.repeat(80_000))
})

t.test('growth is seen where it begins late, and nothing else is', async (t) => {
  const invented = (cost: (size: number) => number, isApart = false) => {
    let size = 0
    const count = async (work: () => unknown) => {
      await work()
      return cost(size)
    }
    const read = (given: number) => {
      size = given
    }
    return growthOf({ count, [Symbol.dispose]: () => {} }, read, 4_194_304, { isApart })
  }
  t.ok((await invented((n) => n ** 2 / 10_000)) > MOST_EXPONENT, 'a square with a small factor')
  t.ok((await invented((n) => 50_000 + n ** 2 / 10_000)) > MOST_EXPONENT, 'a square after work of any size')
  t.ok((await invented((n) => n ** 2 / 4000)) > MOST_EXPONENT, 'a square that begins where work in proportion may be')
  t.ok((await invented((n) => 50_000 + n)) <= MOST_EXPONENT, 'work in proportion')
  t.ok((await invented((n) => Math.min(n ** 2, 30_000_000))) <= MOST_EXPONENT, 'a budget')
  const behind = (own: (n: number) => number) => invented((n) => 3_000_000 + own(n), true)
  t.ok((await behind((n) => n ** 2 / 10_000)) > MOST_EXPONENT, 'a square behind much work of any size, counted apart')
  t.ok((await behind((n) => n)) <= MOST_EXPONENT, 'work in proportion behind it')
  t.equal(await invented((n) => n ** 2 * 100), Number.POSITIVE_INFINITY, 'more than the most')
})
