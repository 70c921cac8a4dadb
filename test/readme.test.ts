// README says what is: its file map is the tree, docs/configuration.md the schema, its commands and paths exist.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CALLER_LIMITS, LIMITS, TIERS, type TierLimits } from '../server/accounts/tiers.ts'
import { readConfig } from '../server/config.ts'
import { renderConfigurationPage } from '../server/configuration-page.ts'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

function section(name: string): string {
  const found = readme.match(new RegExp(`<!-- ${name} -->\n([\\s\\S]*?)<!-- /${name} -->`))
  return found?.[1] ?? ''
}

/** `folder/` lines open a folder by their indent; `file.ts  words` lines name a file in it. */
function mapped(): Map<string, string> {
  const files = new Map<string, string>()
  const folders: string[] = []
  for (const [, indent = '', name = '', about = ''] of section('map').matchAll(/^( *)([\w.-]+\/?)(?: +(\S.*))?$/gm)) {
    folders.length = indent.length / 2
    if (name.endsWith('/')) folders.push(name)
    else files.set(join(...folders, name), about)
  }
  return files
}

t.test('the map lists every source file, says what it is, and lists no other', async (t) => {
  const listed = mapped()
  const tree = globSync(['server/**/*.ts', 'workers/**/*.ts', 'client/*.ts', 'bench/*.ts'], { cwd: root })
  t.same([...listed.keys()].sort(), tree.sort())
  t.same(
    [...listed].filter(([, about]) => about.split(' ').length < 2).map(([file]) => file),
    [],
  )
})

t.test('docs/configuration.md is what `cli config --markdown` prints', async (t) => {
  t.equal(readFileSync(join(root, 'docs/configuration.md'), 'utf8'), renderConfigurationPage())
})

t.test('the tables of limits are those in force', async (t) => {
  const tiers = [...section('limits').matchAll(/^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|$/gm)]
  t.same(
    tiers.map(([, name, ...numbers]) => [name, ...numbers.map(Number)]),
    Object.keys(LIMITS.free).map((name) => [name, ...TIERS.map((tier) => LIMITS[tier][name as keyof TierLimits])]),
  )
  const callers = [...section('caller limits').matchAll(/^\| `(\w+)` \| (\d+) \|/gm)]
  t.same(
    callers.map(([, name, number]) => [name, Number(number)]),
    Object.entries(CALLER_LIMITS),
  )
})

t.test('every script and path that is named exists', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const named = [...readme.matchAll(/npm (?:run (?:--silent )?)?(start|test|\w+(?::\w+)*)/g)].map(
    ([, name = '']) => name,
  )
  t.same(
    [...new Set(named)].filter((name) => name !== 'install' && name !== '11' && !scripts[name]),
    [],
  )
  const paths = [...readme.matchAll(/`((?:server|workers|client|test|sql|bench)\/[\w./-]+)`/g)].map(
    ([, path = '']) => path,
  )
  t.same(
    [...new Set(paths)].filter((path) => !existsSync(join(root, path))),
    [],
  )
})

t.test('the retention and limits README states are the defaults', async (t) => {
  t.match(readConfig({}), { port: 8402, dataDir: '.data', resultRetentionSeconds: 86_400, paymentMode: 'offline' })
})
