// Logs and metrics. One event, one helper: the log line and its counter are written together and never throw. Labels come
// from closed sets (operation, code, stage, job), never from URLs, keys or messages.
import { type Logger, pino } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type { Logger }

/**
 * Paths that are blanked wherever they turn up, as a second wall: no event below puts a secret into its fields at all.
 * Names as they stand in HTTP headers, tool arguments, `_meta` and our own objects.
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

/** JSON lines on stdout (or `stream`), with every secret field redacted at the top and one and two levels down. */
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
  }
  return stream ? pino(options, stream) : pino(options)
}

/** Name, message and stack of an error and its causes; nothing else of what libraries hang on their errors. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack } = error
  const code = (error as { code?: unknown }).code
  return {
    name,
    message,
    ...(typeof code === 'string' ? { code } : {}),
    stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  }
}

/** Every metric of the service, declared once. A registry per process context: tests have many. */
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
      help: 'Time to answer by operation, waiting asked for included',
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
      help: 'Worker pools found dead whose jobs were freed',
      registers,
    }),
    working: new Gauge({
      name: 'countersign_verifications_working',
      help: 'Verifications accepted and not finished, all processes',
      registers,
    }),
    oldestWorkingSeconds: new Gauge({
      name: 'countersign_verifications_oldest_seconds',
      help: 'Time since the last move of the verification that has stood still longest',
      registers,
    }),
    pruneLag: new Gauge({
      name: 'countersign_prune_lag_seconds',
      help: 'Time by which the row that is longest due for pruning is overdue; stays below some minutes',
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
      help: 'Cost of the assessing model, where its prices are known',
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
      help: 'Cost of one assessment, where prices are known',
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
      help: '1 while the assessing model is not asked, because it did not answer',
      registers,
    }),
    alertAttempts: new Counter({
      name: 'countersign_alert_attempts_total',
      help: 'Attempts to deliver an alert by what they came to: delivered, retry, given_up, unwanted',
      labelNames: ['outcome'] as const,
      registers,
    }),
    watchdogAlerts: new Counter({
      name: 'countersign_watchdog_alerts_total',
      help: 'Alerts of watchdogs that the scan told, by type',
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
    chainSerial: new Gauge({ name: 'countersign_chain_serial', help: 'Serial of the last receipt', registers }),
  }
}
export type Metrics = ReturnType<typeof openMetrics>
