// The work of everything that reads what strangers send grows no faster than its input, from 1 kB to its limit. A new reader is a
// row of readers.ts.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { MAX_REPORT } from '../client/report/complexity.ts'
import { readMarkdown } from '../client/report/markdown.ts'
import { BARE_ENV } from './children.ts'
import { growthOf, MOST_EXPONENT } from './growth.ts'
import { LONG } from './long.ts'
import { readers } from './readers.ts'

const PROGRAM = join(import.meta.dirname, 'reader-growth.ts')

for (const [name, { inputs }] of Object.entries(readers))
  t.test(name, async (t) => {
    const args = [PROGRAM, name, ...(LONG ? ['whole'] : [])]
    const { stdout } = await promisify(execFile)(process.execPath, args, { env: BARE_ENV })
    // Infinity is null in JSON.
    const exponents: [number | null, string][] = JSON.parse(stdout)
    t.equal(exponents.length, Object.keys(inputs).length)
    t.comment(`the steepest of ${exponents.length}: ${exponents[0]?.join(', ')}`)
    t.same(
      exponents.filter(([exponent]) => exponent === null || exponent > MOST_EXPONENT),
      [],
    )
  })

t.test('Markdown of more parts than a small machine can hold is refused before it is parsed', async (t) => {
  for (const unit of ['a ', '\\', '- a\n', 'a\n\n', '| a '])
    await t.rejects(
      readMarkdown(unit.repeat(MAX_REPORT / 4)),
      { message: /^Line \d+ comes after too many words/ },
      unit,
    )
  const prose = 'The harbour was opened by the county engineer, two years later than planned. It has three piers.\n\n'
  await readMarkdown(prose.repeat(6000))
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
