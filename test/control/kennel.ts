// Watchdogs of an office, and time for them: it goes by when a test says so.

import { scanWatchdogs } from '../../workers/alerts/scan.ts'
import { type Account, type Answer, type Office, openOffice } from './office.ts'

export const HOOK = 'https://example.com/hook'

export interface AlertRow {
  event_seq: number
  type: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any
  serial: number
}

export interface Kennel extends Office {
  /** Makes a watchdog of the account, by default one with an interval of 60 and a grace of 10 seconds. */
  guard(owner: Account, name: string, terms?: object): Promise<Answer>
  beat(owner: Account, name: string, body?: object): Promise<Answer>
  show(owner: Account, name: string): Promise<Answer['body']>
  /** As if so much more time had gone by for the watchdogs of an account. */
  pass(owner: Account, seconds: number): Promise<void>
  /** One scan; answers how many alerts it told. */
  scan(): Promise<number>
  /** What went into the outbox for one watchdog, in order. */
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
]

export async function openKennel(): Promise<Kennel> {
  const office = await openOffice()
  const { tables, api } = office
  return {
    ...office,
    guard: (owner, name, terms) =>
      owner.call('PUT', `/v1/watchdog/${name}`, {
        body: { interval_s: 60, grace_s: 10, webhook_url: HOOK, ...terms },
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
    async scan() {
      for (;;) {
        // Up to now, and as if the last scan had been a moment ago.
        await tables.query(`
          update watchdog_scans set open_at = clock_timestamp(), seen_at = clock_timestamp() - interval '1 second'`)
        const told = await scanWatchdogs(api)
        // Null: the API process was just saying that it is there.
        if (told !== null) return told
      }
    },
    async alerts(owner, name) {
      const { rows } = await tables.query(
        `select a.event_seq::int, a.type, a.body::json body, a.serial::int from alerts a
         join watchdogs w on w.webhook_id = a.webhook_id join accounts o on o.id = w.account_id
         where o.handle = $1 and w.name = $2 order by a.event_seq`,
        [owner.handle, name],
      )
      return rows
    },
    [Symbol.asyncDispose]: () => office[Symbol.asyncDispose](),
  }
}
