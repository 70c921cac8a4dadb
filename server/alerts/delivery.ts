// One attempt at one alert: signed, posted, judged, settled.

import type { Work } from '../../workers/context.ts'
import { AppError } from '../errors.ts'
import { type Attempt, type ClaimedAlert, LeaseLostError, settleAttempt, type Verdict } from './claims.ts'
import { signedHeaders } from './format.ts'
import { type Answer, FIRST_TIMEOUT_MS, type Message, postAlert, TIMEOUT_MS } from './post.ts'
import { judge } from './schedule.ts'
import { webhookSecret } from './webhooks.ts'

/**
 * Sends a claimed alert and settles it. Never throws: what cannot be settled is claimed again when the lease has run out.
 * @param overdue whether it has taken long by now
 */
export async function deliver(taken: ClaimedAlert, work: Work, overdue: () => boolean): Promise<void> {
  try {
    const { answer, attempt } = await send(taken, work)
    const verdict = judge(taken.alert, answer)
    const slow = verdict.outcome !== 'delivered' || overdue()
    await settleAttempt(work, taken, attempt, { verdict, slow })
    report(work, taken, attempt, verdict)
  } catch (error) {
    const { alert, webhook } = taken
    const event = error instanceof LeaseLostError ? 'alert_overtaken' : 'alert_unsettled'
    work.log.warn({ event, alert_id: alert.id, webhook_id: webhook.id, err: error })
  }
}

async function send(taken: ClaimedAlert, work: Work): Promise<{ answer: Answer | null; attempt: Attempt }> {
  const atMs = work.now()
  const began = performance.now()
  const { answer, error } = await post(taken, work, atMs)
  const ms = Math.round(performance.now() - began)
  return { answer, attempt: { atMs, ms, status: answer?.status ?? null, error } }
}

async function post(
  taken: ClaimedAlert,
  work: Work,
  atMs: number,
): Promise<{ answer: Answer | null; error: string | null }> {
  try {
    const timeoutMs = taken.webhook.lane === 'untried' ? FIRST_TIMEOUT_MS : TIMEOUT_MS
    const answer = await postAlert(write(taken, work, atMs), work.outbound, timeoutMs)
    return { answer, error: describe(answer) }
  } catch (thrown) {
    if (thrown instanceof AppError) return { answer: null, error: thrown.message }
    work.log.error({ event: 'alert_error', alert_id: taken.alert.id, err: thrown })
    return { answer: null, error: 'A fault of ours kept it from being sent.' }
  }
}

/** Id and bytes are the same at each attempt; timestamp and signatures are of this attempt. */
function write({ webhook, alert }: ClaimedAlert, { config, keys, secrets }: Work, atMs: number): Message {
  const body = Buffer.from(alert.body)
  const versions = Array.from({ length: webhook.old_secrets + 1 }, (_, back) => webhook.secret_version - back)
  const signers = {
    secrets: versions.filter((version) => version > 0).map((v) => webhookSecret(secrets.webhook, webhook.id, v)),
    key: keys.webhook,
  }
  const headers = {
    'content-type': 'application/json',
    'user-agent': `Countersign-Alerts/1.0${config.baseUrl ? ` (+${config.baseUrl}/)` : ''}`,
    ...signedHeaders(alert.id, body, Math.floor(atMs / 1000), signers),
  }
  return { url: webhook.url, headers, body }
}

function describe({ status }: Answer): string | null {
  if (status >= 200 && status < 300) return null
  if (status >= 300 && status < 400) return `The receiver answered with status ${status}; redirects are not followed.`
  return `The receiver answered with status ${status}.`
}

function report({ log, metrics }: Work, { alert, webhook }: ClaimedAlert, attempt: Attempt, verdict: Verdict) {
  metrics.alertAttempts.inc({ outcome: LABELS[verdict.outcome] })
  const about = { alert_id: alert.id, webhook_id: webhook.id, type: alert.type, attempt: alert.attempts + 1 }
  const { ms, status, error } = attempt
  const retry = verdict.outcome === 'retry' && { retry_s: Math.round(verdict.seconds) }
  log.info({
    event: 'alert_attempt',
    ...about,
    outcome: verdict.outcome,
    ms,
    status,
    ...(error && { error }),
    ...retry,
  })
}

const LABELS = {
  delivered: 'delivered',
  retry: 'retry',
  'given up': 'given_up',
  unwanted: 'unwanted',
} as const satisfies Record<Verdict['outcome'], string>
