// Heartbeats per second of 10,000 watchdogs, beside what one update per heartbeat comes to on the same Postgres; and what
// they leave behind in it.
import { execFile, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { openDatabase } from '../../server/db/pool.ts'
import { openHeartbeats } from '../../server/watchdogs/heartbeats.ts'
import { ACCOUNTS, accountIdOf, accountIdSql, type BenchAccount, openAccounts } from '../accounts.ts'
import { openChild } from '../child.ts'
import { openGenerator } from '../generator.ts'
import { type Lab, openClient } from '../lab.ts'
import { closedLoop, compete } from '../rounds.ts'
import { figure, printHeading, printNote, printStandings } from '../table.ts'
import { openWatch } from '../watch.ts'

export const WATCHDOGS = 10_000
const CLIENTS = 16
/** As in the other parts: enough to keep an API process busy. */
const CALLERS = 64
const AIM = 0.5
/** As openCore has it. */
const CONNECTIONS = 10

/** What a service would send that wrote each heartbeat by itself: the same columns of the same row, found the same way. */
const SINGLE = `update watchdogs set started_at = now(), last_beat_at = now(), beats = beats + 1, note = null`

export async function benchWatchdogs(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const admin = await openClient(url, opened)
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env: { DATABASE_URL: url } }))
  const origin = String(api.ready.address)
  const pack = await openPack(admin, 'bench', WATCHDOGS)
  const generator = opened.use(await openGenerator(lab))
  const watch = opened.use(await openWatch(url, { API: api.pid, load: generator.pid }))
  const db = await openDatabase(url, { maxConnections: CONNECTIONS })
  opened.defer(() => db.end())
  const heartbeats = opened.use(openHeartbeats(db))
  const milliseconds = lab.quick ? 1500 : 4000
  // Those of one account after those of the other, as the accounts come in turn.
  const paths = Array.from({ length: 4 * WATCHDOGS }, (_, n) => `/v1/heartbeat/${nameOf(ownedBy(n, randomNumber()))}`)
  const requests = pack.map(({ headers }) => ({ headers }))
  const overHttp = (connections: number) =>
    generator.run({
      ...{ origin, path: '/', paths, method: 'POST', requests, status: 200 },
      ...{ connections, milliseconds },
    })
  const inProcess = (callers: number) =>
    closedLoop({ callers, milliseconds }, randomNumber, async (n) => {
      const beat = { accountId: accountIdOf(n), name: nameOf(n), status: 'ok', note: null } as const
      if (!(await heartbeats.add(beat))) throw new Error(`no watchdog ${beat.name}`)
    })
  const single = await openSingle(lab, url, milliseconds)

  printHeading(
    'watchdogs',
    `heartbeats of ${WATCHDOGS}, durable; one update each by ${single.what}, ${CLIENTS} clients`,
  )
  await overHttp(CALLERS)
  printStandings(
    await compete(lab.rounds, [
      {
        what: `POST /v1/heartbeat, one API process, ${CALLERS} clients`,
        run: () => watch.during(() => overHttp(CALLERS)),
      },
      { what: 'one update each', run: single.run, aim: AIM },
      { what: `POST /v1/heartbeat, ${CLIENTS} clients`, run: () => overHttp(CLIENTS) },
    ]),
  )
  printNote(watch.heldBack())
  printStandings(
    await compete(lab.rounds, [
      { what: `in groups, in process, ${CLIENTS} callers`, run: () => inProcess(CLIENTS) },
      { what: 'one update each', run: single.run, aim: AIM },
      { what: `in groups, in process, ${CALLERS} callers`, run: () => inProcess(CALLERS) },
    ]),
  )
  printNote(await describeRows(admin))
}

function randomNumber() {
  return Math.floor(Math.random() * WATCHDOGS)
}

/** The watchdog of this account that is next to another of any account. */
function ownedBy(account: number, n: number) {
  return n - (n % ACCOUNTS) + (account % ACCOUNTS)
}

/** The nth watchdog is one of the nth account, round and round. */
function nameOf(n: number) {
  return `w${n}`
}

/** So many watchdogs, `w0` and on, in the hands of accounts that each have as many; the table has them at once. */
export async function openPack(
  admin: Pick<pg.Client, 'query'>,
  handle: string,
  count: number,
  { url = 'https://hook.test/', interval = 10, grace = 5 } = {},
): Promise<BenchAccount[]> {
  const accounts = await openAccounts(admin, handle)
  await admin.query(
    `with hook as (insert into webhooks (id, account_id, url)
       select gen_random_uuid(), ${accountIdSql('n')}, $2 || n from generate_series(0, $1::int - 1) n
       returning id, account_id, url)
     insert into watchdogs (id, account_id, name, webhook_id, interval_s, grace_s, alert_after)
     select gen_random_uuid(), account_id, 'w' || substr(url, length($2) + 1), id, $3, $4, 1 from hook`,
    [count, url, interval, grace],
  )
  await admin.query('vacuum analyze watchdogs')
  return accounts
}

interface Single {
  what: string
  run: () => Promise<number>
}

/** By pgbench where there is one, which costs next to nothing itself; else by the same closed loop in pg. */
async function openSingle(lab: Lab, url: string, milliseconds: number): Promise<Single> {
  if (spawnSync('pgbench', ['--version']).status !== 0)
    return { what: 'pg in process', run: () => singleByPg(url, milliseconds) }
  const script = join(lab.folder, `single-${randomUUID()}.sql`)
  await writeFile(
    script,
    `\\set n random(0, ${WATCHDOGS - 1})\n${SINGLE} where account_id = ${accountIdSql(':n')} and name = 'w' || :n;\n`,
  )
  const seconds = String(Math.ceil(milliseconds / 1000))
  const args = ['-n', '-M', 'prepared', '-c', `${CLIENTS}`, '-j', '2', '-T', seconds, '-f', script, url]
  return {
    what: 'pgbench',
    async run() {
      const { stdout } = await promisify(execFile)('pgbench', args)
      return Number(stdout.match(/^tps = ([\d.]+)/m)![1])
    },
  }
}

async function singleByPg(url: string, milliseconds: number): Promise<number> {
  const pool = new pg.Pool({ connectionString: url, max: CLIENTS })
  const text = `${SINGLE} where account_id = $1 and name = $2`
  const rate = await closedLoop({ callers: CLIENTS, milliseconds }, randomNumber, (n) =>
    pool.query({ name: 'single', text, values: [accountIdOf(n), nameOf(n)] }),
  )
  await pool.end()
  return rate
}

async function describeRows(admin: pg.Client): Promise<string> {
  await admin.query('select pg_stat_clear_snapshot()')
  const { rows } = await admin.query<{ share: number; size: string; index: string }>(
    `select n_tup_hot_upd::float8 / greatest(n_tup_upd, 1) share, pg_size_pretty(pg_relation_size(relid)) size,
       pg_size_pretty(pg_relation_size('watchdogs_check')) index
     from pg_stat_user_tables where relname = 'watchdogs'`,
  )
  const { share, size, index } = rows[0]!
  return `${figure(share * 100)} % of all updates wrote no index (HOT); the table has ${size}, the index of the checks ${index}`
}
