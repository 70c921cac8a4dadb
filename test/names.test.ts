// Nothing that a person reads names what does not exist. Names are found by their shape in documents, and in the sources of pages,
// help, messages and tools; what exists is read from the tables that the programs themselves use.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Command, OptionTable } from '../client/commands/command.ts'
import { countersign } from '../client/commands/main.ts'
import { catalog } from '../server/catalog.ts'
import { readConfig, variables } from '../server/config.ts'
import { buildDocument } from '../server/http/openapi.ts'
import { controlTools } from '../server/mcp/control-tools.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const PATTERNS = ['*.md', 'docs/**/*.md', '{client,server,workers}/**/*.{ts,md}', '*.yml', 'compose.yaml', 'app.json']
const texts = new Map(
  globSync(PATTERNS, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] }).map((path) => [path, read(path)]),
)

/** What `find` reports about any text, each with the name of its file. */
const inTexts = (find: (text: string) => string[]) =>
  [...texts].flatMap(([path, text]) => find(text).map((found) => `${path}: ${found}`))

const document = buildDocument({ config: readConfig({}) }, catalog) as unknown as { paths: Record<string, object> }

/** What the service answers without an operation of the catalogue. */
const ROUTES = [...read('server/http/billing.ts').matchAll(/raw\.post\b.*?'(\/[^']+)'/g)].map(([, path = '']) => path)
const HEADERS = `${read('server/http/cors.ts')}${read('server/app.ts')}${JSON.stringify(document)}`.toLowerCase()
/** Names with these shapes that belong to other programs: a collector of traces, compose, Node, and an argument of every tool. */
const OF_OTHERS = new Set([
  ...['/v1/traces', 'service_healthy', 'service_completed_successfully', 'service_key', 'NODE_EXTRA_CA_CERTS'],
  ...[...read('compose.yaml').matchAll(/\$\{([A-Z_]+)/g)].map(([, name = '']) => name),
])

/** Paths of operations that no operation has. A part in braces, or made by a program, stands for any. */
function unknownEndpoints(text: string): string[] {
  const known = [...Object.keys(document.paths), ...ROUTES].map((path) => path.split('/'))
  const fits = (path: string) => {
    const named = path.split('/')
    return known.some(
      (parts) =>
        (path.endsWith('/') ? parts.length >= named.length : parts.length === named.length) &&
        named.every((part, i) => part === '' || part === parts[i] || /^\{|\$/.test(part) || parts[i]?.startsWith('{')),
    )
  }
  return [...text.matchAll(/(?<![\w.*-])\/(?:v1|api\/agent)\/(?:[\w.{}$-]|\/(?!\/))*/g)]
    .map(([path]) => path.replace(/\.+$/, ''))
    .filter((path) => !OF_OTHERS.has(path) && !fits(path))
}

function unknownTools(text: string): string[] {
  const tools = new Set([
    'service_verify_source',
    'service_verify_claims',
    ...controlTools(catalog).map(({ descriptor }) => descriptor.name),
  ])
  return [...text.matchAll(/(?<![\w$-])service_[a-z]+(?:_[a-z]+)*(?![\w*-])/g)]
    .map(([name]) => name)
    .filter((name) => !OF_OTHERS.has(name) && !tools.has(name))
}

/** Options of a command of the client that it does not have, as `verify --keyz`. */
function unknownOptions(text: string): string[] {
  return [...text.matchAll(/(?<![\w/@.-])countersign ((?:[a-z]+ )+)((?:(?!countersign )[^\n`|;&])*)/g)].flatMap(
    ([, words = '', rest = '']) => {
      let command: Command | undefined = countersign
      const names: string[] = []
      for (const word of words.trim().split(' ')) {
        if (!command || !('commands' in command)) break
        command = Object.hasOwn(command.commands, word) ? command.commands[word] : undefined
        names.push(word)
      }
      if (!command || 'commands' in command) return []
      const options: OptionTable = command.options
      return [...rest.matchAll(/(?<![\w-])--([a-z][a-z-]*)/g)]
        .map(([, option = '']) => option)
        .filter((option) => !Object.hasOwn(options, option) && !/^(?:help|json)$/.test(option))
        .map((option) => `${names.join(' ')} --${option}`)
    },
  )
}

function unknownHeaders(text: string): string[] {
  return [...text.matchAll(/\b(?:X-Service|PAYMENT)-[A-Z][A-Za-z-]*\b/g)]
    .map(([name]) => name)
    .filter((name) => !HEADERS.includes(name.toLowerCase()))
}

function unknownScripts(text: string): string[] {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  return [...text.matchAll(/\bnpm run (?:--silent |-s )?([a-z]+(?::[a-z]+)*)/g)]
    .map(([, script = '']) => script)
    .filter((script) => !Object.hasOwn(scripts, script))
}

/** Settings that a text tells its reader to set, and that no program reads. */
function unknownSettings(text: string): string[] {
  const client = read('client/commands/environment.ts')
  return [...text.matchAll(/(?:\b[Ss]et|\bin|\bwithout|\bname[sd]?) `?([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)\b/g)]
    .map(([, name = '']) => name)
    .filter((name) => !Object.hasOwn(variables, name) && !client.includes(name) && !OF_OTHERS.has(name))
}

const RULES: Record<string, [find: (text: string) => string[], example: string, found: string[]]> = {
  endpoints: [
    unknownEndpoints,
    'GET /v1/receipt/{serial}, /v1/watchdog/nightly, /v1/watchdogz/nightly',
    ['/v1/watchdogz/nightly'],
  ],
  tools: [unknownTools, '`service_usage_get` and `service_usage_got`', ['service_usage_got']],
  'options of commands': [unknownOptions, 'countersign verify a.json --keys k --keyz', ['verify --keyz']],
  headers: [unknownHeaders, 'PAYMENT-REQUIRED, X-Service-Recovery-Token, X-Service-Token', ['X-Service-Token']],
  scripts: [unknownScripts, '`npm run test:only`, `npm run tests`', ['tests']],
  settings: [unknownSettings, 'set `DATABASE_URL` or set DATABASE_URI', ['DATABASE_URI']],
}

for (const [name, [find, example, found]] of Object.entries(RULES))
  t.test(`${name} that a text names exist`, async (t) => {
    t.same(find(example), found, 'it is found')
    t.same(inTexts(find), [])
  })

t.test('the texts are those that people read', async (t) => {
  t.ok(texts.size > 400, `${texts.size} texts`)
  for (const path of ['README.md', 'docs/guide/buying.md', 'server/errors.ts', 'server/pages/front-page.ts'])
    t.ok(texts.has(path), path)
})
