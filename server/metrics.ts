// Every metric of the service. Names follow the conventions of Prometheus. Labels come from closed sets (operation, code, stage,
// job), never from URLs, keys or messages.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { errorTable } from './errors.ts'

/** HTTP status of the codes with which verifications fail. */
const FINAL_FAILURE = 422
const SECONDS_TO_ANSWER = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/**
 * Every metric of the service. Each call makes registries of its own, since a test process opens several services.
 *
 * `registry` holds the counts of this process; operate/figures.ts adds them over all processes. `shared` holds gauges that
 * are read from the database at a scrape, and are the same in every process.
 */
export function openMetrics(options: { process?: boolean } = {}) {
  const registry = new Registry()
  const shared = new Registry()
  if (options.process) collectDefaultMetrics({ register: registry })
  return { registry, shared, ...countsOf([registry]), ...sharedGauges([shared]) }
}
export type Metrics = ReturnType<typeof openMetrics>

/**
 * The metrics that each process counts. The buckets of a histogram must not change under one name, because the sums of
 * ended processes have them too. Samples that an alarm uses start with 0, because Prometheus sees no increase in a sample
 * that first appears with 1.
 */
function countsOf(registers: Registry[]) {
  const counts = buildCounts(registers)
  for (const [code, { status }] of Object.entries(errorTable))
    if (status === FINAL_FAILURE) counts.failures.inc({ code }, 0)
  for (const outcome of ['paid', 'unpaid', 'unknown']) counts.settlements.inc({ outcome }, 0)
  for (const outcome of ['delivered', 'retry', 'given_up', 'unwanted']) counts.alertAttempts.inc({ outcome }, 0)
  for (const outcome of ['kept', 'no_room', 'failed']) counts.captures.inc({ outcome }, 0)
  for (const outcome of ['ready', 'not_ready']) counts.readinessProbes.inc({ outcome }, 0)
  return counts
}

function buildCounts(registers: Registry[]) {
  return {
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
      buckets: SECONDS_TO_ANSWER,
      registers,
    }),
    moves: new Counter({
      name: 'countersign_verification_moves_total',
      help: 'Verifications by the state they moved to',
      labelNames: ['state'] as const,
      registers,
    }),
    completed: new Counter({
      name: 'countersign_verifications_completed_total',
      help: 'Verifications that were completed, by verdict; those of verify-claims as source_claims',
      labelNames: ['verdict'] as const,
      registers,
    }),
    looks: new Counter({
      name: 'countersign_looks_total',
      help: 'Free looks that ended, by verdict; failed: the page could not be read or judged',
      labelNames: ['outcome'] as const,
      registers,
    }),
    admissionSeconds: new Histogram({
      name: 'countersign_admission_seconds',
      help: 'Time from a paid call to its stored acceptance, after which it can be answered 202',
      buckets: SECONDS_TO_ANSWER,
      registers,
    }),
    resultSeconds: new Histogram({
      name: 'countersign_result_seconds',
      help: 'Time from the acceptance of a payment to the completed result',
      buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600],
      registers,
    }),
    readinessProbes: new Counter({
      name: 'countersign_readiness_probes_total',
      help: 'Readiness probes that web processes made of themselves, by outcome: ready, not_ready',
      labelNames: ['outcome'] as const,
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
    paymentCallFailures: new Counter({
      name: 'countersign_payment_call_failures_total',
      help: 'Calls about payments that failed while the facilitator or node answered our own question; at most one a second each',
      labelNames: ['dependency'] as const,
      registers,
    }),
    captures: new Counter({
      name: 'countersign_captures_total',
      help: 'Pages read for purchases with capture on, by what became of the capture: kept, no_room, failed',
      labelNames: ['outcome'] as const,
      registers,
    }),
    rescued: new Counter({
      name: 'countersign_rescued_workers_total',
      help: 'Dead worker pools whose jobs were freed',
      registers,
    }),
    timestamps: new Counter({
      name: 'countersign_timestamps_total',
      help: 'Questions to time-stamp authorities by outcome: stored, failed',
      labelNames: ['outcome'] as const,
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
    secondReadings: new Counter({
      name: 'countersign_second_readings_total',
      help: 'Pages that the second reader read beside the model, by the verdict of each',
      labelNames: ['model', 'verifier'] as const,
      registers,
    }),
    keptVerdicts: new Counter({
      name: 'countersign_kept_verdicts_total',
      help: 'Verdicts of the local verifier that were given again without reading the page again',
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
  }
}

/** The gauges that are read from the database. */
function sharedGauges(registers: Registry[]) {
  return {
    databaseUp: new Gauge({
      name: 'countersign_database_up',
      help: '1 if the database answered this scrape; if 0, all other metrics are of the answering process only',
      registers,
    }),
    processes: new Gauge({
      name: 'countersign_processes',
      help: 'Living processes by kind: web, worker, all (both in one)',
      labelNames: ['kind'] as const,
      registers,
    }),
    processesDrained: new Gauge({
      name: 'countersign_processes_drained',
      help: 'Living processes that an operator asked to take no new jobs',
      registers,
    }),
    queueJobs: new Gauge({
      name: 'countersign_queue_jobs',
      help: 'Jobs of the queue by state: due, running, later, dead',
      labelNames: ['state'] as const,
      registers,
    }),
    queueOldestSeconds: new Gauge({
      name: 'countersign_queue_oldest_seconds',
      help: 'Time for which the oldest runnable job has been due; scale workers by it',
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
    captureBytes: new Gauge({
      name: 'countersign_captures_bytes',
      help: 'Octets of the captures that are stored, compressed and encrypted',
      registers,
    }),
    captureMaxBytes: new Gauge({
      name: 'countersign_captures_max_bytes',
      help: 'Octets that the captures may have; 0 where none are made',
      registers,
    }),
    captureRows: new Gauge({ name: 'countersign_captures_rows', help: 'Captures that are stored', registers }),
    failingAuthorities: new Gauge({
      name: 'countersign_timestamp_authorities_failing',
      help: 'Time-stamp authorities that have failed several times in a row',
      registers,
    }),
    chainSerial: new Gauge({ name: 'countersign_chain_serial', help: 'Serial of the last receipt', registers }),
  }
}
