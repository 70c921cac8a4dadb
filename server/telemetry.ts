// Logs and metrics. Labels come from closed sets (operation, code, stage, job), never from URLs, keys or messages.
import { type Logger, type LoggerOptions, pino } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { UnavailableError } from './errors.ts'

export type { Logger }

/**
 * Fields that are redacted in every log line. This is a second defence: no event logs a secret in the first place. The names are
 * those of HTTP headers, tool arguments, `_meta` and objects of this service.
 */
const SECRET_FIELDS = [
  'authorization',
  'payment-signature',
  'x-payment',
  'idempotency-key',
  'x-service-recovery-token',
  'service_key',
  'api_key',
  'recovery_token',
  'webhook_secret',
  'signature',
  'payload',
  'payment_sealed',
  'x402/payment',
  'service/idempotency-key',
  'service/recovery-token',
  'taskId',
]

/** A log of JSON lines on stdout, or `stream`. Secret fields are redacted at the top level and at the two levels below. */
export function openLog(level: string, stream?: { write(line: string): void }): Logger {
  const quoted = SECRET_FIELDS.map((field) => `["${field}"]`)
  const options = {
    level,
    base: undefined,
    redact: {
      paths: quoted.flatMap((field) => [field, `*${field}`, `*.*${field}`]),
      censor: '[redacted]',
    },
    serializers: { err: describeError, error: describeError },
    hooks: { logMethod: demoteOutages },
  }
  return stream ? pino(options, stream) : pino(options)
}

/**
 * While the database is away, every loop and every call fails. That is one fact, which its outage logs, so events with such an
 * error have level debug.
 */
const demoteOutages: LoggerOptions['hooks'] & object extends { logMethod?: infer Method } ? Method : never = function (
  args,
  method,
  level,
) {
  const [fields] = args as unknown[]
  const isOutage = typeof fields === 'object' && fields !== null && 'err' in fields && isUnavailable(fields.err)
  if (isOutage && level > this.levels.values.debug!) this.debug(...args)
  else method.apply(this, args)
}

function isUnavailable(error: unknown): boolean {
  return error instanceof UnavailableError && error.code === 'provider_unavailable'
}

/** Milliseconds after which an outage that lasts is logged again; each time twice as long, up to the second number. */
const REMINDERS_MS = [10_000, 600_000] as const

export interface Outage {
  /** The dependency did not answer. Logged at the first time, then at growing intervals. */
  failed(error: unknown): void
  /** The dependency answered. Logged if it was away. */
  worked(): void
}

/**
 * Logs when a dependency is away and when it is back: `dependency_away`, `dependency_still_away`, `dependency_back`.
 * @param dependency for example `database`
 * @param now milliseconds of a monotonic clock
 */
export function openOutage(log: Logger, dependency: string, now: () => number = () => performance.now()): Outage {
  let since: number | null = null
  let failures = 0
  let remindAt = 0
  const seconds = () => Math.round((now() - (since ?? now())) / 1000)
  return {
    failed(error) {
      failures++
      if (since === null) {
        since = now()
        remindAt = since + REMINDERS_MS[0]
        log.error({ event: 'dependency_away', dependency, reason: describeReason(error) })
      } else if (now() >= remindAt) {
        remindAt = now() + Math.min(now() - since, REMINDERS_MS[1])
        log.error({ event: 'dependency_still_away', dependency, seconds: seconds(), failures })
      }
    },
    worked() {
      if (since === null) return
      log.info({ event: 'dependency_back', dependency, seconds: seconds(), failures })
      since = null
      failures = 0
    },
  }
}

/** One line: code and message of the innermost cause, without a stack. */
function describeReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return describeReason(error.cause)
  // Node tries several addresses, and says nothing in the message of the whole.
  if (error instanceof AggregateError && error.errors.length > 0) return describeReason(error.errors[0])
  return error.message || error.name
}

/** Name, message, code and stack of an error and its causes. Other members, which libraries add, may hold secrets. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack } = error
  const code = 'code' in error ? error.code : undefined
  return {
    name,
    message,
    ...(typeof code === 'string' ? { code } : {}),
    stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  }
}

/** Every metric of the service. Each call makes a registry of its own, since a test process opens several services. */
export function openMetrics(options: { process?: boolean } = {}) {
  const registry = new Registry()
  const registers = [registry]
  if (options.process) collectDefaultMetrics({ register: registry })
  return {
    registry,
    requests: new Counter({
      name: 'countersign_requests_total',
      help: 'Answers by operation and HTTP status',
      labelNames: ['operation', 'status'] as const,
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'countersign_request_seconds',
      help: 'Time to answer by operation, a wait that the caller asked for included',
      labelNames: ['operation'] as const,
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    moves: new Counter({
      name: 'countersign_verification_moves_total',
      help: 'Verifications by the state they moved to',
      labelNames: ['state'] as const,
      registers,
    }),
    failures: new Counter({
      name: 'countersign_verification_failures_total',
      help: 'Verifications that failed, by error code',
      labelNames: ['code'] as const,
      registers,
    }),
    stageSeconds: new Histogram({
      name: 'countersign_stage_seconds',
      help: 'Time of each stage of a verification',
      labelNames: ['stage'] as const,
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    settlements: new Counter({
      name: 'countersign_settlements_total',
      help: 'Settlement attempts by outcome',
      labelNames: ['outcome'] as const,
      registers,
    }),
    rescued: new Counter({
      name: 'countersign_rescued_workers_total',
      help: 'Dead worker pools whose jobs were freed',
      registers,
    }),
    working: new Gauge({
      name: 'countersign_verifications_working',
      help: 'Verifications accepted and not finished, of all processes',
      registers,
    }),
    oldestWorkingSeconds: new Gauge({
      name: 'countersign_verifications_oldest_seconds',
      help: 'Time since the last change of state of the verification that has waited longest',
      registers,
    }),
    modelCalls: new Counter({
      name: 'countersign_model_calls_total',
      help: 'Calls to the assessing model by outcome',
      labelNames: ['outcome'] as const,
      registers,
    }),
    modelSeconds: new Histogram({
      name: 'countersign_model_seconds',
      help: 'Time of one call to the assessing model',
      buckets: [0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60],
      registers,
    }),
    modelTokens: new Counter({
      name: 'countersign_model_tokens_total',
      help: 'Tokens by kind: input, output, cache_write, cache_read',
      labelNames: ['kind'] as const,
      registers,
    }),
    modelUsd: new Counter({
      name: 'countersign_model_usd_total',
      help: 'Cost of the assessing model in USD, where its prices are known',
      registers,
    }),
    assessmentTokens: new Histogram({
      name: 'countersign_assessment_tokens',
      help: 'Tokens of one assessment, input and output, cached ones included',
      buckets: [500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000],
      registers,
    }),
    assessmentUsd: new Histogram({
      name: 'countersign_assessment_usd',
      help: 'Cost of one assessment in USD, where prices are known',
      buckets: [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.1],
      registers,
    }),
    assessments: new Counter({
      name: 'countersign_assessments_total',
      help: 'Assessments by assessor and verdict',
      labelNames: ['assessor', 'verdict'] as const,
      registers,
    }),
    assessorPaused: new Gauge({
      name: 'countersign_assessor_paused',
      help: '1 while the assessing model is not called, because it did not answer',
      registers,
    }),
    alertAttempts: new Counter({
      name: 'countersign_alert_attempts_total',
      help: 'Attempts to deliver an alert by outcome: delivered, retry, given_up, unwanted',
      labelNames: ['outcome'] as const,
      registers,
    }),
    watchdogAlerts: new Counter({
      name: 'countersign_watchdog_alerts_total',
      help: 'Alerts of watchdogs that the scan raised, by type',
      labelNames: ['type'] as const,
      registers,
    }),
    watchdogDelaySeconds: new Histogram({
      name: 'countersign_watchdog_delay_seconds',
      help: 'Time from the deadline of a watchdog to its detection',
      buckets: [0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30, 60],
      registers,
    }),
    watchdogScanAge: new Gauge({
      name: 'countersign_watchdog_scan_age_seconds',
      help: 'Time since deadlines were last judged; grows while no worker scans or no heartbeat can be taken',
      registers,
    }),
    pruneLag: new Gauge({
      name: 'countersign_prune_lag_seconds',
      help: 'Time since the oldest expired row of a table expired',
      labelNames: ['table'] as const,
      registers,
    }),
    chainSerial: new Gauge({ name: 'countersign_chain_serial', help: 'Serial of the last receipt', registers }),
  }
}
export type Metrics = ReturnType<typeof openMetrics>
