// Shared by `countersign watchdog` and `countersign citation`: test a webhook, list and repeat its alerts, and replace its
// secret.
import type { AlertHistory, AlertRecord, Countersign, NewSecret, TestAlert } from '../client.ts'
import { type Command, command } from './command.ts'
import { fields, table } from './tables.ts'
import { ACCOUNT, answer, answerWithSecret, collect, LIMIT, openAccount, readWhole, SAVE } from './toolkit.ts'

const PAGE = 100

export interface WebhookOperations {
  test(account: Countersign, input: { name: string }): Promise<TestAlert>
  alerts(account: Countersign, input: { name: string; limit: number; before?: number }): Promise<AlertHistory>
  redeliver(account: Countersign, input: { name: string; id: string }): Promise<AlertRecord>
  rotate(account: Countersign, input: { name: string }): Promise<NewSecret>
}

/** @param noun the first word of the commands */
export function webhookCommands(noun: string, operations: WebhookOperations): Record<string, Command> {
  const test = command({
    summary: 'send a test alert',
    operands: ['NAME'],
    examples: [`countersign ${noun} test NAME`],
    options: ACCOUNT,
    async run([name = ''], options) {
      const sent = await operations.test(await openAccount(options), { name })
      return answer(sent, options.json, () =>
        fields({ name, alert: sent.alert.id, type: sent.alert.type, receipt: sent.attestation.serial }),
      )
    },
  })
  const alerts = command({
    summary: 'the alerts and whether they arrived, newest first',
    operands: ['NAME'],
    examples: [`countersign ${noun} alerts NAME --limit 10`],
    options: { ...ACCOUNT, ...LIMIT },
    async run([name = ''], options) {
      const limit = readWhole('--limit', options.limit)
      const account = await openAccount(options)
      let webhook_state: string | null = null
      const { rows, next } = await collect(limit, PAGE, async (limit, before) => {
        const page = await operations.alerts(account, {
          name,
          limit,
          before: before === undefined ? undefined : Number(before),
        })
        webhook_state = page.webhook_state
        return { rows: page.alerts, next: page.next }
      })
      return answer({ webhook_state, alerts: rows, next }, options.json, () =>
        [fields({ webhook: webhook_state }), table(rows, ALERT_COLUMNS)].join('\n\n'),
      )
    },
  })
  const redeliver = command({
    summary: 'send an alert again',
    operands: ['NAME', 'ALERT_ID'],
    examples: [`countersign ${noun} redeliver NAME ALERT_ID`],
    options: ACCOUNT,
    async run([name = '', id = ''], options) {
      const alert = await operations.redeliver(await openAccount(options), { name, id })
      return answer(alert, options.json, () => fields({ alert: alert.id, type: alert.type, state: alert.state }))
    },
  })
  const rotate = command({
    summary: 'another secret for the webhook, shown once',
    operands: ['NAME'],
    about: 'The old secret also signs for a while; the answer says until when.',
    examples: [`countersign ${noun} rotate-secret NAME --save hook.secret`],
    options: { ...ACCOUNT, ...SAVE },
    async run([name = ''], options) {
      const account = await openAccount(options)
      return answerWithSecret(
        () => operations.rotate(account, { name }),
        'webhook_secret',
        options,
        (made) => fields({ name, secret: made.webhook_secret, 'old ones until': made.old_secrets_until }),
      )
    },
  })
  return { test, alerts, redeliver, 'rotate-secret': rotate }
}

const ALERT_COLUMNS = {
  id: ({ id }: AlertRecord) => id,
  type: ({ type }: AlertRecord) => type,
  state: ({ state }: AlertRecord) => state,
  created: ({ created_at }: AlertRecord) => created_at,
  attempts: ({ attempts }: AlertRecord) => attempts.length,
  receipt: ({ serial }: AlertRecord) => serial,
}
