// One attempt to deliver one alert: it is signed, posted, judged and settled.
import type { Core } from '../context.ts'
import { AppError } from '../errors.ts'
import type { Outbound } from '../outbound/connection.ts'
import { annotate, inSpan, inTrace, processing } from '../tracing/spans.ts'
import { bodyFor } from './chat.ts'
import { type Attempt, type ClaimedAlert, type Decision, LeaseLostError, settleAttempt } from './claims.ts'
import { signedHeaders } from './format.ts'
import { type Answer, FIRST_TIMEOUT_MS, type Message, postAlert, TIMEOUT_MS } from './post.ts'
import { decide } from './schedule.ts'
import { webhookSecret } from './webhooks.ts'

/** What a delivery needs. */
export type DeliveryTools = Pick<Core, 'db' | 'log' | 'now' | 'config' | 'keys' | 'secrets' | 'metrics' | 'tracing'> & {
  outbound: Outbound
}

/**
 * Sends a claimed alert and settles it. Never throws: an alert that cannot be settled is claimed again after its lease.
 * @param overdue whether the attempt has taken long so far
 */
export function deliver(claimed: ClaimedAlert, tools: DeliveryTools, overdue: () => boolean): Promise<void> {
  const { type, attempts } = claimed.alert
  const attributes = { 'countersign.alert.type': type, 'countersign.alert.attempt': attempts + 1 }
  return inTrace(tools.tracing, ...processing('deliver_alerts', { parent: claimed.alert, attributes }), () =>
    attempt(claimed, tools, overdue),
  )
}

async function attempt(claimed: ClaimedAlert, tools: DeliveryTools, overdue: () => boolean): Promise<void> {
  try {
    const { answer, attempt } = await send(claimed, tools)
    const decision = decide(claimed.alert, answer)
    annotate({ 'countersign.alert.outcome': LABELS[decision.outcome] })
    const slow = decision.outcome !== 'delivered' || overdue()
    await settleAttempt(tools, claimed, attempt, { decision, slow })
    report(tools, claimed, attempt, decision)
  } catch (error) {
    const { alert, webhook } = claimed
    const event = error instanceof LeaseLostError ? 'alert_overtaken' : 'alert_unsettled'
    tools.log.warn({ event, alert_id: alert.id, webhook_id: webhook.id, err: error })
  }
}

async function send(claimed: ClaimedAlert, tools: DeliveryTools): Promise<{ answer: Answer | null; attempt: Attempt }> {
  const atMs = tools.now()
  const began = performance.now()
  const { answer, error } = await post(claimed, tools, atMs)
  const ms = Math.round(performance.now() - began)
  return { answer, attempt: { atMs, ms, status: answer?.status ?? null, error } }
}

async function post(
  claimed: ClaimedAlert,
  tools: DeliveryTools,
  atMs: number,
): Promise<{ answer: Answer | null; error: string | null }> {
  try {
    const timeoutMs = claimed.webhook.lane === 'untried' ? FIRST_TIMEOUT_MS : TIMEOUT_MS
    const address = { 'http.request.method': 'POST', 'server.address': new URL(claimed.webhook.url).hostname }
    const answer = await inSpan('POST', { kind: 'client', attributes: address }, async () => {
      const answer = await postAlert(messageOf(claimed, tools, atMs), tools.outbound, timeoutMs)
      annotate({ 'http.response.status_code': answer.status })
      return answer
    })
    return { answer, error: failureOf(answer) }
  } catch (thrown) {
    if (thrown instanceof AppError) return { answer: null, error: thrown.message }
    tools.log.error({ event: 'alert_error', alert_id: claimed.alert.id, err: thrown })
    return { answer: null, error: 'It was not sent because of a fault of the service.' }
  }
}

/** The message of this attempt. The id and the body are the same at each attempt; timestamp and signatures are not. */
function messageOf({ webhook, alert }: ClaimedAlert, { config, keys, secrets }: DeliveryTools, atMs: number): Message {
  const body = bodyFor(webhook.url, alert.body, config.baseUrl && `${config.baseUrl}/account`)
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

function failureOf({ status }: Answer): string | null {
  if (status >= 200 && status < 300) return null
  if (status >= 300 && status < 400) return `The receiver answered with status ${status}; redirects are not followed.`
  return `The receiver answered with status ${status}.`
}

function report(
  { log, metrics }: DeliveryTools,
  { alert, webhook }: ClaimedAlert,
  attempt: Attempt,
  decision: Decision,
) {
  metrics.alertAttempts.inc({ outcome: LABELS[decision.outcome] })
  const about = { alert_id: alert.id, webhook_id: webhook.id, type: alert.type, attempt: alert.attempts + 1 }
  const { ms, status, error } = attempt
  const retry = decision.outcome === 'retry' && { retry_s: Math.round(decision.seconds) }
  log.info({
    event: 'alert_attempt',
    ...about,
    outcome: decision.outcome,
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
} as const satisfies Record<Decision['outcome'], string>
