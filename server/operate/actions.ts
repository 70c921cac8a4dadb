// The log of what operators did on the dashboard. An action is stored before it runs, so that no action runs unrecorded;
// its outcome is added afterwards.
import { z } from 'zod'
import { type Database, nothing, sql } from '../db/pool.ts'

export const ACTIONS = [
  'sign_in',
  'sign_out',
  'retry_request',
  'cancel_request',
  'redeliver_alert',
  'redrive_job',
  'drain_process',
  'resume_process',
  'disable_account',
  'enable_account',
] as const
export type Action = (typeof ACTIONS)[number]

interface Act {
  action: Action
  /** The id of a request, alert, job or process (`all` for each of these), or the handle of an account; empty for the service. */
  subject: string
  /** The id of the dashboard session. It gives no access. */
  session: string
}

/** Stores the action, runs it, and adds its outcome. Throws what `run` throws, after it has added `failed`. */
export async function recorded<Outcome extends string>(
  db: Database,
  { action, subject, session }: Act,
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  const id = await db.oneFirst(sql.type(z.object({ id: z.number() }))`
    insert into operator_actions (action, subject, session) values (${action}, ${subject}, ${session}) returning action_id id`)
  const end = (outcome: string) =>
    db.query(sql.type(nothing)`update operator_actions set outcome = ${outcome} where action_id = ${id}`)
  try {
    const outcome = await run()
    await end(outcome)
    return outcome
  } catch (error) {
    // If the database is away, the outcome cannot be stored either. The first error is thrown.
    await end('failed').catch(() => {})
    throw error
  }
}

/** Counts an attempt to sign in that was refused. Anyone can make them, so they are no rows of the log, which is kept for ever. */
export async function countRefusal(db: Database): Promise<void> {
  await db.query(sql.type(nothing)`
    insert into operator_refusals as r (day, refused, last_at) values ((now() at time zone 'utc')::date, 1, now())
    on conflict (day) do update set refused = r.refused + 1, last_at = excluded.last_at`)
}

const refusals = z.object({ refused: z.number(), last_at: z.date().nullable() })

/** Refused attempts to sign in, of the last seven UTC days. */
export function readRefusals(db: Database): Promise<z.output<typeof refusals>> {
  return db.one(sql.type(refusals)`
    select coalesce(sum(refused), 0)::float8 refused, max(last_at) last_at from operator_refusals
    where day > (now() at time zone 'utc')::date - 7`)
}

/** Whether the session was signed out. The log keeps this for ever, so the cookie stays invalid. */
export function isSignedOut(db: Database, session: string): Promise<boolean> {
  return db.exists(sql.type(z.object({ action_id: z.number() }))`
    select action_id from operator_actions where action = 'sign_out' and session = ${session}`)
}

const actionRow = z.object({
  action_id: z.number(),
  at: z.date(),
  action: z.string(),
  subject: z.string(),
  session: z.string(),
  outcome: z.string().nullable(),
})
export type RecordedAction = z.output<typeof actionRow>

/** Newest first. @param before only actions with a lower number */
export function listActions(db: Database, limit: number, before?: number): Promise<readonly RecordedAction[]> {
  return db.any(sql.type(actionRow)`
    select action_id, at, action, subject, session, outcome from operator_actions
    where action_id < ${before ?? Number.MAX_SAFE_INTEGER} order by action_id desc limit ${limit}`)
}
