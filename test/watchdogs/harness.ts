// A service with watchdogs whose time a test moves: by steps so long that the time that the test itself takes does not matter.
import type { Api } from '../../server/context.ts'
import { type Database, nothing, sql } from '../../server/db/pool.ts'
import { scanWatchdogs } from '../../server/watchdogs/scan.ts'
import { type Account, type AccountHarness, type Answer, openAccountHarness } from '../accounts/harness.ts'

export const HOOK = 'https://example.com/hook'

export interface AlertRow {
  event_seq: number
  type: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any
  serial: number
}

export interface WatchdogHarness extends AccountHarness {
  /** Makes or changes a watchdog, by default with an interval of 60,000 and a grace of 10,000 seconds. */
  putWatchdog(owner: Account, name: string, terms?: object): Promise<Answer>
  beat(owner: Account, name: string, body?: object): Promise<Answer>
  show(owner: Account, name: string): Promise<Answer['body']>
  /** Moves the times of the watchdogs of an account into the past by so many seconds. */
  pass(owner: Account, seconds: number): Promise<void>
  /** One scan up to now, as if the last had been `step` seconds ago, by default one. Answers how many alerts it raised. */
  scan(step?: number, tools?: Api): Promise<number>
  /** One scan up to a second after the last one, so that delays of a few seconds are not over. */
  scanAgain(): Promise<number>
  /** The alerts in the outbox of one watchdog, in order. */
  alerts(owner: Account, name: string): Promise<AlertRow[]>
}

const TIMES = [
  'started_at',
  'last_beat_at',
  'failed_at',
  'down_since',
  'revived_at',
  'reminded_at',
  'paused_until',
  'check_at',
  'outages_full_at',
  'fails_wait_until',
]

export async function openWatchdogHarness(env: Record<string, string> = {}): Promise<WatchdogHarness> {
  const service = await openAccountHarness(env)
  const { tables, api } = service
  return {
    ...service,
    putWatchdog: (owner, name, terms) =>
      owner.call('PUT', `/v1/watchdog/${name}`, {
        body: { interval_s: 60_000, grace_s: 10_000, webhook_url: HOOK, ...terms },
      }),
    beat: (owner, name, body) => owner.call('POST', `/v1/heartbeat/${name}`, { body }),
    show: async (owner, name) => (await owner.call('GET', `/v1/watchdog/${name}`)).body,
    async pass(owner, seconds) {
      const back = TIMES.map((column) => `${column} = ${column} - $2 * interval '1 second'`).join(', ')
      await tables.query(
        `update watchdogs set ${back} where account_id = (select id from accounts where handle = $1)`,
        [owner.handle, seconds],
      )
    },
    scan: (step = 1, tools = api) =>
      scanAt(tools, sql.fragment`open_at = now(), seen_at = now() - ${step} * interval '1 second'`),
    scanAgain: () => scanAt(api, sql.fragment`open_at = seen_at + interval '1 second'`),
    async alerts(owner, name) {
      const { rows } = await tables.query(
        `select a.event_seq::int, a.type, a.body::json body, a.serial::int from alerts a
         join watchdogs w on w.webhook_id = a.webhook_id join accounts o on o.id = w.account_id
         where o.handle = $1 and w.name = $2 order by a.event_seq`,
        [owner.handle, name],
      )
      return rows
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** A harness with one account and its watchdog `w`. */
export async function openSingleWatchdog(terms?: object, tier: 'free' | 'dev' = 'dev') {
  const harness = await openWatchdogHarness()
  const owner = await harness.register({ tier })
  await harness.putWatchdog(owner, 'w', terms)
  return {
    ...harness,
    owner,
    sendBeat: (body?: object) => harness.beat(owner, 'w', body),
    state: async (): Promise<string> => (await harness.show(owner, 'w')).state,
    after: (seconds: number) => harness.pass(owner, seconds),
    alertsSoFar: () => harness.alerts(owner, 'w'),
    /** Without `watchdog.`, in order. */
    alertTypes: async () => (await harness.alerts(owner, 'w')).map(({ type }) => type.replace('watchdog.', '')),
    [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose](),
  }
}
export type SingleWatchdog = Awaited<ReturnType<typeof openSingleWatchdog>>

/** Sets the clocks of the scan in the transaction that takes the step, so that no intake clock sets them in between. */
async function scanAt({ db, ...tools }: Api, clock: ReturnType<typeof sql.fragment>): Promise<number> {
  const transaction: Database['transaction'] = (work, retries) =>
    db.transaction(async (tx) => {
      await tx.query(sql.type(nothing)`update watchdog_scans set ${clock}`)
      return work(tx)
    }, retries)
  const raised = await scanWatchdogs({ ...tools, db: { ...db, transaction } })
  if (raised === null) throw new Error('there was no step to take')
  return raised
}
