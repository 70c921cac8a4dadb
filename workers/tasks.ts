// A function for each job of db/jobs.ts, and when the recurring ones run. A job without a function does not compile.
import { type JobHelpers, parseCronItems, type TaskList } from 'graphile-worker'
import { pruneAccounts } from '../server/accounts/pruning.ts'
import type { DeliveryLoop } from '../server/alerts/delivery-loop.ts'
import { pruneAlerts, recallAlerts } from '../server/alerts/outbox.ts'
import { reconcile } from '../server/billing/reconciliation.ts'
import { checkCitation } from '../server/citations/check.ts'
import { wakeDueWatches } from '../server/citations/watch.ts'
import { type JobName, jobs, type Payload } from '../server/db/jobs.ts'
import { transact } from '../server/db/pool.ts'
import { pruneRequests } from '../server/verification/pruning.ts'
import { sweepRequests } from '../server/verification/sweep.ts'
import type { Work } from './context.ts'
import { KEEP_SECONDS } from './retrieval/cache.ts'
import { forgetObservations } from './retrieval/observation-store-postgres.ts'
import { forgetOrigins, recallLines } from './retrieval/origins.ts'
import { verifyRequest } from './verify.ts'

type Task<N extends JobName> = (payload: Payload<N>, helpers: JobHelpers) => Promise<void>

export function buildTasks(work: Work, deliveries: DeliveryLoop): TaskList {
  const tasks: { [N in JobName]: Task<N> } = {
    verify_request: (payload, { job, abortSignal }) =>
      verifyRequest(payload, work, {
        signal: abortSignal ?? new AbortController().signal,
        attemptsLeft: Math.max(0, job.max_attempts - job.attempts),
      }),
    wake_origin: ({ line }) => work.origins.wake(line),
    deliver_alerts: async () => deliveries.wake(),
    check_citation: (payload, { abortSignal }) =>
      checkCitation(payload, work, abortSignal ?? new AbortController().signal),
    wake_citations: () => transact(work.db, wakeDueWatches),
    reconcile_billing: async (_payload, { abortSignal }) => {
      if (work.billing?.name === 'stripe') await reconcile(work, work.billing, abortSignal)
    },
    sweep_requests: async () => {
      await sweepRequests(work)
      await recallLines(work.db, work.origins)
      await recallAlerts(work.db)
    },
    prune_requests: async (_payload, { abortSignal }) => {
      const pruned = await pruneRequests(work.db, work.config.resultRetentionSeconds, { signal: abortSignal })
      await pruneAlerts(work.db)
      await forgetOrigins(work.db)
      await forgetObservations(work.db, KEEP_SECONDS)
      const rows = await pruneAccounts(work.db, abortSignal)
      if (pruned + rows > 0) work.log.info({ event: 'pruned', requests: pruned, rows_of_accounts: rows })
    },
  }
  const list: TaskList = {}
  for (const name of Object.keys(tasks) as JobName[]) {
    const run = tasks[name] as Task<JobName>
    list[name] = (payload, helpers) => run(jobs[name].parse(payload), helpers)
  }
  return list
}

/** Identifiers are never changed: the queue remembers by them what has run. */
export function crontab() {
  return parseCronItems([
    { task: 'sweep_requests', match: '* * * * *', identifier: 'sweep_requests', options: { maxAttempts: 1 } },
    { task: 'wake_citations', match: '* * * * *', identifier: 'wake_citations', options: { maxAttempts: 1 } },
    { task: 'prune_requests', match: '* * * * *', identifier: 'prune_requests', options: { maxAttempts: 1 } },
    // One at a time: a long one would meet the next. Off the hour, when everybody asks Stripe.
    {
      task: 'reconcile_billing',
      match: '23 * * * *',
      identifier: 'reconcile_billing',
      options: { maxAttempts: 1, queueName: 'billing' },
    },
  ])
}
