// What may be asked of alerts. They belong to a watchdog or to a citation watch; the operations are the same for both.
import { z } from 'zod'
import type { Scope } from '../accounts/scopes.ts'
import { findWatch, watchName } from '../citations/watch.ts'
import type { Tx } from '../db/pool.ts'
import { attestation } from '../interface/result.ts'
import { defineAccountOperation, Reply, wholeNumber } from '../operation.ts'
import { findWatchdog, watchdogName } from '../watchdogs/watchdog.ts'
import { alertRecord, findWebhookState, listAlerts, redeliverAlert } from './archive.ts'
import { ALERT_TYPES } from './format.ts'
import { OVERLAP_HOURS, rotateWebhookSecret, WEBHOOK_STATES, webhookSecret } from './webhooks.ts'

/** What has a webhook. */
interface Owner<List extends string, Redeliver extends string, Rotate extends string> {
  /** What people call it. */
  noun: string
  path: string
  names: { list: List; redeliver: Redeliver; rotate: Rotate }
  scopes: { read: Scope; write: Scope }
  name: z.ZodString
  /** Throws AppError `not_found`. */
  find(tx: Tx, accountId: string, name: string): Promise<{ webhook_id: string }>
}

/** Nothing of this is good for a cache, least of all a secret. */
const FRESH = { 'cache-control': 'no-store' }
const MAX_PAGE = 100

/** What whoever asks for a test alert gets beside the name. */
export const toldAlert = {
  alert: z.strictObject({ id: z.string(), type: z.enum(ALERT_TYPES), event_seq: z.int(), created_at: z.string() }),
  attestation: attestation.describe(
    'The receipt: its subject_sha256 is the SHA-256 of the RFC 8785 JSON of the alert.',
  ),
}

function defineAlertOperations<const L extends string, const D extends string, const R extends string>(
  owner: Owner<L, D, R>,
) {
  const { noun, path, names, scopes, name: ownerName, find } = owner

  const list = defineAccountOperation({
    name: names.list,
    summary: `The alerts of a ${noun}, newest first, with every attempt to deliver them`,
    method: 'GET',
    path: `${path}/{name}/alerts`,
    family: 'control',
    access: 'account',
    scope: scopes.read,
    errors: ['not_found'],
    kind: 'transaction',
    input: z.strictObject({
      name: ownerName,
      limit: wholeNumber(1, MAX_PAGE).default(20),
      before: wholeNumber(1).optional().describe('`next` of the page before.'),
    }),
    output: z.strictObject({
      webhook_state: z.enum(WEBHOOK_STATES),
      alerts: z.array(alertRecord),
      next: z.int().nullable(),
    }),
    async run({ name, limit, before }, { tx, caller }) {
      const { webhook_id } = await find(tx, caller.accountId, name)
      const found = await listAlerts(tx, webhook_id, { before, limit: limit + 1 })
      const alerts = found.slice(0, limit)
      const next = found.length > limit ? (alerts.at(-1)?.event_seq ?? null) : null
      return new Reply({ webhook_state: await findWebhookState(tx, webhook_id), alerts, next }, { headers: FRESH })
    },
  })

  const redeliver = defineAccountOperation({
    name: names.redeliver,
    summary: 'Send an alert once more, with the same webhook-id',
    description:
      'Whatever became of it before, to the present webhook_url. One that was settled is tried once, and stays what it ' +
      'was unless it is delivered now. A webhook that is disabled stays so: a PUT with a webhook_url enables it.',
    method: 'POST',
    path: `${path}/{name}/alerts/{id}/redeliver`,
    family: 'control',
    access: 'account',
    scope: scopes.write,
    statuses: [202],
    errors: ['not_found'],
    kind: 'transaction',
    input: z.strictObject({ name: ownerName, id: z.string() }),
    output: alertRecord,
    async run({ name, id }, { tx, caller }) {
      const { webhook_id } = await find(tx, caller.accountId, name)
      return new Reply(await redeliverAlert(tx, webhook_id, id), { status: 202, headers: FRESH })
    },
  })

  const rotate = defineAccountOperation({
    name: names.rotate,
    summary: 'A new webhook secret, shown once',
    description: `The secrets before it go on signing beside it for ${OVERLAP_HOURS} hours: webhook-signature then has several v1.`,
    method: 'POST',
    path: `${path}/{name}/secret`,
    family: 'control',
    access: 'account',
    scope: scopes.write,
    errors: ['not_found'],
    kind: 'transaction',
    input: z.strictObject({ name: ownerName }),
    output: z.strictObject({ name: z.string(), webhook_secret: z.string(), old_secrets_until: z.string() }),
    async run({ name }, { tx, caller, api }) {
      const { webhook_id } = await find(tx, caller.accountId, name)
      const { secret_version, old_secrets_until } = await rotateWebhookSecret(tx, webhook_id)
      const webhook_secret = webhookSecret(api.secrets.webhook, webhook_id, secret_version)
      return new Reply({ name, webhook_secret, old_secrets_until }, { headers: FRESH })
    },
  })

  return { list, redeliver, rotate }
}

const scopes = { read: 'watchdog:read', write: 'watchdog:write' } as const

export const watchdogAlerts = defineAlertOperations({
  noun: 'watchdog',
  path: '/v1/watchdog',
  names: { list: 'list_alerts', redeliver: 'redeliver_alert', rotate: 'rotate_webhook_secret' },
  scopes,
  name: watchdogName,
  find: findWatchdog,
})

export const citationAlerts = defineAlertOperations({
  noun: 'citation watch',
  path: '/v1/citation-watch',
  names: {
    list: 'list_citation_alerts',
    redeliver: 'redeliver_citation_alert',
    rotate: 'rotate_citation_webhook_secret',
  },
  scopes,
  name: watchName,
  find: findWatch,
})
