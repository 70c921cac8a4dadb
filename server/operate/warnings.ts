// The warnings of the status, each with its cure. Each alarm of alarms.ts has a warning of the same name with the same bound, so
// that status and log report what Prometheus would report.
import { withoutCredentials } from '../config/credentials.ts'
import { LOADING } from '../verification/offer/assessors.ts'
import { type AlarmName, BOUNDS } from './alarms.ts'
import type { Urgent } from './facts.ts'
import type { RunningProcess } from './presence.ts'

export interface Warning {
  /** `queue_behind` is the warning of the alarm CountersignQueueBehind. Two warnings may have one name. */
  name: string
  what: string
  cure: string
}

/** Conditions of the status alone, for which Prometheus has no rule. */
type OwnName = 'process_silent' | 'settings_differ' | 'payment_unresolved'

type Found = [applies: boolean, name: AlarmName | OwnName, what: string, cure: string]

export function warningsOf(facts: Urgent): Warning[] {
  return [...ofProcesses(facts), ...ofWork(facts), ...ofTheLastMinutes(facts)]
    .filter(([applies]) => applies)
    .map(([, name, what, cure]) => ({ name, what, cure }))
}

function ofProcesses(facts: Urgent): Found[] {
  const alive = facts.processes.filter((one) => one.alive)
  const serves = (kind: RunningProcess['kind']) => alive.some((one) => one.kind === kind || one.kind === 'all')
  const { requests } = facts
  return [
    [
      facts.pending_migrations.length > 0,
      'not_ready',
      `migrations are pending: ${facts.pending_migrations.join(', ')}`,
      'run `npm run cli -- migrate`',
    ],
    [!serves('web'), 'unseen', 'no web process is alive', 'start one: `npm run web`'],
    [
      facts.workers.alive === 0,
      'no_worker',
      `no worker is alive${requests.working > 0 ? `, and ${requests.working} paid requests wait` : ''}`,
      alive.some(({ drain }) => drain !== null)
        ? 'the processes are drained: `npm run cli -- processes resume all`'
        : 'start one: `npm run worker`',
    ],
    ...facts.processes
      .filter((one) => !one.alive)
      .map(
        ({ kind, host, pid, silent_seconds }): Found => [
          true,
          'process_silent',
          `the ${kind} process ${pid} on ${host} has been silent for ${silent_seconds} s`,
          'look at its log; other processes take over its work, and this warning ends after ten minutes of silence',
        ],
      ),
    ...facts.differing_settings
      .filter(({ name }) => !OWN_SETTINGS.has(name))
      .map(
        ({ name, values }): Found => [
          true,
          'settings_differ',
          `${name} differs between processes: ${[...new Set(values.map(({ value }) => value || 'unset'))].join(', ')}`,
          'give all processes of a deployment the same variables; `config --running` shows which has which',
        ],
      ),
    ...facts.recent.event_loops
      .filter(({ seconds }) => seconds > BOUNDS.eventLoop)
      .map(
        ({ process, seconds }): Found => [
          true,
          'event_loop_blocked',
          `the event loop of ${process} is blocked for ${seconds.toFixed(1)} s at a time`,
          'give it more CPU, or start another process of its kind',
        ],
      ),
  ]
}

function ofWork(facts: Urgent): Found[] {
  const { requests, queue, watchdogs, assessor, workers, alerts, captures } = facts
  return [
    [
      requests.oldest_seconds > BOUNDS.request,
      'request_stuck',
      `a request has been in its state for ${requests.oldest_seconds} s`,
      'see `npm run cli -- requests list --stuck`, then `requests show`',
    ],
    [
      queue.oldest_seconds > BOUNDS.job,
      'queue_behind',
      `the oldest job has been due for ${queue.oldest_seconds} s`,
      'start another worker process',
    ],
    [
      queue.dead > 0,
      'dead_jobs',
      queue.dead === 1 ? '1 job has used up its attempts' : `${queue.dead} jobs have used up their attempts`,
      'see `npm run cli -- jobs dead`, then `jobs redrive`',
    ],
    [
      workers.away > 0,
      'model_away',
      [awayText(facts), ...assessor.problems].join(': '),
      assessor.problems.length > 0 && assessor.problems.every((one) => one === LOADING)
        ? 'wait for log event verifier_ready; give the workers more CPU and memory if it does not come'
        : 'correct the setting that the cause names where the workers run, and restart them; if none is named, wait or repair its server',
    ],
    [
      facts.unresolved_payments.oldest_seconds > BOUNDS.unresolved,
      'payment_unresolved',
      `a payment has been unresolved for ${facts.unresolved_payments.oldest_seconds} s`,
      'see `npm run cli -- payments list-unresolved`; a worker and the RPC of the chain must be up',
    ],
    [
      watchdogs.judged_seconds_ago > BOUNDS.scan,
      'deadlines_late',
      `the deadlines of watchdogs were last checked ${watchdogs.judged_seconds_ago} s ago`,
      'a web process, which accepts heartbeats, and a worker process, which checks deadlines, must run',
    ],
    [
      alerts.given_up_last_hour > 0,
      'alerts_given_up',
      `${alerts.given_up_last_hour} alerts were given up in the last hour`,
      'see /operator or log event alert_attempt; tell the owner, who can redeliver',
    ],
    ...facts.failing_authorities.map(
      ({ url, failures, problem }): Found => [
        true,
        'timestamps_fail',
        `the time-stamp authority ${withoutCredentials(url)} has failed ${failures} times in a row: ${problem}`,
        'correct TIMESTAMP_URLS or TIMESTAMP_CA_FILE, or ask its operator; receipts are made all the same. `doctor` asks it once',
      ],
    ),
    [
      captures.enabled && captures.bytes > captures.max_bytes * BOUNDS.captures,
      'captures_full',
      `the evidence of ${captures.rows} pages takes ${captures.bytes} of ${captures.max_bytes} octets; beyond them purchases go on without`,
      'raise CAPTURE_MAX_BYTES, or set CAPTURE_RETENTION_SECONDS to less than the time of a result',
    ],
    [
      facts.prune_lag_seconds > BOUNDS.prune,
      'pruning_late',
      `rows of ${facts.prune_lag_table} have been due for deletion for ${facts.prune_lag_seconds} s`,
      'start another worker process',
    ],
  ]
}

function awayText({ workers, assessor }: Urgent): string {
  if (workers.paused === 0) return 'the model that assesses does not answer, and others assess'
  if (workers.paused === workers.alive)
    return `nothing is sold, because what assesses takes no work for ${assessor.paused_seconds} s`
  return `what assesses takes no work in ${workers.paused} of ${workers.alive} workers`
}

function ofTheLastMinutes({ recent }: Urgent): Found[] {
  const { answers, server_errors, completed, settlements, rescued_workers, timed } = recent
  const failed = Object.values(recent.failed).reduce((sum, count) => sum + count, 0)
  const faults = recent.failed.execution_failed ?? 0
  const unknown = settlements.unknown ?? 0
  const last = 'in the last 15 minutes'
  return [
    [
      server_errors > BOUNDS.serverErrors * answers,
      'server_errors',
      `${server_errors} of ${answers} answers ${last} had a status from 500`,
      'see log events request_failed and dependency_away; add web processes if the code is capacity_exceeded',
    ],
    [
      recent.admission_p99 > BOUNDS.admission,
      'admission_slow',
      `${slowest(100, timed.admissions, 'paid call')} ${last} waited for ${recent.admission_p99.toFixed(1)} s for its 202`,
      'look at the database; add web processes',
    ],
    [
      recent.result_p95 > BOUNDS.result,
      'results_slow',
      `${slowest(20, timed.results, 'result')} ${last} took ${Math.round(recent.result_p95)} s`,
      'start another worker, or look at the page, model or facilitator that is slow',
    ],
    [
      failed > BOUNDS.failed && failed > completed,
      'failing',
      `${failed} verifications failed ${last}, and ${completed} were completed`,
      'see log event verification_failed by code; check DNS of the host and its access to port 443',
    ],
    [
      faults > 0,
      'work_failed',
      `${faults} verifications failed ${last} because of a fault of the service`,
      'log event verification_error has the cause',
    ],
    [
      unknown > BOUNDS.unknownSettlements,
      'settlement_unknown',
      `the outcome of ${unknown} settlements ${last} was not known`,
      'see `npm run cli -- payments list-unresolved`; in the meantime nothing is charged twice',
    ],
    ...Object.entries(recent.payment_calls).map(
      ([dependency, count]): Found => [
        count > BOUNDS.paymentCalls,
        'payment_calls_fail',
        `${count} calls of ${dependency} about payments failed ${last}, though it answers`,
        'log event payment_call_failed has the reason; ask its operator, or set another FACILITATOR_URL or node',
      ],
    ),
    [
      recent.detection_p99 > BOUNDS.detection,
      'detection_slow',
      `${slowest(100, timed.detections, 'missed deadline')} ${last} was detected ${recent.detection_p99.toFixed(1)} s late`,
      'start another worker process',
    ],
    [
      rescued_workers > BOUNDS.rescued,
      'workers_die',
      `${rescued_workers} workers ${last} were killed or froze`,
      'see the log of the host; fewer WORKER_FETCHES, or more memory',
    ],
  ]
}

/** What a percentile is about: one of so many, or of fewer the slowest. */
function slowest(share: 20 | 100, count: number, one: string): string {
  if (count >= share) return `1 of ${share} ${one}s`
  return count === 1 ? `the only ${one}` : `the slowest of ${count} ${one}s`
}

/** Settings that may differ between processes of one deployment. */
const OWN_SETTINGS: ReadonlySet<string> = new Set([
  'PORT',
  'HOST',
  'DATA_DIR',
  'LOG_LEVEL',
  'WORKER_CONCURRENCY',
  'WORKER_FETCHES',
])
