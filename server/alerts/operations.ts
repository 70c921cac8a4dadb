// The operations on alerts. They are the same for each kind of owner; watchdogs and citation watches derive theirs from
// this file.
import { z } from 'zod'
import { type Tx, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { attestation } from '../interface/attestation.ts'
import { defineAccountExchange, defineAccountOperation, Reply, refuseOverflow, wholeNumber } from '../operation.ts'
import { Refused } from '../receipts/chain.ts'
import { alertRecord, findAlerts, findWebhookState, sendAgain } from './archive.ts'
import { noAlertsLeft } from './daily-allowance.ts'
import { ALERT_TYPES } from './format.ts'
import { requireRoom } from './outbox.ts'
import type { AlertDraft, Raise } from './raise.ts'
import { OVERLAP_HOURS, rotateSecret, WEBHOOK_STATES, webhookSecret } from './webhooks.ts'

/** A kind of owner, as its operations on alerts need it. */
interface Owner<
  List extends string,
  Redeliver extends string,
  Rotate extends string,
  Test extends string,
  Draft extends AlertDraft,
> {
  /** For summaries and messages. */
  noun: string
  path: string
  names: { list: List; redeliver: Redeliver; rotate: Rotate; test: Test }
  /** Schema of an owner's name. */
  name: z.ZodString
  /** Throws AppError `not_found`. */
  find(tx: Tx, accountId: string, name: string): Promise<{ webhook_id: string }>
  /** The draft of a test alert. Throws AppError `not_found`. @param nowMs milliseconds since the epoch */
  draftTest(tx: Tx, accountId: string, name: string, nowMs: number): Promise<Draft>
  raise: Raise<Draft>
}

/** An answer that no cache may keep: it shows a state that changes, or a secret. */
export function fresh<T>(body: T, status = 200): Reply<T> {
  return new Reply(body, { status, headers: { 'cache-control': 'no-store' } })
}

const MAX_PAGE = 100
/** Attempts to compose a test alert, which is composed again if its owner changes meanwhile. */
const MAX_ATTEMPTS = 5

export function defineAlertOperations<
  const L extends string,
  const D extends string,
  const R extends string,
  const T extends string,
  Draft extends AlertDraft,
>(owner: Owner<L, D, R, T, Draft>) {
  const { noun, path, names, name: ownerName, find } = owner

  const list = defineAccountOperation({
    name: names.list,
    summary: `The alerts of a ${noun}, newest first, with every attempt to deliver them`,
    method: 'GET',
    path: `${path}/{name}/alerts`,
    family: 'control',
    access: 'account',
    scope: 'watchdog:read',
    errors: ['not_found'],
    kind: 'transaction',
    input: z.strictObject({
      name: ownerName,
      limit: wholeNumber(1, MAX_PAGE).prefault(20),
      before: wholeNumber(1).optional().describe('`next` of the previous page.'),
    }),
    output: z.strictObject({
      webhook_state: z.enum(WEBHOOK_STATES),
      alerts: z.array(alertRecord),
      next: z.int().nullable(),
    }),
    async run({ name, limit, before }, { tx, caller }) {
      const { webhook_id } = await find(tx, caller.accountId, name)
      const found = await findAlerts(tx, webhook_id, { before, limit: limit + 1 })
      const alerts = found.slice(0, limit)
      const next = found.length > limit ? (alerts.at(-1)?.event_seq ?? null) : null
      return fresh({ webhook_state: await findWebhookState(tx, webhook_id), alerts, next })
    },
  })

  const redeliver = defineAccountOperation({
    name: names.redeliver,
    summary: `Send an alert of a ${noun} once more, with the same webhook-id`,
    description:
      'An alert in any state is sent to the current webhook_url. A settled one is tried once and keeps its state, unless ' +
      'it is delivered now. A disabled webhook stays disabled: a PUT with a webhook_url enables it.',
    method: 'POST',
    path: `${path}/{name}/alerts/{id}/redeliver`,
    family: 'control',
    access: 'account',
    scope: 'watchdog:write',
    statuses: [202],
    errors: ['not_found'],
    kind: 'transaction',
    input: z.strictObject({ name: ownerName, id: z.string() }),
    output: alertRecord,
    async run({ name, id }, { tx, caller }) {
      const { webhook_id } = await find(tx, caller.accountId, name)
      return fresh(await sendAgain(tx, webhook_id, id), 202)
    },
  })

  const rotate = defineAccountOperation({
    name: names.rotate,
    summary: `Make a new webhook secret for a ${noun}, shown once`,
    description: `For ${OVERLAP_HOURS} hours the older secrets sign too: \`webhook-signature\` then has several signatures.`,
    method: 'POST',
    path: `${path}/{name}/secret`,
    family: 'control',
    access: 'account',
    scope: 'watchdog:write',
    errors: ['not_found'],
    kind: 'transaction',
    input: z.strictObject({ name: ownerName }),
    output: z.strictObject({ name: z.string(), webhook_secret: z.string(), old_secrets_until: z.string() }),
    async run({ name }, { tx, caller, api }) {
      const { webhook_id } = await find(tx, caller.accountId, name)
      const { secret_version, old_secrets_until } = await rotateSecret(tx, webhook_id)
      const webhook_secret = webhookSecret(api.secrets.webhook, webhook_id, secret_version)
      return fresh({ name, webhook_secret, old_secrets_until })
    },
  })

  const test = defineAccountExchange({
    name: names.test,
    summary: `Send a test alert of a ${noun}`,
    description:
      'A test alert is treated like every alert: it has a receipt, is signed, and is retried until it arrives.',
    method: 'POST',
    path: `${path}/{name}/test`,
    family: 'control',
    access: 'account',
    scope: 'watchdog:write',
    errors: ['not_found', 'rate_limited', 'daily_limit', 'capacity_exceeded'],
    kind: 'exchange',
    input: z.strictObject({ name: ownerName }),
    output: z.strictObject({
      name: ownerName,
      alert: z.strictObject({
        id: z.string(),
        type: z.enum(ALERT_TYPES),
        event_seq: z.int(),
        created_at: z.string(),
      }),
      attestation: attestation.describe(
        'The receipt: its subject_sha256 is the SHA-256 of the RFC 8785 JSON of the alert.',
      ),
    }),
    async run({ name }, { api, caller }) {
      for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
        const draft = await transact(api.db, draftWithRoom(caller.accountId, name, api.now()), { readOnly: true })
        const raised = await owner.raise(api.chain, draft).catch(refuseOverflow)
        if (raised instanceof Refused) {
          if (raised.reason === 'daily_limit') throw noAlertsLeft()
          continue
        }
        const { id, alert } = draft
        const { type, timestamp: created_at, data } = alert
        const shown = { id, type, event_seq: data.event_seq, created_at }
        return fresh({ name, alert: shown, attestation: raised.attestation })
      }
      throw new AppError('capacity_exceeded', `The ${noun} keeps changing. Try again.`, {
        headers: { 'retry-after': '1' },
      })
    },
  })

  const draftWithRoom = (accountId: string, name: string, nowMs: number) => async (tx: Tx) => {
    const draft = await owner.draftTest(tx, accountId, name, nowMs)
    await requireRoom(tx, draft.webhookId)
    return draft
  }

  return { list, redeliver, rotate, test }
}
