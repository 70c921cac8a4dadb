// Documents are true: commands, paths and links in them exist, tables are those of the code, and every room is named.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'
import { renderAccuracy } from '../bench/eval/accuracy-document.ts'
import { CALLER_LIMITS, LIMITS, PUBLIC_LIMITS, TIERS, type TierLimits } from '../server/accounts/tiers.ts'
import { ALERT_TYPES } from '../server/alerts/format.ts'
import { readConfig, variables } from '../server/config.ts'
import { renderConfigurationPage } from '../server/configuration-page.ts'
import { findAccuracy } from '../server/pages/accuracy/accuracy.ts'
import { findDocuments } from '../server/pages/guide/documents.ts'
import { explainedFlags } from '../server/verification/offer/risk-flag-advice.ts'
import { moves } from '../server/verification/request.ts'
import { MOVES } from '../server/watchdogs/watchdog.ts'
import { RIGHT_OF_100 } from '../workers/assessment/local/explanation.ts'
import { LITERAL_PROCEDURE, semanticProcedure } from '../workers/assessment/procedure.ts'
import { gatedProcedure } from '../workers/retrieval/procedure.ts'
import { TEXT_PROCEDURE } from '../workers/text/procedure.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const patterns = ['*.md', 'docs/**/*.md', 'client/{,sdk/}*.md', 'test/vectors/*.md']
const documents = new Map(globSync(patterns, { cwd: root }).map((path) => [path, read(path)]))

/** What `find` reports about any document, each with the document's name. */
function inDocuments(find: (text: string, path: string) => Iterable<string>): string[] {
  return [...documents].flatMap(([path, text]) => [...find(text, path)].map((found) => `${path}: ${found}`))
}

/** The rows between `<!-- name -->` and `<!-- /name -->`. */
function tableOf(path: string, name: string): string {
  return documents.get(path)?.match(new RegExp(`<!-- ${name} -->\n([\\s\\S]*?)<!-- /${name} -->`))?.[1] ?? ''
}

t.test('docs/configuration.md is what `cli config --markdown` prints', async (t) => {
  t.equal(documents.get('docs/configuration.md'), renderConfigurationPage())
  t.match(renderConfigurationPage(), '| `PORT` | `8402` | Port of the web process')
  t.match(readConfig({}), { port: 8402, dataDir: '.data', resultRetentionSeconds: 86_400, paymentMode: 'offline' })
})

t.test('docs/accuracy.md is what `npm run eval -- --save` writes beside docs/accuracy.json', async (t) => {
  const accuracy = await findAccuracy()
  const document = documents.get('docs/accuracy.md')
  t.equal(document, renderAccuracy(accuracy))
  t.ok(accuracy.runs.length > 0 && accuracy.marked.length > 0)
  for (const { set, at, procedure } of [...accuracy.runs, ...accuracy.marked])
    for (const named of [set.name, at.slice(0, 10), procedure, set.sha256.slice(0, 16)])
      t.ok(document?.includes(named), named)
})

t.test('the changelog names what is not released in a plain word', async (t) => {
  const changelog = (await findDocuments()).get('/guide/changelog')
  t.match(changelog?.markup, /<h2[^>]*>Unreleased<\/h2>/)
})

t.test('in a block of code, a comment stands above what it is about, because a line with both is cut or wraps', (t) => {
  const beside = inDocuments((text) =>
    [...text.matchAll(/^ *```(?:sh|ts|js|yaml|python)\n([\s\S]*?)^ *```$/gm)].flatMap(([, code = '']) =>
      code.split('\n').filter((line) => /^\s*[^\s#/].*\S(\s{2,}(#|\/\/)| \/\/) /.test(line) && isLong(line)),
    ),
  )
  t.same(beside, [])
  t.end()
})

/** Wider than a block of code of the guide in a usual window. */
const isLong = (line: string) => line.length > 72

t.test('docs/methodology.md explains every risk flag and the versions in force', async (t) => {
  const rows = [...tableOf('docs/methodology.md', 'risk flags').matchAll(/^\| `(\w+)` \| (\w+) \| (.+) \|$/gm)]
  t.same(
    rows.map(([, name, stage, meaning]) => [name, stage, meaning]),
    explainedFlags.map(({ name, raised_by, meaning }) => [name, raised_by.replace('_assessment', ''), meaning]),
  )
  const inForce = `${TEXT_PROCEDURE}+${gatedProcedure(LITERAL_PROCEDURE)}+${semanticProcedure('m', 1000)}`.match(
    /\b(?:text|literal|semantic|gate)-\d+/g,
  )!
  for (const part of inForce) t.match(documents.get('docs/methodology.md'), `\`${part}\``)
})

t.test('the tables of limits are those of the code', async (t) => {
  const guide = 'docs/guide/limits.md'
  const tiers = [...tableOf(guide, 'limits').matchAll(/^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|$/gm)]
  t.same(
    tiers.map(([, name, ...numbers]) => [name, ...numbers.map(Number)]),
    Object.keys(LIMITS.free).map((name) => [name, ...TIERS.map((tier) => LIMITS[tier][name as keyof TierLimits])]),
  )
  const callers = [...tableOf(guide, 'caller limits').matchAll(/^\| `(\w+)` \| (\d+) \|/gm)]
  t.same(
    callers.map(([, name, number]) => [name, Number(number)]),
    Object.entries(CALLER_LIMITS),
  )
  const inFlight = documents.get('docs/guide/buying.md')?.match(/## How much at once\n[\s\S]*?(?=\n## )/)?.[0] ?? ''
  for (const [name, number] of Object.entries(PUBLIC_LIMITS))
    t.match(inFlight, new RegExp(`\\b${number}\\b`), `${name}: ${number}`)
})

t.test('every type of alert is explained', async (t) => {
  const [, table = ''] = documents.get('docs/guide/alerts.md')?.match(/^\| `type` \|.*\n([\s\S]*?)\n\n/m) ?? []
  const explained = [...table.matchAll(/`((?:watchdog|citation)\.\w+)`/g)].map(([, type]) => type)
  t.same(explained.sort(), [...ALERT_TYPES].sort())
})

t.test('every npm script that is named exists', async (t) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const unknown = inDocuments((text) =>
    [...text.matchAll(/\bnpm (?:run (?:--silent |-s )?(\w+(?::\w+)*)|(start|test)\b)/g)]
      .map(([, script, short]) => script ?? short ?? '')
      .filter((script) => !Object.hasOwn(scripts, script)),
  )
  t.same(unknown, [])
})

t.test('every operator command that is named exists', async (t) => {
  const help = globSync('server/{{,*/}{cli,commands},*/commands/*}.ts', { cwd: root }).map(read).join('\n')
  const unknown = inDocuments((text) =>
    [...text.matchAll(/\bcli -- ([a-z-]+)(?: (--)?([a-z-]+))?/g)]
      .filter(([, one, option, two]) => !isCommand(help, one ?? '') && !isCommand(help, `${one} ${option ?? ''}${two}`))
      .map(([call]) => call),
  )
  t.same(unknown, [])
  t.notOk(isCommand(help, 'reconcile'))
  t.ok(isCommand(help, 'requests') && !isCommand(help, 'requests lose'))
})

/** Commands are members of the tables in cli.ts and the files `commands.ts` and those in `commands/`, or the word before several. */
function isCommand(source: string, name: string): boolean {
  if (new RegExp(`^  '${name} \\w[^']*': \\{$`, 'm').test(source)) return true
  return new RegExp(`^  '?${name}'?: \\{$`, 'm').test(source)
}

t.test('a guide with a command of the client says what it is in a clone', async (t) => {
  const guides = [...documents].filter(([path]) => path.startsWith('docs/guide/'))
  const calls = guides.filter(([, text]) =>
    /^countersign |npx (?:-y )?countersign |npm install countersign-sdk/m.test(text),
  )
  t.ok(calls.length >= 6, `${calls.length} guides`)
  for (const [path, text] of calls) t.match(text, /In a clone of this repository, [^.]*`node client\/cli\.ts`/, path)
})

t.test('every path that is named exists', async (t) => {
  const missing = inDocuments((text) =>
    [...text.matchAll(/`((?:server|workers|client|test|sql|bench|docs)\/[\w./-]*\w\/?)`/g)]
      .map(([, path = '']) => path)
      .filter((path) => !existsSync(join(root, path)) && globSync(`${path}_*.sql`, { cwd: root }).length === 0),
  )
  t.same(missing, [])
})

t.test('links between documents lead to a file, and to a heading that is there', async (t) => {
  const broken = inDocuments((text, path) =>
    linksOf(text).filter((link) => {
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : normalize(join(dirname(path), file))
      if (!existsSync(join(root, target))) return true
      return anchor !== undefined && !anchorsOf(read(target)).has(anchor)
    }),
  )
  t.same(broken, [])
  t.same(linksOf('[a](b.md#c), [d](https://e.example), `[f](g)`'), ['b.md#c'])
  t.same([...anchorsOf('## How to `buy`, twice\n```sh\n# no heading\n```')], ['how-to-buy-twice'])
})

/** Targets of links that are neither addresses nor code. */
function linksOf(text: string): string[] {
  const prose = withoutCode(text).replace(/`[^`\n]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link).filter((link) => !/^\w+:/.test(link))
}

/** Ids of headings as code hosts make them. */
function anchorsOf(text: string): Set<string> {
  const headings = [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)
  return new Set(
    headings.map((one) =>
      one
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '')
}

t.test('every document can be reached from README', async (t) => {
  const reached = new Set<string>()
  const visit = (path: string) => {
    if (reached.has(path)) return
    reached.add(path)
    for (const link of linksOf(documents.get(path) ?? ''))
      visit(normalize(join(dirname(path), link.split('#')[0] || '.')))
  }
  visit('README.md')
  const mentioned = (path: string) => documents.get('README.md')?.includes(`\`${path}\``)
  t.same(
    [...documents.keys()].filter((path) => !reached.has(path) && !mentioned(path)),
    [],
  )
})

t.test('the guide describes each document by its first paragraph', async (t) => {
  for (const { path, title, summary } of (await findDocuments()).values()) {
    const file = [...documents].find(([, text]) => text.startsWith(`# ${title}\n`))
    const first = file?.[1].split(/\n\s*\n/).find((part) => !/^(#|<!--|\|)/.test(part))
    const words = first
      ?.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[`*]/g, '')
      .replace(/\s+/g, ' ')
      .trim()
    t.equal(summary, words, path)
  }
})

/** An element that ends a line before a word, or that begins a line after one. */
const JOINED = /.{0,40}(?:<\/(?:code|a|em|strong)>\n +[\p{L}\p{N}]+|[\p{L}\p{N}.,;:]\n +<(?:code|a|em|strong)[ >])/gu

t.test('no page joins a word to the code or link before it, nor after it', async (t) => {
  // Templates drop the white space around a line's end.
  const templates = globSync('{server/pages,client/page}/**/*.ts', { cwd: root })
  const joined = templates.flatMap((file) => [...read(file).matchAll(JOINED)].map(([found]) => `${file}: ${found}`))
  t.same(joined, [])
})

t.test('every room is named in docs/architecture.md', async (t) => {
  const sources = globSync('{server,workers,client,bench}/**/*.ts', { cwd: root, exclude: ['**/dist/**'] })
  const rooms = [...new Set(sources.map((file) => `${dirname(file)}/`))].sort()
  t.ok(rooms.length > 15, `${rooms.length} rooms`)
  t.same(
    rooms.filter((room) => !documents.get('docs/architecture.md')?.includes(`\`${room}\``)),
    [],
  )
})

/** The moves that a diagram of docs/architecture.md draws, as `from to`, sorted. */
function drawnMoves(chapter: string): string[] {
  const text = documents.get('docs/architecture.md')?.match(new RegExp(`### ${chapter}\n[\\s\\S]*?(?=\n##)`))?.[0] ?? ''
  return [...text.matchAll(/^ {2}(\w+) --> (\w+)/gm)].map(([, from, to]) => `${from} ${to}`).sort()
}

t.test('the diagrams in docs/architecture.md draw the legal moves', async (t) => {
  const ofRequests = Object.entries(moves).flatMap(([from, next]) => next.map((to) => `${from} ${to}`))
  t.same(drawnMoves('Requests'), ofRequests.sort())
  const ofWatchdogs = Object.values(MOVES).flatMap(({ from, to }) => from.map((state) => `${state} ${to}`))
  t.same(drawnMoves('Watchdogs'), [...new Set(ofWatchdogs)].sort())
})

t.test('every variable that is named is one', async (t) => {
  const unknown = inDocuments((text) =>
    [...text.matchAll(/`([A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9])(?:=[^`]*)?`/g)]
      .map(([, name = '']) => name)
      .filter((name) => !Object.hasOwn(variables, name) && !isConstant(name)),
  )
  t.same(unknown, [])
})

/** Names in capitals that are constants of the code, and so explained beside their file. */
function isConstant(name: string): boolean {
  return sources.some((source) => new RegExp(`\\b${name}\\b`).test(source))
}
const sources = globSync('{server,workers,client}/**/*.ts', { cwd: root, exclude: ['**/dist/**'] }).map(read)

t.test(
  'README is short, and says in its first screen who judges without a key, and how often it is right',
  async (t) => {
    const lines = documents.get('README.md')?.split('\n') ?? []
    t.ok(lines.length <= 180, `${lines.length} lines`)
    const screen = lines.slice(0, 20).join(' ')
    t.match(screen, `${RIGHT_OF_100.supports} of 100 of its verdicts *supports* and ${RIGHT_OF_100.contradicts} of 100`)
  },
)

t.test('sentences that new readers did not understand are not used again', async (t) => {
  t.same(
    inDocuments((text) => {
      const plain = text.replace(/\s+/g, ' ')
      return RIDDLES.filter((sentence) => plain.includes(sentence))
    }),
    [],
  )
})

const RIDDLES = [
  'Without a key a payment is known by itself',
  'only a key tells a client that comes back without it that it has paid',
  'given a task in place of waiting',
  'Time in which no heartbeat could be taken here counts for nobody',
  'those that failed or dawdled share half',
  'only nothing can be added until there are fewer',
  'an answer that was overtaken by a later one is not written',
  'of that very subscription, so two never bill',
  'to pages of no other origin',
  'leave no room for two histories',
  'through the links that one covers all others',
  'goes on where it stopped, after reading what is there anew',
  'after a gap they have moved on by it',
  'no list to ask',
  'offline checks real signatures and moves nothing',
  'prints what is in force',
]
