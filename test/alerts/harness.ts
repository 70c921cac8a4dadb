// An API, a worker's courier worked by hand, and a receiver; and alerts made as watchdogs make them, in the transaction of
// their receipts.
import { randomUUID } from 'node:crypto'
import { insertAccount } from '../../server/accounts/registration.ts'
import { type Alert, type AlertType, makeAlertId, sealAlert, subjectOf } from '../../server/alerts/format.ts'
import { insertAlerts, type NewAlert } from '../../server/alerts/outbox.ts'
import { insertWebhook, webhookSecret } from '../../server/alerts/webhooks.ts'
import { transact } from '../../server/db/pool.ts'
import type { Participant } from '../../server/receipts/chain.ts'
import { openWork, type Work } from '../../workers/context.ts'
import { type Front, openFront } from '../front.ts'
import { openQueue, type Queue } from '../queue.ts'
import { openReceiver, type Receiver } from './receiver.ts'

export interface Hook {
  id: string
  path: string
  url: string
  /** The first secret. */
  secret: string
  accountId: string
  apiKey: string
}

export interface AlertRow {
  id: string
  event_seq: number
  state: string
  attempts: number
  body: string
  /** Seconds until it is looked at; null: it is not. */
  wait_s: number | null
  /** One for each attempt: the status, or the words. */
  log: (number | string | null)[]
}

export interface Office extends AsyncDisposable {
  front: Front
  /** By how much the worker's clock is ahead of ours, in milliseconds. */
  clock: { aheadMs: number }
  work: Work
  queue: Queue
  receiver: Receiver
  /** A webhook at a path of its own, of an account of its own or of the account of another webhook. */
  makeHook(options?: { host?: string; url?: string; owner?: Hook }): Promise<Hook>
  /** So many alerts in the chain and in the outbox; their ids. */
  tell(hook: Hook, count?: number, type?: AlertType): Promise<string[]>
  /** Everything that waits for a time is due. */
  hasten(): Promise<void>
  /** What is due is sent, and what that makes due. */
  deliver(): Promise<void>
  alerts(hook: Hook): Promise<AlertRow[]>
  webhook(hook: Hook): Promise<{ state: string; slow: boolean; tried: boolean; sender: string | null }>
}

const outboxRows: Participant<Omit<NewAlert, 'body' | 'serial'> & { alert: Alert }> = {
  admit: async (_tx, items) => items.map(() => null),
  write: (tx, entries) =>
    insertAlerts(
      tx,
      entries.map(({ item: { alert, ...row }, attestation }) => ({
        ...row,
        body: sealAlert(alert, attestation),
        serial: attestation.serial,
      })),
    ),
}

export async function openOffice(hosts?: readonly [string, ...string[]]): Promise<Office> {
  await using opened = new AsyncDisposableStack()
  const receiver = opened.use(await openReceiver(hosts))
  const front = opened.use(await openFront(receiver.env))
  const clock = { aheadMs: 0 }
  const work = opened.use(await openWork({ ...front.core, now: () => Date.now() + clock.aheadMs }))
  const queue = opened.use(openQueue(work))
  const told = new Map<string, number>()
  const closing = opened.move()
  const { tables, core } = front

  async function makeHook({ host, url, owner }: { host?: string; url?: string; owner?: Hook } = {}): Promise<Hook> {
    const path = `/${randomUUID()}`
    const address = url ?? receiver.url(path, host)
    return transact(core.db, async (tx) => {
      const { accountId, apiKey } = owner ?? (await insertAccount(tx, `h-${randomUUID()}`))
      const id = await insertWebhook(tx, accountId, address)
      return { id, path, url: address, secret: webhookSecret(core.secrets.webhook, id, 1), accountId, apiKey }
    })
  }

  async function tell(hook: Hook, count = 1, type: AlertType = 'watchdog.missed') {
    const first = (told.get(hook.id) ?? 0) + 1
    told.set(hook.id, first + count - 1)
    const made = Array.from({ length: count }, async (_, index) => {
      const eventSeq = first + index
      const data = { event_seq: eventSeq, watchdog: 'nächtlich \u{1F6A2}', state: 'down' }
      const alert: Alert = { type, timestamp: new Date().toISOString(), data }
      const item = { id: makeAlertId(), webhookId: hook.id, eventSeq, type, alert }
      const companion = { kind: outboxRows, item }
      await core.chain.append({ subjectSha256: subjectOf(alert), label: type, requestedBy: 'watchdog', companion })
      return item.id
    })
    return Promise.all(made)
  }

  return {
    front,
    clock,
    work,
    queue,
    receiver,
    makeHook,
    tell,
    async hasten() {
      await tables.query('update alerts set next_attempt_at = now() where next_attempt_at is not null')
    },
    deliver: () => queue.drain(),
    async alerts(hook) {
      const { rows } = await tables.query<AlertRow>(
        `select id, event_seq::int, state, attempts, body,
                extract(epoch from next_attempt_at - now())::float8 wait_s,
                coalesce((select json_agg(case when t.status is null then to_json(t.error) else to_json(t.status) end
                                          order by t.attempt)
                          from alert_attempts t where t.alert_id = a.id), '[]') log
         from alerts a where webhook_id = $1 order by event_seq`,
        [hook.id],
      )
      return rows
    },
    async webhook(hook) {
      const { rows } = await tables.query('select state, tried, slow, sender::text from webhooks where id = $1', [
        hook.id,
      ])
      return rows[0]
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}
