// The operations on citation watches: a quote of a completed verification is checked regularly, and its account gets an alert
// when the quote is not on the page any more.
import { z } from 'zod'
import { lockAccount } from '../accounts/account.ts'
import { LIMITS, tierLimit } from '../accounts/tiers.ts'
import { defineAlertOperations, fresh } from '../alerts/operations.ts'
import {
  deleteWebhook,
  insertWebhook,
  readWebhookUrl,
  updateWebhookUrl,
  WEBHOOK_STATES,
  webhookSecret,
  webhookUrl,
} from '../alerts/webhooks.ts'
import type { Api } from '../context.ts'
import type { Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { evidence, source } from '../interface/result.ts'
import { sha256Hex, timestamp } from '../interface/scalars.ts'
import { type AccountCall, defineAccountOperation, Reply } from '../operation.ts'
import { sha256 } from '../receipts/format.ts'
import { findResult } from '../verification/lookup.ts'
import { isRecoveryToken } from '../verification/recovery-token.ts'
import { draftTest, raiseCitationAlert } from './alerts.ts'
import {
  CITATION_STATES,
  type Citation,
  type CitationWatch,
  check,
  countWatches,
  deleteWatch,
  findWatch,
  findWatches,
  hastenCheck,
  insertWatch,
  MAX_EVERY_HOURS,
  MIN_EVERY_HOURS,
  seekWatch,
  sighting,
  updateWatch,
  watchName,
} from './watch.ts'

const watchOutput = z.strictObject({
  name: watchName,
  source_url: z.string(),
  quote: z.string(),
  quote_sha256: sha256Hex,
  request_id: z.string(),
  evidence_id: z.string(),
  every_hours: z.int(),
  webhook_url: z.string(),
  webhook_state: z.enum(WEBHOOK_STATES),
  state: z.enum(CITATION_STATES),
  failures: z.int().describe('Checks in a row in which the page could not be read.'),
  last_seen: sighting.describe('The last observation in which the quote was found.'),
  last_check: check.nullable(),
  next_check_at: z.string(),
  event_seq: z.int().describe('Alerts so far.'),
  created_at: z.string(),
})
const byName = z.strictObject({ name: watchName })

export const putCitationWatch = defineAccountOperation({
  name: 'put_citation_watch',
  summary: 'Watch a quote of a completed verification',
  description:
    'The page is read again every `every_hours` hours. When the quote is not in its text any more, an alert is sent: ' +
    'citation.changed with the most similar passage, citation.vanished when there is none or the page cannot be read ' +
    'three times in a row; citation.restored when the quote is back. request_id, recovery_token and evidence_id name the ' +
    'quote; leave all three out to change every_hours or the webhook of an existing watch.',
  method: 'PUT',
  path: '/v1/citation-watch/{name}',
  family: 'control',
  access: 'account',
  scope: 'watchdog:write',
  statuses: [200, 201],
  errors: ['tier_limit', 'not_found', 'result_expired'],
  kind: 'transaction',
  input: z.strictObject({
    name: watchName,
    webhook_url: webhookUrl,
    every_hours: z.int().min(MIN_EVERY_HOURS).max(MAX_EVERY_HOURS).default(24),
    request_id: z.string().optional(),
    recovery_token: z.string().max(200).optional(),
    evidence_id: z.string().max(10).optional(),
  }),
  output: watchOutput.extend({ webhook_secret: z.string().optional().describe('Once, when the watch is made.') }),
  async run(input, call) {
    const { tx, api, caller } = call
    const url = readWebhookUrl(input.webhook_url, api.config)
    const citation = await findCitation(input, api, tx)
    await lockAccount(tx, caller.accountId)
    const present = await seekWatch(tx, caller.accountId, input.name)
    if (!present) return makeWatch(input, { url, citation }, call)
    await updateWebhookUrl(tx, present.webhook_id, url)
    await updateWatch(tx, present, { everyHours: input.every_hours, citation })
    return fresh(describe(await findWatch(tx, caller.accountId, input.name)))
  },
})

async function makeWatch(
  input: { name: string; every_hours: number },
  { url, citation }: { url: string; citation: Citation | null },
  { tx, api, caller }: AccountCall & { tx: Tx },
) {
  if (!citation)
    throw new AppError('invalid_request', 'A new citation watch needs request_id, recovery_token and evidence_id.')
  const { accountId, tier } = caller
  if ((await countWatches(tx, accountId)) >= LIMITS[tier].citation_watches) throw tierLimit('citation_watches', tier)
  const webhookId = await insertWebhook(tx, accountId, url)
  await insertWatch(tx, { accountId, name: input.name, webhookId, everyHours: input.every_hours, citation })
  const made = await findWatch(tx, accountId, input.name)
  const webhook_secret = webhookSecret(api.secrets.webhook, webhookId, made.secret_version)
  return fresh({ ...describe(made), webhook_secret }, 201)
}

/** The parts of a completed result that a citation needs. */
const citedResult = z.object({
  checked_at: timestamp,
  source: z.object(source.pick({ requested_url: true, content_sha256: true, text_sha256: true }).shape),
  evidence: z.array(z.object(evidence.pick({ evidence_id: true, quote: true, start: true, end: true }).shape)),
})

interface QuoteReference {
  request_id?: string
  recovery_token?: string
  evidence_id?: string
}

/** The quote that the input names; null when it names none. The recovery token proves that the result is the caller's. */
async function findCitation(
  { request_id, recovery_token, evidence_id }: QuoteReference,
  api: Api,
  tx: Tx,
): Promise<Citation | null> {
  if (request_id === undefined && recovery_token === undefined && evidence_id === undefined) return null
  if (request_id === undefined || recovery_token === undefined || evidence_id === undefined)
    throw new AppError('invalid_request', 'request_id, recovery_token and evidence_id go together.')
  const id = request_id.toLowerCase()
  if (!z.uuid().safeParse(id).success || !isRecoveryToken(api.secrets.recovery, id, recovery_token))
    throw new AppError('not_found', 'There is no such request, or the recovery token is not of this request.')
  const stored = await findResult(tx, id, api.config)
  if (!stored)
    throw new AppError('result_expired', 'The request has no result: it is not completed, or past its retention.')
  const result = citedResult.parse(JSON.parse(stored.result.toString()))
  const cited = result.evidence.find((item) => item.evidence_id === evidence_id)
  if (!cited) throw new AppError('invalid_request', `evidence_id: the result has no evidence "${evidence_id}".`)
  const { start, end } = cited
  const { requested_url, content_sha256, text_sha256 } = result.source
  return {
    requestId: id,
    evidenceId: cited.evidence_id,
    sourceUrl: requested_url,
    quote: cited.quote,
    seen: { checked_at: result.checked_at, content_sha256, text_sha256, start, end },
  }
}

export const getCitationWatch = defineAccountOperation({
  name: 'get_citation_watch',
  summary: 'One citation watch with the outcome of its last check',
  method: 'GET',
  path: '/v1/citation-watch/{name}',
  family: 'control',
  access: 'account',
  scope: 'watchdog:read',
  errors: ['not_found'],
  kind: 'transaction',
  input: byName,
  output: watchOutput,
  run: async ({ name }, { tx, caller }) => fresh(describe(await findWatch(tx, caller.accountId, name))),
})

export const listCitationWatches = defineAccountOperation({
  name: 'list_citation_watches',
  summary: "The account's citation watches, by name",
  method: 'GET',
  path: '/v1/citation-watch',
  family: 'control',
  access: 'account',
  scope: 'watchdog:read',
  kind: 'transaction',
  input: z.strictObject({}),
  output: z.strictObject({ citation_watches: z.array(watchOutput) }),
  run: async (_input, { tx, caller }) =>
    fresh({ citation_watches: (await findWatches(tx, caller.accountId)).map(describe) }),
})

export const deleteCitationWatch = defineAccountOperation({
  name: 'delete_citation_watch',
  summary: 'Delete a citation watch and its alerts, sent or not',
  method: 'DELETE',
  path: '/v1/citation-watch/{name}',
  family: 'control',
  access: 'account',
  scope: 'watchdog:write',
  statuses: [204],
  errors: ['not_found'],
  kind: 'transaction',
  input: byName,
  output: z.null(),
  async run({ name }, { tx, caller }) {
    const watch = await findWatch(tx, caller.accountId, name)
    await deleteWatch(tx, watch.id)
    await deleteWebhook(tx, watch.webhook_id)
    return new Reply(null, { status: 204 })
  },
})

const SPACING_SECONDS = 60

export const checkCitationWatch = defineAccountOperation({
  name: 'check_citation_watch',
  summary: 'Check a watched quote soon',
  description: `A worker makes the check, at the earliest ${SPACING_SECONDS} seconds after the last one; next_check_at says when.`,
  method: 'POST',
  path: '/v1/citation-watch/{name}/check',
  family: 'control',
  access: 'account',
  scope: 'watchdog:write',
  errors: ['not_found'],
  kind: 'transaction',
  input: byName,
  output: watchOutput,
  async run({ name }, { tx, caller }) {
    const { id } = await findWatch(tx, caller.accountId, name)
    await hastenCheck(tx, id, SPACING_SECONDS)
    return fresh(describe(await findWatch(tx, caller.accountId, name)))
  },
})

export const {
  list: listCitationAlerts,
  redeliver: redeliverCitationAlert,
  rotate: rotateCitationWebhookSecret,
  test: testCitationWatch,
} = defineAlertOperations({
  noun: 'citation watch',
  path: '/v1/citation-watch',
  names: {
    list: 'list_citation_alerts',
    redeliver: 'redeliver_citation_alert',
    rotate: 'rotate_citation_webhook_secret',
    test: 'test_citation_watch',
  },
  name: watchName,
  find: findWatch,
  draftTest,
  raise: raiseCitationAlert,
})

function describe(watch: CitationWatch): z.output<typeof watchOutput> {
  const { id: _id, account_id: _account, webhook_id: _webhook, secret_version: _version, due: _due, ...shown } = watch
  return { ...shown, quote_sha256: sha256(watch.quote) }
}
