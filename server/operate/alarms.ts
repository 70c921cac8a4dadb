// The alarms of the service: the one table of their names, bounds and expressions. ops/prometheus-rules.yaml is made from it, and
// the status warns (warnings.ts) by the same bounds.

/**
 * Beyond these bounds an alarm is raised. Times in seconds; counts and shares of the last quarter of an hour. `captures` is a share of
 * CAPTURE_MAX_BYTES: the next page may be larger than what is left. Until `loading` after its start a worker may load its verifier.
 */
export const BOUNDS = {
  request: 120,
  job: 60,
  scan: 15,
  unresolved: 3600,
  prune: 600,
  loading: 120,
  admission: 1,
  result: 60,
  detection: 5,
  eventLoop: 0.5,
  failed: 20,
  unknownSettlements: 5,
  rescued: 2,
  paymentCalls: 10,
  serverErrors: 0.05,
  captures: 0.95,
} as const

export interface Alarm {
  /** `queue_behind` is CountersignQueueBehind for Prometheus. */
  name: string
  severity: 'critical' | 'warning'
  /** In PromQL. */
  expr: string
  /** For how long the expression must hold, as Prometheus writes times. */
  for: string
  summary: string
}

export const ALARMS = [
  {
    name: 'unseen',
    severity: 'critical',
    expr: 'absent(countersign_database_up)',
    for: '2m',
    summary: 'No web process answers /metrics.',
  },
  {
    name: 'database_away',
    severity: 'critical',
    expr: 'min(countersign_database_up) == 0',
    for: '1m',
    summary: 'The database does not answer.',
  },
  {
    name: 'no_worker',
    severity: 'critical',
    expr: 'sum(countersign_processes{kind=~"worker|all"}) == 0',
    for: '1m',
    summary: 'No worker process is alive: paid requests wait.',
  },
  {
    name: 'not_ready',
    severity: 'critical',
    expr: 'sum(increase(countersign_readiness_probes_total{outcome="not_ready"}[5m])) > 3',
    for: '2m',
    summary: 'A web process is not ready to serve.',
  },
  {
    name: 'server_errors',
    severity: 'critical',
    // `/readyz` answers 503 while a process starts or ends.
    expr: `sum(rate(countersign_requests_total{status=~"5..",operation!="readyz"}[5m])) > ${BOUNDS.serverErrors} * sum(rate(countersign_requests_total{operation!="readyz"}[5m]))`,
    for: '5m',
    summary: 'More than 5 % of all answers are 5xx.',
  },
  {
    name: 'queue_behind',
    severity: 'warning',
    expr: `max(countersign_queue_oldest_seconds) > ${BOUNDS.job}`,
    for: '2m',
    summary: 'The oldest runnable job waits for {{ $value | humanizeDuration }}.',
  },
  {
    name: 'dead_jobs',
    severity: 'warning',
    expr: 'max(countersign_queue_jobs{state="dead"}) > 0',
    for: '5m',
    summary: '{{ $value }} jobs used up their attempts.',
  },
  {
    name: 'request_stuck',
    severity: 'warning',
    expr: `max(countersign_verifications_oldest_seconds) > ${BOUNDS.request}`,
    for: '4m',
    summary: 'A request has been in its state for {{ $value | humanizeDuration }}.',
  },
  {
    name: 'admission_slow',
    severity: 'warning',
    expr: `histogram_quantile(0.99, sum by (le) (rate(countersign_admission_seconds_bucket[10m]))) > ${BOUNDS.admission}`,
    for: '5m',
    summary: 'A paid call, 1 of 100 or the slowest of fewer, waits more than a second for its 202.',
  },
  {
    name: 'results_slow',
    severity: 'warning',
    expr: `histogram_quantile(0.95, sum by (le) (rate(countersign_result_seconds_bucket[15m]))) > ${BOUNDS.result}`,
    for: '10m',
    summary: 'A result, 1 of 20 or the slowest of fewer, takes more than a minute.',
  },
  {
    name: 'failing',
    severity: 'warning',
    expr: `sum(increase(countersign_verification_failures_total[15m])) > ${BOUNDS.failed} and sum(increase(countersign_verification_failures_total[15m])) > sum(increase(countersign_verifications_completed_total[15m]))`,
    for: '5m',
    summary: 'More verifications fail than are completed.',
  },
  {
    name: 'work_failed',
    severity: 'warning',
    expr: 'sum(increase(countersign_verification_failures_total{code="execution_failed"}[15m])) > 0',
    for: '0m',
    summary: 'A verification failed because of a fault of the service.',
  },
  {
    name: 'model_away',
    severity: 'warning',
    expr: 'max(countersign_assessor_paused) == 1',
    for: '5m',
    summary: 'The model does not answer.',
  },
  {
    name: 'settlement_unknown',
    severity: 'warning',
    expr: `sum(increase(countersign_settlements_total{outcome="unknown"}[15m])) > ${BOUNDS.unknownSettlements}`,
    for: '5m',
    summary: 'The outcome of settlements is not known.',
  },
  {
    name: 'payment_calls_fail',
    severity: 'warning',
    expr: `max(sum by (dependency) (increase(countersign_payment_call_failures_total[15m]))) > ${BOUNDS.paymentCalls}`,
    for: '1m',
    summary: 'A facilitator or node answers, but fails at payments.',
  },
  {
    name: 'deadlines_late',
    severity: 'critical',
    expr: `max(countersign_watchdog_scan_age_seconds) > ${BOUNDS.scan}`,
    for: '1m',
    summary: 'The deadlines of watchdogs are not checked.',
  },
  {
    name: 'detection_slow',
    severity: 'warning',
    expr: `histogram_quantile(0.99, sum by (le) (rate(countersign_watchdog_delay_seconds_bucket[15m]))) > ${BOUNDS.detection}`,
    for: '5m',
    summary: 'Missed heartbeats are detected late.',
  },
  {
    name: 'alerts_given_up',
    severity: 'warning',
    expr: 'sum(increase(countersign_alert_attempts_total{outcome="given_up"}[1h])) > 0',
    for: '0m',
    summary: 'Alerts could not be delivered.',
  },
  {
    name: 'workers_die',
    severity: 'warning',
    expr: `sum(increase(countersign_rescued_workers_total[15m])) > ${BOUNDS.rescued}`,
    for: '0m',
    summary: 'Workers are killed or freeze repeatedly.',
  },
  {
    name: 'pruning_late',
    severity: 'warning',
    expr: `max by (table) (countersign_prune_lag_seconds) > ${BOUNDS.prune}`,
    for: '10m',
    summary: 'Rows of {{ $labels.table }} are not deleted in time.',
  },
  {
    name: 'captures_full',
    severity: 'warning',
    expr: `max(countersign_captures_bytes) > ${BOUNDS.captures} * (max(countersign_captures_max_bytes) > 0)`,
    for: '5m',
    summary: 'The evidence of the next pages is not kept: there is no room.',
  },
  {
    name: 'timestamps_fail',
    severity: 'warning',
    expr: 'max(countersign_timestamp_authorities_failing) > 0',
    for: '5m',
    summary: '{{ $value }} time-stamp authorities have failed several times in a row.',
  },
  {
    name: 'event_loop_blocked',
    severity: 'warning',
    expr: `max by (process) (nodejs_eventloop_lag_p99_seconds{process!=""}) > ${BOUNDS.eventLoop}`,
    for: '5m',
    summary: 'The event loop of {{ $labels.process }} is blocked.',
  },
] as const satisfies readonly Alarm[]

export type AlarmName = (typeof ALARMS)[number]['name']

/** The name of an alarm in Prometheus. */
export function prometheusName(name: string): string {
  return `Countersign${name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}`
}

/** The content of ops/prometheus-rules.yaml. */
export function renderRules(): string {
  const rules = ALARMS.map(
    ({ name, severity, expr, for: lasting, summary }) => `      - alert: ${prometheusName(name)}
        expr: ${expr.includes('"') ? `'${expr}'` : `"${expr}"`}
        for: ${lasting}
        labels:
          severity: ${severity}
        annotations:
          summary: "${summary}"
          runbook: "docs/operations.md#alarms"
`,
  )
  return `# Alert rules for Prometheus. docs/operations.md has the cause and the cure of each. Made from server/operate/alarms.ts, as its test says.
groups:
  - name: countersign
    rules:
${rules.join('')}`
}
