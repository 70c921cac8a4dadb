// An API, the parts of a worker, whose queue a test drains, and a receiver of webhooks. Alerts are raised as owners raise them.
import { randomUUID } from 'node:crypto'
import { insertAccount } from '../../server/accounts/registration.ts'
import type { AlertType } from '../../server/alerts/format.ts'
import { type AlertDraft, composeAlert, raiserOf } from '../../server/alerts/raise.ts'
import { insertWebhook, webhookSecret } from '../../server/alerts/webhooks.ts'
import { transact } from '../../server/db/pool.ts'
import { openWork, type Work } from '../../workers/context.ts'
import { type ApiHarness, openApiHarness } from '../api-harness.ts'
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
  /** Seconds until it is due; null without a due time. */
  wait_s: number | null
  /** One for each attempt: the status, or the error. */
  log: (number | string | null)[]
}

export interface AlertHarness extends AsyncDisposable {
  front: ApiHarness
  /** By how many milliseconds the worker's clock is ahead. */
  clock: { aheadMs: number }
  work: Work
  queue: Queue
  receiver: Receiver
  /** A webhook at a new path, of a new account or of the account of another webhook. */
  makeHook(options?: { host?: string; url?: string; owner?: Hook }): Promise<Hook>
  /** Raises so many alerts, by default one; answers their ids. */
  raise(hook: Hook, count?: number, type?: AlertType): Promise<string[]>
  /** Makes every alert with a due time due now. */
  hasten(): Promise<void>
  /** Sends the alerts that are due, and those that become due as a result. */
  deliver(): Promise<void>
  alerts(hook: Hook): Promise<AlertRow[]>
  webhook(hook: Hook): Promise<{ state: string; slow: boolean; tried: boolean; sender: string | null }>
}

/** Each alert has an owner of its own, which always fits. */
const raiseAlert = raiserOf<AlertDraft, { id: string }>({
  requestedBy: 'watchdog',
  lock: async (_tx, ids) => ids.map((id) => ({ id })),
  isCurrent: () => true,
  apply: async () => {},
})

const ALERT_DATA = { watchdog: 'nächtlich \u{1F6A2}', state: 'down' }

export async function openAlertHarness(hosts?: readonly [string, ...string[]]): Promise<AlertHarness> {
  await using opened = new AsyncDisposableStack()
  const receiver = opened.use(await openReceiver(hosts))
  const front = opened.use(await openApiHarness(receiver.env))
  const clock = { aheadMs: 0 }
  const work = opened.use(await openWork({ ...front.core, now: () => Date.now() + clock.aheadMs }))
  const queue = opened.use(openQueue(work))
  /** Alerts raised so far, by webhook id. */
  const raised = new Map<string, number>()
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

  async function raise(hook: Hook, count = 1, type: AlertType = 'watchdog.missed') {
    const before = raised.get(hook.id) ?? 0
    raised.set(hook.id, before + count)
    const drafts = Array.from({ length: count }, (_, index) => ({
      ...composeAlert(type, new Date().toISOString(), { event_seq: before + index }, ALERT_DATA),
      ownerId: randomUUID(),
      accountId: hook.accountId,
      webhookId: hook.id,
      cause: null,
    }))
    await Promise.all(drafts.map((draft) => raiseAlert(core.chain, draft)))
    return drafts.map(({ id }) => id)
  }

  return {
    front,
    clock,
    work,
    queue,
    receiver,
    makeHook,
    raise,
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
