// The files for deployment agree with the code: every file that they copy or start, and every variable that they set,
// exists.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { buildArguments, readSteps, takeSteps } from '../ops/image-steps.ts'
import { readConfig, variables } from '../server/config.ts'
import { QUEUE_CONNECTIONS } from '../workers/runner.ts'
import { problemsOf } from './problems.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const known = new Set<string>(Object.keys(variables))

t.test('the image copies only files that exist and that the build needs', async (t) => {
  const copied = [...read('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = '']) =>
    names.split(' '),
  )
  t.ok(copied.length > 5)
  const sent = new Set([...read('.dockerignore').matchAll(/^!(\S+)$/gm)].map(([, name]) => name))
  for (const name of copied) t.ok(existsSync(join(ROOT, name)) && sent.has(name), `${name} is there and is sent`)
  // A folder that the service reads at run time would be missing in the image only.
  for (const folder of ['client', 'docs', 'server', 'sql', 'workers']) t.ok(copied.includes(folder), folder)
})

t.test(
  'no package of development is installed as an optional peer, and npm on Node 20 leaves out nothing',
  async (t) => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> }
    const { devDependencies = {} } = packages[''] ?? {}
    t.same(
      Object.keys(devDependencies).filter((name) => packages[`node_modules/${name}`]?.devOptional),
      [],
    )
    // Where a package of an optional one asks for a newer Node, npm leaves out both without a word.
    const fits20 = (part: string) => {
      const [major = 0] = part.match(/\d+/g)?.map(Number) ?? []
      return part.includes('^') ? major === 20 : major <= 20
    }
    const optional = Object.entries(packages).filter(([, { optional, os }]) => optional && !os)
    t.ok(optional.length > 10)
    for (const [name, { engines }] of optional)
      t.ok((engines?.node ?? '*').split('||').some(fits20), `${name}: ${engines?.node}`)
    // Without it npm would install by other rules than those of the lock file.
    t.match(read('Dockerfile'), /^COPY .*\.npmrc .*\nCOPY .*\nRUN npm ci /m)
  },
)

interface Locked {
  devDependencies?: Record<string, string>
  devOptional?: boolean
  optional?: boolean
  os?: string[]
  engines?: { node?: string }
}

t.test('every process is started by a file that exists', async (t) => {
  const started = ['Dockerfile', 'compose.yaml'].flatMap((file) => [
    ...read(file).matchAll(/'?"?((?:server|workers)\/\w+\.ts)/g),
  ])
  t.ok(started.length > 3)
  for (const [, file = ''] of started) t.ok(existsSync(join(ROOT, file)), file)
  const { scripts } = JSON.parse(read('package.json'))
  for (const [, script = ''] of read('Procfile').matchAll(/npm run --silent (\w+)/g)) t.ok(scripts[script], script)
  // A shell between npm and Node would keep the signals that ask for a drain. Without the bound, glibc keeps what threads have freed: 90
  // MB of a worker with a verifier. The image has musl, which has no arenas.
  for (const name of ['start', 'web', 'worker'])
    t.match(scripts[name], /^MALLOC_ARENA_MAX=\$\{MALLOC_ARENA_MAX:-2\} exec node /)
})

t.test('whatever starts web and worker bounds the heap for the smallest dynos, and HEAP_MB changes it', async (t) => {
  const { scripts } = JSON.parse(read('package.json'))
  const bounds = `--max-semi-space-size=16 --max-old-space-size=\${HEAP_MB:-${variables.HEAP_MB.default}}`
  const composed = read('compose.yaml')
    .match(/command:\n((?: {6}- .*\n)*? {6}- workers\/main\.ts)/)?.[1]
    ?.replaceAll(/\s+- /g, ' ')
  for (const command of [scripts.web, read('Dockerfile').split('\nCMD ')[1]]) t.ok(command?.includes(bounds), command)
  // V8 collects all garbage each time a bounded heap has grown by a third. A worker, most of whose memory is garbage of the verifications
  // at work, would do so once a second.
  for (const command of [scripts.worker, composed])
    t.ok(command?.includes(`${bounds} --heap-growing-percent=100 `), command)
})

t.test('every variable that they set is one of the configuration', async (t) => {
  const { env } = JSON.parse(read('app.json'))
  const block = read('compose.yaml').match(/environment: &environment\n([\s\S]*?)\n {2}restart/)?.[1] ?? ''
  const set = [...Object.keys(env), ...[...block.matchAll(/^ {4}([A-Z_]+):/gm)].map(([, name = '']) => name)]
  t.ok(set.length > 8)
  t.same(
    set.filter((name) => !known.has(name)),
    [],
  )
})

/** Set by the file itself, or of use on a developer's machine only. */
const OWN = ['PORT', 'HOST', 'DATA_DIR', 'DATABASE_URL', 'DATABASE_DIRECT_URL', 'REDIS_URL', 'SIGNING_SEED_FILE']
const FOR_TESTS = ['FIXTURE_HOSTS', 'FIXTURE_CA_FILE']
/** Changed after the deployment, if at all. */
const TUNING =
  /^(OTEL_|LOG_|HEAP_MB$|.*_THREADS$|WORKER_|ASSESSMENT_|.*_ENABLED$|.*_SECONDS$|.*_PER_(MINUTE|DAY|PAYER)$|.*_(MAX_TOKENS|PRICES)$|STRIPE_API_BASE$)/

t.test('compose.yaml passes every variable that a deployment may need', async (t) => {
  const block = read('compose.yaml').match(/environment: &environment\n([\s\S]*?)\n {2}restart/)?.[1] ?? ''
  const passed = new Set([...block.matchAll(/^ {4}([A-Z_]+):/gm)].map(([, name = '']) => name))
  const missing = [...known].filter((name) => !passed.has(name) && ![...OWN, ...FOR_TESTS].includes(name))
  t.same(missing, [])
})

t.test('app.json asks for every variable without which a live deployment sells less', async (t) => {
  const { env } = JSON.parse(read('app.json'))
  // The host sets them.
  const own = OWN.filter((name) => name !== 'HOST')
  const missing = [...known].filter(
    (name) => !env[name] && !TUNING.test(name) && ![...own, ...FOR_TESTS].includes(name),
  )
  t.same(missing, [])
})

t.test('neither lets offline mode out by accident', async (t) => {
  t.match(read('compose.yaml'), /ports: \["\$\{PUBLISH_ADDRESS:-127\.0\.0\.1\}:8402:8402"\]/)
  const { env } = JSON.parse(read('app.json'))
  t.equal(env.OFFLINE_PUBLIC.value, undefined)
  const settings = Object.entries<{ value?: string; generator?: string }>(env).map(([name, one]) => [
    name,
    one.generator ? '0'.repeat(64) : (one.value ?? ''),
  ])
  const missing = problemsOf(Object.fromEntries(settings))
  t.match(missing, [/PAY_TO_EVM or PAY_TO_SOLANA is required/, /BASE_URL is required/], 'it starts with neither')
  const given = { PAY_TO_EVM: `0x${'11'.repeat(20)}`, HEROKU_APP_DEFAULT_DOMAIN_NAME: 'app-1.herokuapp.com' }
  t.equal(readConfig({ ...Object.fromEntries(settings), ...given }).baseUrl, 'https://app-1.herokuapp.com')
})

t.test('web, worker and a command together fit in the connections of the database of app.json', async (t) => {
  const { addons, env, formation } = JSON.parse(read('app.json'))
  // Connections of the database plans, by the documents of the host.
  const plans: Record<string, number> = { 'essential-0': 20, 'essential-1': 20, 'essential-2': 40, 'standard-0': 120 }
  const plan = (addons as string[]).find((name) => name.startsWith('heroku-postgresql:'))?.split(':')[1] ?? ''
  const { databaseConnections } = readConfig({ DATABASE_CONNECTIONS: env.DATABASE_CONNECTIONS?.value })
  // The one that listens; the queue's, and the one that holds the lock of the worker.
  const beside: Record<string, number> = { web: 1, worker: QUEUE_CONNECTIONS + 1 }
  t.same(Object.keys(formation), Object.keys(beside))
  const processes = Object.entries<{ quantity: number }>(formation)
  const wanted = processes.reduce(
    (sum, [name, { quantity }]) => sum + quantity * (databaseConnections + beside[name]!),
    0,
  )
  // `doctor` opens two. Migrations run while the processes of the release before are alive.
  t.ok(wanted + 2 <= plans[plan]!, `${wanted} and 2 of ${plans[plan]}`)
})

t.test('whatever builds the image keeps its health check', async (t) => {
  t.match(read('Dockerfile'), /^HEALTHCHECK /m)
  for (const builder of ['podman', 'buildah'])
    t.match(buildArguments(builder).join(' '), /^(build|bud) --format docker /)
  t.same(buildArguments('docker'), ['build', '--tag', 'countersign:steps', '.'])
})

t.test('the steps of the image can be taken without a builder', async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'countersign-steps-'))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  const commands: string[] = []
  const last = takeSteps(readSteps(read('Dockerfile')), place, (command, { folder }) => {
    commands.push(command)
    t.ok(existsSync(join(folder, 'package-lock.json')) && existsSync(join(folder, 'ops/slim.sh')))
    mkdirSync(join(folder, 'node_modules/zod'), { recursive: true })
  })
  t.match(commands, [/^npm ci --omit=dev --omit=optional/])
  t.equal(last.env.NODE_ENV, 'production')
  for (const file of ['node_modules/zod', 'server/main.ts', 'workers/main.ts', 'sql/schema.sql', 'README.md'])
    t.ok(existsSync(join(last.folder, file)), file)
  t.throws(() => takeSteps([{ name: 'ADD', rest: 'a b' }], place, () => {}), /ADD, which is not known/)
})
