// Outside time: authorities made with openssl, and their faults. Nothing that an authority does delays or prevents receipts.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { type ConfigError, readConfig } from '../../server/config.ts'
import { readStatus } from '../../server/operate/status.ts'
import { openTimestamping, pruneTimestamps } from '../../server/receipts/timestamping.ts'
import { openLog, openMetrics } from '../../server/telemetry.ts'
import { query } from '../system.ts'
import {
  type Answer,
  Certificates,
  openAuthority,
  type TestAuthority,
  withoutOpenssl,
} from '../time-stamp-authority.ts'
import { openTestLog, type TestLog } from './log.ts'

const HOUR_S = 3600
const RETENTION = readConfig({})

async function openStamped(names: string[]) {
  await using opened = new AsyncDisposableStack()
  const log = opened.use(await openTestLog())
  const certificates = opened.use(new Certificates())
  certificates.issue('one')
  certificates.issue('two')
  certificates.issue('expired', { days: -1 })
  certificates.issue('server', { extensions: 'extendedKeyUsage=critical,serverAuth\n' })
  const authorities: TestAuthority[] = []
  for (const name of names) authorities.push(opened.use(await openAuthority(certificates, name)))
  const settings = { urls: authorities.map(({ url }) => url), intervalSeconds: HOUR_S, ca: certificates.root }
  const logged: Record<string, unknown>[] = []
  const logger = openLog('debug', { write: (line) => logged.push(JSON.parse(line)) })
  const metrics = openMetrics()
  /** Another process of the service. */
  const open = (timeoutMs?: number) =>
    openTimestamping(
      { db: log.db, log: logger, metrics, config: { witnesses: [], timestamps: settings } },
      { lookS: 0, ...(timeoutMs !== undefined && { timeoutMs }) },
    )
  const stamping = opened.use(open())
  const closing = opened.move()
  return {
    log,
    certificates,
    authorities: authorities as [TestAuthority, ...TestAuthority[]],
    stamping,
    open,
    logged,
    metrics,
    rows: (text: string) => query(log.url, text),
    /** The interval has passed. */
    pass: () => log.damage(`update timestamp_authorities set asked_at = asked_at - interval '${HOUR_S} seconds'`),
    problems: () => logged.filter(({ event }) => event === 'timestamp_failed').map(({ problem }) => String(problem)),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

const sizes = (log: TestLog) =>
  query(log.url, 'select tree_size::int, count(*)::int n from timestamps group by 1 order by 1')

t.test('each authority signs each head once an interval', { skip: withoutOpenssl }, async (t) => {
  await using set = await openStamped(['one', 'two'])
  const { log, stamping, authorities, pass } = set
  t.equal(await stamping.runOnce(), 0, 'there is nothing to sign before the first receipt')
  await log.append(3)
  t.equal(await stamping.runOnce(), 2)
  await log.append(2)
  t.equal(await stamping.runOnce(), 0, 'within the interval nobody is asked')
  await pass()
  // Two processes at the same time.
  await using other = set.open()
  const stored = await Promise.all([stamping.runOnce(), other.runOnce()])
  t.equal(stored[0] + stored[1], 2)
  await pass()
  t.equal(await stamping.runOnce(), 0, 'a head that was signed is not signed again')
  t.same(
    authorities.map(({ asked }) => asked.length),
    [2, 2],
  )
  t.same(await sizes(log), [
    { tree_size: 3, n: 2 },
    { tree_size: 5, n: 2 },
  ])
  const { checkpoint } = await log.head()
  t.same(await set.rows('select distinct note, authority from timestamps where tree_size = 5 order by 2'), [
    { note: checkpoint, authority: 'Test one' },
    { note: checkpoint, authority: 'Test two' },
  ])
  const digest = createHash('sha256').update(checkpoint).digest()
  for (const { asked } of authorities) t.ok(asked[1]!.includes(digest), 'each is asked about the note as it is served')
})

t.test('a reply that cannot be used is not stored, and its cause is said', { skip: withoutOpenssl }, async (t) => {
  await using set = await openStamped(['one', 'two'])
  const { log, stamping, authorities, certificates, problems, pass } = set
  const [bad] = authorities
  const faults: [RegExp, (query: Buffer) => Promise<Answer> | Answer][] = [
    [
      /has another nonce/,
      async () => {
        const again = await certificates.query((await log.head()).checkpoint)
        return { body: await certificates.reply(again, 'one') }
      },
    ],
    [/had expired at .*: it ended /, async (query) => ({ body: await certificates.reply(query, 'expired') })],
    [/is about another digest/, async () => ({ body: await certificates.reply(await certificates.query('x'), 'one') })],
    [
      /not for time stamping alone/,
      async (query) => ({
        body: await certificates.forge(await certificates.reply(query, 'one'), 'server'),
      }),
    ],
    [/the authority refused \(status 2/, async () => ({ body: await certificates.reply(Buffer.from('?'), 'one') })],
    [/not one value in DER/, () => ({ body: '<html>no reply</html>' })],
    [/it answered 500: out of order/, () => ({ status: 500, body: 'out of order\n' })],
    [/it answered 503$/, () => ({ status: 503, body: Buffer.of(1, 2, 3) })],
    [/redirect/, () => ({ status: 302, body: '' })],
    [/longer than 65536 bytes/, () => ({ body: Buffer.alloc(5_000_000) })],
  ]
  for (const [problem, how] of faults) {
    await log.append(1)
    bad.misbehave(how)
    t.equal(await stamping.runOnce(), 1, `the other authority is stored: ${problem}`)
    t.match(problems().at(-1), problem)
    await pass()
  }
  t.equal(problems().length, faults.length)
  t.same(await set.rows('select distinct authority from timestamps'), [{ authority: 'Test two' }])
  const [row] = await set.rows('select failures, problem from timestamp_authorities order by failures desc limit 1')
  t.match(row, { failures: faults.length, problem: /longer than/ })
  const counted = await set.metrics.timestamps.get()
  t.same(counted.values.map(({ labels, value }) => [labels.outcome, value]).sort(), [
    ['failed', faults.length],
    ['stored', faults.length],
  ])

  const warned = async () =>
    (await readStatus(log.db, RETENTION)).warnings.filter(({ name }) => name === 'timestamps_fail')
  t.match(await warned(), [{ what: new RegExp(`${bad.url} has failed ${faults.length} times in a row: .*longer`) }])
  bad.misbehave(null)
  t.equal(await stamping.runOnce(), 1, 'the head that failed is asked again after the interval')
  t.same(await warned(), [])
})

t.test('receipts are made while an authority hangs, and a process ends', { skip: withoutOpenssl }, async (t) => {
  await using set = await openStamped(['one'])
  const { log, authorities } = set
  const [authority] = authorities
  authority.misbehave(() => new Promise<null>(() => {}))
  await log.append(1)
  const asked = authority.next()
  const stamping = set.open()
  const round = stamping.runOnce()
  await asked
  t.equal((await log.append(50)).length, 50)
  // Ends like a process between the question and its storage.
  await stamping[Symbol.asyncDispose]()
  t.equal(await round, 0)
  t.same(set.problems(), [], 'a process that ends is no failure of the authority')
  authority.misbehave(null)
  await using next = set.open()
  t.equal(await next.runOnce(), 0, 'the question counts: the next one follows after the interval')
  await set.pass()
  t.equal(await next.runOnce(), 1)
  t.same(await sizes(log), [{ tree_size: 51, n: 1 }])
})

t.test('a reply that does not come is given up', { skip: withoutOpenssl }, async (t) => {
  await using set = await openStamped(['one'])
  const [authority] = set.authorities
  authority.misbehave(() => new Promise<null>(() => {}))
  await set.log.append(1)
  await using stamping = set.open(200)
  t.equal(await stamping.runOnce(), 0)
  t.match(set.problems(), [/^no whole reply came within 0\.2 s$/])
})

t.test('of old replies the first of each day of an authority is kept', { skip: withoutOpenssl }, async (t) => {
  await using set = await openStamped(['one'])
  const { log } = set
  await log.append(6)
  const ages = ['9 days 3 hours', '9 days 2 hours', '8 days 23 hours', '1 hour', '0 hours']
  const day = `date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' + interval '12 hours'`
  for (const [i, age] of ages.entries())
    await log.damage(
      `insert into timestamps select ${i + 1}, url, 'n', '', ${day} - interval '${age}', '01', 'a' from (values ('u'), ('v')) of (url)`,
    )
  await log.damage(
    `insert into timestamp_authorities values ('gone', now() - interval '8 days', 60), ('kept', now(), 60)`,
  )
  await pruneTimestamps(log.db)
  // Nine days and two or three hours ago is the same day; 8 days and 23 hours ago is the day after or the same.
  const left = await set.rows('select tree_size::int n, url from timestamps order by 1, 2')
  t.same(
    left.filter(({ url }) => url === 'u').map(({ n }) => n),
    [1, 4, 5],
  )
  t.equal(left.length, 6)
  t.same(await set.rows('select url from timestamp_authorities'), [{ url: 'kept' }])
})

t.test('settings that cannot be used are refused', async (t) => {
  const folder = t.testdir({
    'no.pem': 'nothing',
    'bad.pem': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
  })
  const problems = (env: Record<string, string>) => {
    try {
      readConfig(env)
      return ''
    } catch (error) {
      return (error as ConfigError).problems.join('\n')
    }
  }
  const url = 'http://127.0.0.1:1/a'
  t.match(readConfig({ TIMESTAMP_URLS: `${url}, https://b.test` }).timestamps, {
    urls: [url, 'https://b.test'],
    intervalSeconds: 3600,
  })
  t.equal(readConfig({}).timestamps, undefined)
  for (const bad of [
    'x',
    'ftp://a.test',
    `${url},`,
    'https://u:p@a.test',
    `${url},${url}`,
    Array.from({ length: 9 }, (_, i) => `${url}${i}`).join(),
  ])
    t.match(problems({ TIMESTAMP_URLS: bad }), /TIMESTAMP_URLS: must/, bad)
  t.match(problems({ TIMESTAMP_INTERVAL_SECONDS: '5' }), /TIMESTAMP_INTERVAL_SECONDS/)
  t.match(problems({ TIMESTAMP_CA_FILE: join(folder, 'no.pem') }), /holds no certificate/)
  t.match(problems({ TIMESTAMP_CA_FILE: join(folder, 'bad.pem') }), /cannot be read/)
  t.match(problems({ TIMESTAMP_CA_FILE: join(folder, 'none.pem') }), /ENOENT/)
})
