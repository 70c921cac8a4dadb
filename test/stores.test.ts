// The table of stores in docs/operations.md agrees with the schema and the code: it names every table, and every limit that it
// names exists.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ADDRESS_LIMITS, CALLER_LIMITS, LIMITS, PUBLIC_LIMITS } from '../server/accounts/tiers.ts'
import { variables } from '../server/config.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const tables = [...read('sql/schema.sql').matchAll(/^create (?:unlogged )?table (\w+) /gm)].map(([, name = '']) => name)
const [, table = ''] = read('docs/operations.md').match(/<!-- stores -->\n([\s\S]*?)<!-- \/stores -->/) ?? []
const rows = table
  .trim()
  .split('\n')
  .slice(2)
  .map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )

t.test('every table is a row, and every row a table', async (t) => {
  t.same(
    rows.map(([name]) => name?.replaceAll('`', '')),
    tables.sort(),
  )
})

t.test('every limit that is named exists', async (t) => {
  const limits = new Set(
    [LIMITS.free, ADDRESS_LIMITS, CALLER_LIMITS, PUBLIC_LIMITS, variables].flatMap((one) => Object.keys(one)),
  )
  const code = globSync('{server,workers}/**/*.ts', { cwd: ROOT }).map(read).join('\n')
  const isConstant = (name: string) =>
    /^[A-Z_]+$/.test(name) && new RegExp(`^(?:export )?const ${name}\\b`, 'm').test(code)
  const named = rows.flatMap((row) =>
    row.slice(2).flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)),
  )
  t.ok(named.length > 30)
  t.same(
    named.filter((name) => !limits.has(name) && !tables.includes(name) && !isConstant(name)),
    [],
  )
})

/** A named limit or table, or one of these. */
const BOUND =
  /`\w+`|^one (row|active one|open one) an? |^one row a day$|^(the tries of one alert|turns at an origin|what all workers run at a time|those of its watchdogs and citation watches)$/

t.test('what anyone or an account can fill has a fair bound and one in all', async (t) => {
  const open = rows.filter(([, filledBy = '']) => /^(anyone|accounts|buyers)/.test(filledBy))
  t.ok(open.length > 20)
  for (const [name = '', filledBy = '', fair = '', all = ''] of open) {
    for (const bound of [fair, all]) t.match(bound, BOUND, name)
    // A /48 has 65,536 /64s.
    if (/^anyone, (by registration|by quotes|over)/.test(filledBy)) t.match(fair, '/48', name)
  }
  // A bound that refers to another table ends at one with a bound of its own.
  const boundOf = new Map(rows.map(([name = '', , , all = '']) => [name.replaceAll('`', ''), all]))
  for (const [name = '', , , all = ''] of open) {
    let bound = all
    for (let hops = 0; hops < 5; hops++) {
      const [, next] = bound.match(/^as `(\w+)`/) ?? []
      if (!next) break
      bound = boundOf.get(next) ?? ''
    }
    t.notMatch(bound, /^(as |-$|$)/, name)
  }
})
