// The function for each job of db/jobs.ts, and the schedule of the recurring ones. A job without a function does not compile.
import { type JobHelpers, parseCronItems, type Task, type TaskList } from 'graphile-worker'
import type { z } from 'zod'
import { pruneAccounts } from '../server/accounts/pruning.ts'
import type { DeliveryLoop } from '../server/alerts/delivery-loop.ts'
import { pruneAlerts, recallAlerts } from '../server/alerts/outbox.ts'
import { reconcile } from '../server/billing/reconciliation.ts'
import { checkCitation } from '../server/citations/check.ts'
import { wakeDueWatches } from '../server/citations/watch.ts'
import { throughOutages } from '../server/db/interruption.ts'
import { type JobName, jobs } from '../server/db/jobs.ts'
import { transact } from '../server/db/pool.ts'
import { sweep } from '../server/free-work/jobs.ts'
import { pruneJournals } from '../server/journal/bounds.ts'
import { expireLooks } from '../server/looks/look.ts'
import { LOOKS, takeLook } from '../server/looks/reading.ts'
import { checkQuotes, QUOTE_CHECKS } from '../server/quotes/check.ts'
import { fillMiddles } from '../server/receipts/blocks.ts'
import { withSubject } from '../server/telemetry.ts'
import { inTrace, processing } from '../server/tracing/spans.ts'
import { pruneRequests } from '../server/verification/pruning.ts'
import { verifyRequest } from '../server/verification/stages/stages.ts'
import { sweepRequests } from '../server/verification/stages/sweep.ts'
import type { Work } from './context.ts'
import { KEEP_SECONDS } from './retrieval/cache.ts'
import { forgetObservations } from './retrieval/observation-store-postgres.ts'
import { forgetOrigins, recallLines } from './retrieval/origins.ts'

/** @param stopping aborts when the worker has to stop: then no job waits for a database that is away */
export function buildTasks(work: Work, deliveries: DeliveryLoop, stopping?: AbortSignal): TaskList {
  /** A task that parses its payload. Throws a ZodError for a payload of another form. */
  function taskOf<S extends z.ZodType>(
    schema: S,
    run: (payload: z.output<S>, helpers: JobHelpers) => Promise<void>,
  ): Task {
    return async (payload, helpers) => {
      const signal = work.liveness.limit(AbortSignal.any([helpers.abortSignal, ...(stopping ? [stopping] : [])]))
      const parsed = schema.parse(payload)
      await throughOutages(() => run(parsed, helpers), { db: work.db, job: helpers.job, signal })
    }
  }

  return {
    verify_request: taskOf(jobs.verify_request, (payload, { job, abortSignal }) =>
      withSubject(payload.request_id, () =>
        verifyRequest(payload, work, {
          signal: work.liveness.limit(abortSignal),
          attemptsLeft: Math.max(0, job.max_attempts - job.attempts),
        }),
      ),
    ),
    wake_origin: taskOf(jobs.wake_origin, ({ line }) => work.origins.wake(line)),
    deliver_alerts: taskOf(jobs.deliver_alerts, async () => deliveries.wake()),
    check_citation: taskOf(jobs.check_citation, (payload, { abortSignal }) =>
      inTrace(work.tracing, ...processing('check_citation'), () =>
        checkCitation(payload, work, work.liveness.limit(abortSignal)),
      ),
    ),
    check_quotes: taskOf(jobs.check_quotes, (payload, { job, abortSignal }) =>
      inTrace(work.tracing, ...processing('check_quotes'), () =>
        checkQuotes(payload, work, {
          signal: work.liveness.limit(abortSignal),
          attemptsLeft: Math.max(0, job.max_attempts - job.attempts),
        }),
      ),
    ),
    take_look: taskOf(jobs.take_look, (payload, { job, abortSignal }) =>
      inTrace(work.tracing, ...processing('take_look'), () =>
        takeLook(payload, work, {
          signal: work.liveness.limit(abortSignal),
          attemptsLeft: Math.max(0, job.max_attempts - job.attempts),
        }),
      ),
    ),
    wake_citations: taskOf(jobs.wake_citations, () => transact(work.db, wakeDueWatches)),
    reconcile_billing: taskOf(jobs.reconcile_billing, async (_payload, { abortSignal }) => {
      if (work.billing?.name === 'stripe') await reconcile(work, work.billing, abortSignal)
    }),
    sweep_requests: taskOf(jobs.sweep_requests, async () => {
      // Before the sweep of requests, which deletes jobs without attempts.
      await sweep(QUOTE_CHECKS, work)
      await sweep(LOOKS, work)
      await sweepRequests(work)
      await recallLines(work.db, work.origins)
      await recallAlerts(work.db)
    }),
    fill_tiles: taskOf(jobs.fill_tiles, async (_payload, { abortSignal }) => {
      await fillMiddles(work.db, { signal: abortSignal })
    }),
    prune_requests: taskOf(jobs.prune_requests, async (_payload, { abortSignal }) => {
      const { resultRetentionSeconds, capture } = work.config
      const options = { signal: abortSignal, captureSeconds: capture.retentionSeconds }
      const pruned = await pruneRequests(work.db, resultRetentionSeconds, options)
      await pruneAlerts(work.db)
      await expireLooks(work.db)
      await forgetOrigins(work.db)
      await forgetObservations(work.db, KEEP_SECONDS)
      const rows = (await pruneAccounts(work.db, abortSignal)) + (await pruneJournals(work.db, abortSignal))
      if (pruned + rows > 0) work.log.info({ event: 'pruned', requests: pruned, rows_of_accounts: rows })
    }),
  } satisfies Record<JobName, Task>
}

/** Identifiers must not change, because the queue uses them to store which recurring job has run. */
export function crontab() {
  return parseCronItems([
    { task: 'sweep_requests', match: '* * * * *', identifier: 'sweep_requests', options: { maxAttempts: 1 } },
    { task: 'wake_citations', match: '* * * * *', identifier: 'wake_citations', options: { maxAttempts: 1 } },
    { task: 'fill_tiles', match: '* * * * *', identifier: 'fill_tiles', options: { maxAttempts: 1 } },
    { task: 'prune_requests', match: '* * * * *', identifier: 'prune_requests', options: { maxAttempts: 1 } },
    // In a separate queue, so that two runs never overlap. Not on the hour, when many services call Stripe.
    {
      task: 'reconcile_billing',
      match: '23 * * * *',
      identifier: 'reconcile_billing',
      options: { maxAttempts: 1, queueName: 'billing' },
    },
  ])
}
