// Draining: an operator asks processes to take no new jobs, and later to take jobs again. The request is stored in the row
// of the process, which reads it with its next beat (see presence.ts) and stops or starts its runner
// (workers/runner.ts). It ends with the process: a new process takes jobs.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { ALIVE_SECONDS } from './figures.ts'

/** Means every living process that takes jobs. */
export const ALL = 'all'

/** `all`, or a process by its id or at least the first 8 digits of its id. */
const SUBJECT = /^(?:all|[0-9a-f]{8}[0-9a-f-]{0,28})$/

export type DrainOutcome = 'asked_to_drain' | 'asked_to_resume' | 'not_found'

/**
 * Asks processes to drain, or to take jobs again. A second request changes nothing. The processes obey within some seconds.
 * @param subject see SUBJECT
 */
export async function askDrain(db: Database, subject: string, drains: boolean): Promise<DrainOutcome> {
  if (!SUBJECT.test(subject)) return 'not_found'
  const asked = await db.anyFirst(sql.type(z.object({ id: z.string() }))`
    update processes set drain_asked_at = case when ${drains} then coalesce(drain_asked_at, now()) end
    where kind in ('worker', 'all') and beat_at > now() - ${ALIVE_SECONDS} * interval '1 second'
      and (${subject === ALL} or starts_with(id::text, ${subject}))
    returning id`)
  if (asked.length === 0) return 'not_found'
  return drains ? 'asked_to_drain' : 'asked_to_resume'
}
