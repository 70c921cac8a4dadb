// The rules of architecture, checked on the import graph: the order of the rooms, what each process may load, and which
// packages only one file may import. docs/architecture.md explains the rooms.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..')
const files = globSync(['server/**/*.ts', 'workers/**/*.ts', 'client/**/*.ts'], {
  cwd: root,
  exclude: ['client/dist/**'],
}).sort()

/** Files that start a process. */
const ENTRIES = /^(server\/(main|dev|demo|cli)|workers\/main|client\/cli)\.ts$/

/** The rooms in order. A room may import the rooms to its left, and none to its right; type imports count. */
const ROOMS = [
  'server/interface',
  'server/tracing',
  'server/db',
  'server/outbound',
  'server/threads',
  'workers/text',
  'workers/retrieval',
  'workers/assessment/local',
  'workers/assessment',
  'server/accounts',
  'server/config',
  'server/receipts',
  'server/payments',
  'server/evidence',
  'server/verification',
  'server/alerts',
  'server/watchdogs',
  'server/citations',
  'server/free-work',
  'server/quotes',
  'server/looks',
  'server/leases',
  'server/journal',
  'server/billing',
  'server/operate',
  'server/pages',
  'server/http',
  'server/mcp',
  'server/embedded',
]

/** Folders that belong to the room around them: for the order, their files are files of the room. */
const PARTS = [
  'workers/assessment/local/runtime',
  'workers/assessment/semantic',
  'workers/assessment/literal',
  'workers/text/page',
  'workers/text/style',
  'server/verification/admission',
  'server/verification/offer',
  'server/verification/stages',
  'server/payments/chains',
  'server/payments/facilitators',
  'server/operate/commands',
  'server/pages/accuracy',
  'server/pages/examples',
  'server/pages/guide',
  'server/pages/operator',
  'server/pages/reference',
]
const roomOf = (file: string) => (PARTS.includes(dirname(file)) ? dirname(dirname(file)) : dirname(file))

/** Files at the root of server/ that a room may import as values, and those of which it may import types alone. */
const GROUND = /^server\/(deadline|errors|telemetry|operation|preconditions)\.ts$/
const GROUND_TYPES = /^server\/(context|config)\.ts$/
/** The two protocols also count calls before a body is read, and share the reading of requests and texts about the service. */
const PROTOCOL_GROUND = /^server\/(access|http-request|introduction)\.ts$/
const PROTOCOLS = ['server/http', 'server/mcp']

interface Import {
  to: string
  typeOnly: boolean
}

interface Rule {
  /** The name of the test: the reason for the rule. */
  why: string
  /** Files that match `from` must not import what matches `to`. */
  from: RegExp
  to: RegExp
  /** Type-only imports vanish before anything runs; most rules are about values. */
  types?: 'too'
}

const RULES: Rule[] = [
  {
    why: 'the interface imports zod alone',
    from: /^server\/interface\//,
    to: /^(?!zod$|server\/interface\/)/,
    types: 'too',
  },
  { why: 'limits load in every thread', from: /^server\/interface\/limits\.ts$/, to: /./, types: 'too' },
  { why: 'nothing imports an entry', from: /./, to: ENTRIES, types: 'too' },
  { why: 'a caller installs the client alone', from: /^client\//, to: /^(server|workers)\//, types: 'too' },
  {
    why: 'the client runs in browsers',
    from: /^client\/(?!cli\.ts|commands\/|batch\/|page\/build\.ts)/,
    to: /^(node:|client\/(commands|batch)\/)/,
  },
  {
    why: 'the verifier stands alone',
    from: /^workers\/assessment\/local\//,
    to: /^(server|client|workers\/(?!assessment\/local\/))/,
    types: 'too',
  },
  { why: 'HTTP stays at the edge', from: /^(?!server\/(http\/|app\.ts))/, to: /^(fastify|@fastify\/.*)$/ },
  { why: 'one way to the database', from: /^(?!server\/(db|embedded)\/)/, to: /^(pg|slonik)$/ },
  {
    why: 'a receipt can be read on its own',
    from: /^server\/receipts\/format\.ts$/,
    to: /^(?!node:crypto$|canonicalize$)/,
  },
  {
    why: 'a thread shares nothing',
    from: /-thread\.ts$/,
    to: /^(server\/(?!errors\.ts|payments\/chains\/signed-transfer\.ts|evidence\/(packing|wacz)\.ts)|pg|slonik|pino)/,
  },
  {
    why: 'threads are started without secrets',
    from: /^(?!server\/threads\/)(?!.*-thread\.ts$)/,
    to: /^(piscina|node:worker_threads)$/,
  },
  {
    why: 'what callers send is parsed in threads: a text that was made for it takes seconds',
    from: /^server\/(?!.*-thread\.ts$)/,
    to: /^client\/(report\/(markdown|html|citations)|verification|document)\.ts$/,
  },
  {
    why: 'evidence packages are built in threads: a page of some megabytes would hold up every other call',
    from: /^server\/(?!evidence\/(package-thread|wacz)\.ts$)/,
    to: /^server\/evidence\/(wacz|warc|package-thread)\.ts$/,
  },
  { why: 'spans know no SDK', from: /^(?!server\/tracing\/exporter\.ts$)/, to: /^@opentelemetry\// },
  { why: 'one way out', from: /^(?!(server\/outbound|workers\/retrieval)\/)/, to: /^undici$/ },
  { why: 'tests stay in test/', from: /./, to: /^(test|bench)\//, types: 'too' },
]

const graph = new Map(files.map((file) => [file, importsOf(file)]))

function importsOf(file: string): Import[] {
  const source = readFileSync(join(root, file), 'utf8')
  const found = source.matchAll(/^(?:import|export) (type )?(?:[^'";]*? from )?['"]([^'"]+)['"]/gm)
  return [...found].map(([statement, typeOnly, target = '']) => ({
    typeOnly: typeOnly !== undefined || onlyTypes(statement),
    to: target.startsWith('.') ? normalize(join(dirname(file), target)) : target,
  }))
}

/** `import { type A, type B } from` brings no value either. */
function onlyTypes(statement: string) {
  const names = statement.match(/\{([^}]*)\}/)?.[1]
  return (
    names !== undefined &&
    !/^import \w+,/.test(statement) &&
    names.split(',').every((name) => /^\s*(type\s|$)/.test(name))
  )
}

for (const rule of RULES) {
  t.test(rule.why, async (t) => {
    const broken = [...graph].flatMap(([file, imports]) =>
      rule.from.test(file) && !ENTRIES.test(file)
        ? imports
            .filter((i) => rule.to.test(i.to) && (rule.types === 'too' || !i.typeOnly))
            .map((i) => `${file} imports ${i.to}`)
        : [],
    )
    t.same(broken, [])
  })
}

t.test('each room imports only the rooms to its left', async (t) => {
  const broken = [...graph].flatMap(([file, imports]) =>
    imports.filter((i) => !isAllowed(file, i)).map((i) => `${file} imports ${i.to}`),
  )
  t.same(broken, [])
})

t.test('every job lies with its noun: beside the reading, workers/ holds what runs jobs and no job', async (t) => {
  t.same(
    files.filter((file) => dirname(file) === 'workers'),
    ['beat', 'context', 'main', 'runner', 'tasks'].map((name) => `workers/${name}.ts`),
  )
})

t.test('every folder of the two processes is a room with a place in the order', async (t) => {
  const folders = new Set(files.filter((file) => /^(server|workers)\//.test(file)).map(roomOf))
  t.same([...folders].filter((folder) => folder !== 'server' && folder !== 'workers').sort(), [...ROOMS].sort())
})

function isAllowed(file: string, { to, typeOnly }: Import): boolean {
  const from = roomOf(file)
  const place = ROOMS.indexOf(from)
  const target = roomOf(to)
  if (place < 0 || !/^(server|workers)\//.test(to) || target === from) return true
  if (GROUND.test(to) || (typeOnly && GROUND_TYPES.test(to))) return true
  if (PROTOCOLS.includes(from) && PROTOCOL_GROUND.test(to)) return true
  if (PROTOCOLS.includes(from) && PROTOCOLS.includes(target)) return false
  const other = ROOMS.indexOf(target)
  return other >= 0 && other < place
}

/** Every module that starts with an entry, by value imports, our own files and packages alike. */
function reachedFrom(entry: string): string[] {
  const reached = new Set<string>()
  const visit = (file: string) => {
    if (reached.has(file)) return
    reached.add(file)
    for (const { to, typeOnly } of graph.get(file) ?? []) if (!typeOnly) visit(to)
  }
  visit(entry)
  return [...reached]
}

t.test('from the web entry nothing reaches a parser of pages or the SDK of a model', async (t) => {
  const heavy = /^(cheerio|parse5|domhandler|css-what|@csstools|@anthropic-ai|@exodus\/bytes)(\/|$)/
  const reached = reachedFrom('server/main.ts')
  t.same(
    reached.filter((module) => heavy.test(module)),
    [],
  )
  t.ok(reached.includes('workers/assessment/procedure.ts'), 'the walk goes into workers/')
  for (const file of ['workers/text/page/text-thread.ts', 'workers/assessment/semantic/anthropic.ts'])
    t.ok(
      reachedFrom(file).some((module) => heavy.test(module)),
      `${file} does reach one of them`,
    )
})

t.test('nothing that a thread loads reaches the database, the log or the settings', async (t) => {
  const shared = /^(pg|slonik|pino|server\/(config|context|telemetry)\.ts|server\/db\/.*)$/
  const threads = files.filter((file) => file.endsWith('-thread.ts'))
  t.ok(threads.includes('server/evidence/package-thread.ts'))
  for (const file of threads)
    t.same(
      reachedFrom(file).filter((module) => shared.test(module)),
      [],
      file,
    )
  t.ok(
    reachedFrom('server/evidence/store.ts').some((module) => shared.test(module)),
    'the walk finds them',
  )
})

t.test('a process loads a large SDK only where its configuration needs one', async (t) => {
  const large = /^(@anthropic-ai|stripe|@solana|@opentelemetry|ioredis|rate-limiter-flexible)(\/|$)/
  for (const entry of ['server/main.ts', 'workers/main.ts'])
    t.same(
      reachedFrom(entry).filter((module) => large.test(module)),
      [],
      entry,
    )
  for (const file of [
    'server/billing/stripe.ts',
    'server/payments/chains/solana.ts',
    'workers/assessment/semantic/anthropic.ts',
    'server/tracing/exporter.ts',
    'server/redis.ts',
  ])
    t.ok(
      reachedFrom(file).some((module) => large.test(module)),
      file,
    )
})

t.test('from the worker entry nothing reaches Fastify, a protocol or an operation', async (t) => {
  const edge = /^(fastify|@fastify\/.*|server\/(http|mcp)\/.*|server\/(catalog|operation|app)\.ts|.*operations\.ts)$/
  const reached = reachedFrom('workers/main.ts')
  t.same(
    reached.filter((module) => edge.test(module)),
    [],
  )
  t.ok(reached.includes('server/alerts/delivery-loop.ts'), 'the walk goes into server/')
  t.ok(
    reachedFrom('server/main.ts').some((module) => edge.test(module)),
    'the web process does reach them',
  )
})

/** The graph with the imports of files that are loaded only when they are needed. */
const lazyGraph = new Map(
  [...graph].map(([file, imports]) => {
    const lazy = readFileSync(join(root, file), 'utf8').matchAll(/\bimport\('(\.[^']+)'\)/g)
    return [
      file,
      [...imports, ...[...lazy].map(([, to = '']) => ({ to: normalize(join(dirname(file), to)), typeOnly: false }))],
    ]
  }),
)

t.test('no import cycles, imports of types and imports while running included', async (t) => {
  t.same(circlesIn(lazyGraph), [])
  const circle = new Map([
    ['a', [{ to: 'b', typeOnly: true }]],
    ['b', [{ to: 'c', typeOnly: false }]],
    ['c', [{ to: 'a', typeOnly: false }]],
  ])
  t.same(circlesIn(circle), ['a → b → c → a'])
})

function circlesIn(imports: Map<string, Import[]>): string[] {
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) return void circles.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file)) return
    for (const { to } of imports.get(file) ?? []) visit(to, [...path, file])
    done.add(file)
  }
  for (const file of imports.keys()) visit(file, [])
  return circles
}

t.test('the rules see value imports and type imports', async (t) => {
  t.ok(files.length > 40, `${files.length} files`)
  t.ok(graph.get('server/service.ts')?.some((i) => i.to === 'workers/runner.ts' && !i.typeOnly))
  t.ok(graph.get('workers/tasks.ts')?.some((i) => i.to === 'workers/context.ts' && i.typeOnly))
  t.notOk(isAllowed('server/receipts/chain.ts', { to: 'server/verification/request.ts', typeOnly: true }))
  t.notOk(isAllowed('server/mcp/tool.ts', { to: 'server/http/routes.ts', typeOnly: false }))
  t.notOk(isAllowed('server/alerts/delivery.ts', { to: 'workers/context.ts', typeOnly: true }))
})

t.test('what runs without the packages of development does not import them', async (t) => {
  const manifestOf = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))
  const { dependencies, optionalDependencies } = manifestOf('package.json')
  const client = manifestOf('client/package.json')
  const sdk = manifestOf('client/sdk/package.json')
  for (const [from, packages] of [
    [/^(server|workers)\/(?!fixture-tls\.ts)/, dependencies],
    // For a start without a host of one's own: `npm start`, the demo and the tests.
    [/^server\/fixture-tls\.ts$/, { ...dependencies, ...optionalDependencies }],
    [/^client\/(?!page\/)/, { ...client.dependencies, ...sdk.dependencies, ...sdk.peerDependencies }],
    // The service bundles the pages; a caller gets them bundled. The bundler takes the verifier from workers/.
    [/^client\/page\/(?!build\.ts)/, { ...dependencies, 'countersign-verifier': '' }],
    // It works without the optional bundler if that is not installed.
    [/^client\/page\/build\.ts$/, { ...dependencies, ...optionalDependencies }],
  ] as const) {
    const missing = files
      .filter((file) => from.test(file))
      .flatMap((file) => {
        const source = readFileSync(join(root, file), 'utf8')
        const lazy = [...source.matchAll(/\bimport\('([^']+)'\)/g)].map(([, to = '']) => ({ to, typeOnly: false }))
        return [...(graph.get(file) ?? []), ...lazy]
          .filter(
            ({ to, typeOnly }) => !typeOnly && /^[@a-z]/.test(to) && !/^(node:|server\/|workers\/|client\/)/.test(to),
          )
          .map(({ to }) => to.match(/^(@[^/]+\/)?[^/]+/)?.[0] ?? to)
          .filter((name) => !Object.hasOwn(packages, name))
          .map((name) => `${file} imports ${name}`)
      })
    t.same(missing, [])
  }
})

function filesWith(pattern: RegExp, except: RegExp) {
  return files.filter((file) => !except.test(file) && pattern.test(readFileSync(join(root, file), 'utf8')))
}

t.test('one file of the service and one of the command line read the environment', async (t) => {
  t.same(filesWith(/process\.env/, /^(server\/config|client\/commands\/environment)\.ts$/), [])
})

t.test('only the queue module writes jobs, and only in a transaction', async (t) => {
  t.same(filesWith(/add_jobs?\(/, /^server\/db\/(jobs|migrate)\.ts$/), [])
})

t.test('a secret is compared in constant time, or found by its hash', async (t) => {
  const secret = String.raw`\w*(?:[tT]oken|[sS]ecret|[bB]earer|[mM]ac|[pP]assword|[aA]piKey|api_key|service_key|[cC]ookie)\b`
  // A comparison with a literal is none with a secret.
  const compared = new RegExp(
    String.raw`\b${secret}(?:\([^()]*\))? [!=]==? (?!undefined|null|['\d]|true|false)|[!=]==? (?:[\w.]+\.)?${secret}(?!\()`,
  )
  // In workers/text tokens are words. A call may bring its own key twice, as an argument and as a header.
  t.same(filesWith(compared, /^(client\/|workers\/text\/|server\/mcp\/operation-tool\.ts$)/), [])
  for (const wrong of [
    'if (given === token)',
    'a.webhookSecret !== b',
    'mac(body) == given',
    'x === api.operatorToken',
  ])
    t.match(wrong, compared)
})

t.test('every SELECT lists its columns', async (t) => {
  t.same(filesWith(/select \*|returning \*/i, /^$/), [])
})

t.test('no file is longer than the limit of lines', async (t) => {
  const all = [...files, ...globSync('{bench,ops}/**/*.ts', { cwd: root }).sort()]
  const long = all.filter((file) => readFileSync(join(root, file), 'utf8').split('\n').length > 350)
  t.same(long, [])
})
