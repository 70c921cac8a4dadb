// The work of everything that reads what strangers send grows no faster than its input, from 1 kB to its limit. A new reader is a
// row of readers.ts.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { BARE_ENV } from './children.ts'
import { MOST_EXPONENT } from './growth.ts'
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
