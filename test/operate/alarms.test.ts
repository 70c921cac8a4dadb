// The alarms for Prometheus: the file of rules is what the table renders, and each rule holds just beyond its bound and not at it, by
// Prometheus' own promtool (Debian: `apt-get install prometheus`), which is not part of the project.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ALARMS, type AlarmName, prometheusName, renderRules } from '../../server/operate/alarms.ts'

const ROOT = join(import.meta.dirname, '../..')
const RULES = join(ROOT, 'ops/prometheus-rules.yaml')
const hasPromtool = spawnSync('promtool', ['--version']).error === undefined
const skip = hasPromtool ? false : 'promtool is not installed, so no rule is evaluated'

t.test('ops/prometheus-rules.yaml is what the table of alarms renders', async (t) => {
  const rules = renderRules()
  if (rules !== readFileSync(RULES, 'utf8')) {
    mkdirSync(join(ROOT, '.tap/alarms'), { recursive: true })
    writeFileSync(join(ROOT, '.tap/alarms/prometheus-rules.yaml'), rules)
  }
  t.equal(readFileSync(RULES, 'utf8'), rules, 'a fresh one is in .tap/alarms')
})

/** The buckets of a histogram: of 100 values a minute, so many are at most `bound`, and all at most twice that. */
const buckets = (name: string, bound: number, within: number) => [
  `${name}_bucket{le="${bound}"} 0+${within}x60`,
  `${name}_bucket{le="${2 * bound}"} 0+100x60`,
  `${name}_bucket{le="+Inf"} 0+100x60`,
]

/** Series with one value a minute: those that raise the alarm, and those of a service that is just well enough. */
const CASES: Record<AlarmName, { raised: string[]; quiet: string[] }> = {
  unseen: { raised: ['up 1x60'], quiet: ['countersign_database_up 1x60'] },
  database_away: { raised: ['countersign_database_up 0x60'], quiet: ['countersign_database_up 1x60'] },
  no_worker: {
    raised: ['countersign_processes{kind="worker"} 0x60', 'countersign_processes{kind="web"} 2x60'],
    quiet: ['countersign_processes{kind="worker"} 0x60', 'countersign_processes{kind="all"} 1x60'],
  },
  not_ready: {
    raised: ['countersign_readiness_probes_total{outcome="not_ready"} 0+1x60'],
    quiet: ['countersign_readiness_probes_total{outcome="not_ready"} 0+0.5x60'],
  },
  server_errors: {
    raised: ['countersign_requests_total{status="503"} 0+6x60', 'countersign_requests_total{status="200"} 0+94x60'],
    quiet: [
      'countersign_requests_total{status="503"} 0+4x60',
      'countersign_requests_total{status="200"} 0+96x60',
      // A process that starts or ends says so with 503.
      'countersign_requests_total{status="503",operation="readyz"} 0+60x60',
    ],
  },
  queue_behind: {
    raised: ['countersign_queue_oldest_seconds 61x60'],
    quiet: ['countersign_queue_oldest_seconds 60x60'],
  },
  dead_jobs: {
    raised: ['countersign_queue_jobs{state="dead"} 1x60'],
    quiet: ['countersign_queue_jobs{state="ready"} 9x60', 'countersign_queue_jobs{state="dead"} 0x60'],
  },
  request_stuck: {
    raised: ['countersign_verifications_oldest_seconds 121x60'],
    quiet: ['countersign_verifications_oldest_seconds 120x60'],
  },
  admission_slow: {
    raised: buckets('countersign_admission_seconds', 1, 98),
    quiet: buckets('countersign_admission_seconds', 1, 99.5),
  },
  results_slow: {
    raised: buckets('countersign_result_seconds', 60, 94),
    quiet: buckets('countersign_result_seconds', 60, 96),
  },
  failing: {
    raised: [
      'countersign_verification_failures_total{code="source_timeout"} 0+3x60',
      'countersign_verifications_completed_total 0+2x60',
    ],
    quiet: [
      'countersign_verification_failures_total{code="source_timeout"} 0+3x60',
      'countersign_verifications_completed_total 0+4x60',
    ],
  },
  work_failed: {
    raised: ['countersign_verification_failures_total{code="execution_failed"} 0+1x60'],
    quiet: ['countersign_verification_failures_total{code="source_timeout"} 0+1x60'],
  },
  model_away: { raised: ['countersign_assessor_paused 1x60'], quiet: ['countersign_assessor_paused 0x60'] },
  settlement_unknown: {
    raised: ['countersign_settlements_total{outcome="unknown"} 0+1x60'],
    quiet: ['countersign_settlements_total{outcome="unknown"} 0+0.3x60'],
  },
  payment_calls_fail: {
    raised: ['countersign_payment_call_failures_total{dependency="facilitator a"} 0+1x60'],
    // Two at which less fails than one may.
    quiet: [
      'countersign_payment_call_failures_total{dependency="facilitator a"} 0+0.6x60',
      'countersign_payment_call_failures_total{dependency="node b"} 0+0.6x60',
    ],
  },
  deadlines_late: {
    raised: ['countersign_watchdog_scan_age_seconds 16x60'],
    quiet: ['countersign_watchdog_scan_age_seconds 15x60'],
  },
  detection_slow: {
    raised: buckets('countersign_watchdog_delay_seconds', 5, 98),
    quiet: buckets('countersign_watchdog_delay_seconds', 5, 99.5),
  },
  alerts_given_up: {
    raised: ['countersign_alert_attempts_total{outcome="given_up"} 0+1x60'],
    quiet: ['countersign_alert_attempts_total{outcome="failed"} 0+1x60'],
  },
  workers_die: {
    raised: ['countersign_rescued_workers_total 0+1x60'],
    quiet: ['countersign_rescued_workers_total 0+0.1x60'],
  },
  pruning_late: {
    raised: ['countersign_prune_lag_seconds{table="alerts"} 601x60'],
    quiet: ['countersign_prune_lag_seconds{table="alerts"} 600x60'],
  },
  captures_full: {
    raised: ['countersign_captures_bytes 96x60', 'countersign_captures_max_bytes 100x60'],
    quiet: [
      'countersign_captures_bytes{process="a"} 95x60',
      'countersign_captures_bytes{process="b"} 95x60',
      'countersign_captures_max_bytes 100x60',
    ],
  },
  timestamps_fail: {
    raised: ['countersign_timestamp_authorities_failing 1x60'],
    quiet: ['countersign_timestamp_authorities_failing 0x60'],
  },
  event_loop_blocked: {
    raised: ['nodejs_eventloop_lag_p99_seconds{process="web-1"} 0.6x60'],
    quiet: ['nodejs_eventloop_lag_p99_seconds{process="web-1"} 0.5x60', 'nodejs_eventloop_lag_p99_seconds 9x60'],
  },
}

/** A test of promtool, in JSON, which is YAML: whether the alarm is raised after an hour of these series. */
function testOf(name: AlarmName, series: string[], isRaised: boolean) {
  return {
    interval: '1m',
    input_series: series.map((one) => {
      const cut = one.lastIndexOf(' ')
      return { series: one.slice(0, cut), values: one.slice(cut + 1) }
    }),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${prometheusName(name)}",alertstate="firing"})`,
        eval_time: '60m',
        exp_samples: isRaised ? [{ labels: '{}', value: 1 }] : [],
      },
    ],
  }
}

/** What promtool says about these tests. */
function evaluate(tests: unknown[]) {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-alarms-'))
  try {
    const file = join(folder, 'tests.yaml')
    writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }))
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })
    return { status, said: stdout + stderr }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

t.test('each rule holds just beyond its bound, and not at it', { skip }, async (t) => {
  const all = ALARMS.flatMap(({ name }) => {
    const { raised, quiet } = CASES[name]
    return [testOf(name, raised, true), testOf(name, quiet, false)]
  })
  const { status, said } = evaluate(all)
  t.equal(status, 0, said)
  const { queue_behind } = CASES
  t.not(
    evaluate([testOf('queue_behind', queue_behind.quiet, true)]).status,
    0,
    'promtool finds a rule that does not hold',
  )
})
