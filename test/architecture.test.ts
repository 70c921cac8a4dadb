// The rules of the house. Each test's name is the reason for its rule: files that match `from` must not import `to`.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..')
const files = globSync(['server/**/*.ts', 'workers/**/*.ts', 'client/*.ts'], { cwd: root }).sort()
const entries = /^(server\/(main|dev|demo|cli)|workers\/main|client\/cli)\.ts$/

interface Rule {
  why: string
  from: RegExp
  to: RegExp
  except?: RegExp
  /** Type-only imports vanish before anything runs; most rules are about values. */
  types?: 'too'
}

const rules: Rule[] = [
  {
    why: 'the server hands work over through the queue',
    from: /^server\//,
    // Names of procedures and meanings of flags are no work: the web process explains them.
    to: /^workers\/(?!(.*\/)?((page-|semantic-)?risk-flags|procedure)\.ts$)/,
    except: /^server\/service\.ts$/,
  },
  { why: 'workers serve nobody', from: /^workers\//, to: /^server\/(http\/|app|catalog|operation\.|.*operations\.ts)/ },
  { why: 'nothing imports an entry point', from: /./, to: entries },
  { why: 'a caller installs the client alone', from: /^client\//, to: /^(server|workers)\//, types: 'too' },
  { why: 'the client runs in browsers', from: /^client\/(?!cli\.ts)/, to: /^node:/ },
  { why: 'HTTP stays at the edge', from: /./, to: /^(fastify|@fastify\/.*)$/, except: /^server\/(http\/|app\.ts)/ },
  {
    why: 'one way to the database',
    from: /./,
    to: /^(pg|slonik)$/,
    except: /^server\/db\//,
  },
  {
    why: 'features know no protocol',
    from: /^server\/(verification|receipts|payments)\//,
    to: /^server\/(http|app|catalog)/,
  },
  {
    why: 'a receipt can be read on its own',
    from: /^server\/receipts\/format\.ts$/,
    to: /^(?!node:crypto$|canonicalize$)/,
  },
  { why: 'a thread shares nothing', from: /-thread\.ts$/, to: /^(server\/(?!errors\.ts)|pg|slonik|pino)/ },
  {
    why: 'threads are started without secrets',
    from: /^(?!server\/threads\/pool\.ts$)(?!.*-thread\.ts$)/,
    to: /^(piscina|node:worker_threads)$/,
  },
  { why: 'one way out', from: /./, to: /^undici$/, except: /^(server\/outbound|workers\/retrieval)\// },
  { why: 'tests stay in test/', from: /./, to: /^(test|bench)\// },
]

const graph = new Map(files.map((file) => [file, importsOf(file)]))

function importsOf(file: string) {
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

for (const rule of rules) {
  t.test(rule.why, async (t) => {
    const broken = [...graph].flatMap(([file, imports]) =>
      rule.from.test(file) && !entries.test(file) && !rule.except?.test(file)
        ? imports
            .filter((i) => rule.to.test(i.to) && (rule.types === 'too' || !i.typeOnly))
            .map((i) => `${file} imports ${i.to}`)
        : [],
    )
    t.same(broken, [])
  })
}

/** Every module that starts with an entry, by value imports, our own files and packages alike. */
function reachedFrom(entry: string): Set<string> {
  const reached = new Set<string>()
  const visit = (file: string) => {
    if (reached.has(file)) return
    reached.add(file)
    for (const { to, typeOnly } of graph.get(file) ?? []) if (!typeOnly) visit(to)
  }
  visit(entry)
  return reached
}

t.test('from the web entry nothing reaches a parser of pages or the SDK of a model', async (t) => {
  const heavy = /^(cheerio|parse5|domhandler|css-tree|@anthropic-ai|@exodus\/bytes)(\/|$)/
  const fromWeb = [...reachedFrom('server/main.ts')]
  t.same(
    fromWeb.filter((module) => heavy.test(module)),
    [],
  )
  t.ok(fromWeb.includes('workers/assessment/procedure.ts'), 'the walk goes into workers/')
  const fromWorker = [...reachedFrom('workers/main.ts')]
  t.ok(
    fromWorker.some((module) => /^@anthropic-ai/.test(module)),
    'the worker does reach them',
  )
})

t.test('the rules find what they forbid', async (t) => {
  t.ok(files.length > 40, `${files.length} files`)
  t.ok(graph.get('server/service.ts')?.some((i) => i.to === 'workers/runner.ts' && !i.typeOnly))
  t.ok(graph.get('workers/verify.ts')?.some((i) => i.to === 'workers/context.ts' && i.typeOnly))
})

t.test('no cycles', async (t) => {
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) return void cycles.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file)) return
    for (const { to, typeOnly } of graph.get(file) ?? []) if (!typeOnly) visit(to, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  t.same(cycles, [])
})

function filesWith(pattern: RegExp, except: RegExp) {
  return files.filter((file) => !except.test(file) && pattern.test(readFileSync(join(root, file), 'utf8')))
}

t.test('only config.ts reads the environment', async (t) => {
  t.same(filesWith(/process\.env/, /^server\/config\.ts$/), [])
})

t.test('only the queue module writes jobs, and only in a transaction', async (t) => {
  t.same(filesWith(/add_jobs?\(/, /^server\/db\/(jobs|migrate)\.ts$/), [])
})

t.test('every SELECT lists its columns', async (t) => {
  t.same(filesWith(/select \*|returning \*/i, /^$/), [])
})

t.test('a file holds one noun', async (t) => {
  const long = files.filter((file) => readFileSync(join(root, file), 'utf8').split('\n').length > 350)
  t.same(long, [])
})
