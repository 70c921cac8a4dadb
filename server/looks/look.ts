// The record of a free look: page and claim, the answer, its states and its SQL. A look is the work of a purchase without the
// purchase: nothing is charged, and no receipt is made.
//
//   pending ──► completed ──► expired
//     │  ▲                       ▲  │
//     ▼  │ (same pair again, if retryable, or after the expiry)
//    failed ─────────────────────┘
//
// A pending look has a job. A crash at any time leaves it pending, and its job, or the sweep, begins it again: it has no effect
// outside its own row.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import type { AppError } from '../errors.ts'
import type { Held } from '../free-work/jobs.ts'
import type { Assessment } from '../interface/assessment.ts'
import { LIMITS } from '../interface/limits.ts'
import type { Observation } from '../interface/observation.ts'
import { source, unsignedResult, verificationInput } from '../interface/result.ts'
import { type Waiting, waiting } from '../verification/request.ts'

/** Seconds for which an answer or a failure is kept. */
export const KEEP_SECONDS = 1800
/** Seconds after a retryable failure in which the same pair gets the same failure. */
export const PAUSE_SECONDS = 30

export const lookInput = verificationInput.pick({ source_url: true, claim: true })
export type LookInput = z.output<typeof lookInput>

/** What the work has come to: it waits for a worker or the page's host, the page is read, or the claim is compared with it. */
export const STAGES = ['waiting', 'reading', 'assessing'] as const
export type Stage = (typeof STAGES)[number]

/** The members of a result that a look answers. The address of a sample may be a local one. */
export const lookResult = unsignedResult
  .pick({
    claim_support: true,
    assessment_scope: true,
    explanation: true,
    evidence: true,
    risk_flags: true,
    checked_at: true,
  })
  .extend({ source: source.extend({ requested_url: z.string(), final_url: z.string() }) })
export type LookResult = z.output<typeof lookResult>

/** The answer to a look at a page that was observed and assessed. */
export function composeLook({ source_url }: LookInput, observation: Observation, assessment: Assessment): LookResult {
  return {
    claim_support: assessment.claim_support,
    assessment_scope: assessment.assessment_scope,
    explanation: assessment.explanation,
    evidence: assessment.evidence,
    risk_flags: [...new Set([...observation.risk_flags, ...assessment.risk_flags])].sort().slice(0, LIMITS.riskFlags),
    checked_at: observation.checked_at,
    source: { requested_url: source_url, ...observation.source },
  }
}

const lookError = z.object({ code: z.string(), message: z.string(), retryable: z.boolean() })

const lookView = z.object({
  id: z.uuid(),
  state: z.enum(['pending', 'completed', 'failed', 'expired']),
  stage: z.enum(STAGES),
  result: z.instanceof(Buffer).nullable(),
  error: lookError.nullable(),
  waiting: waiting.nullable(),
  /** Seconds until the same pair is looked at anew after a retryable failure. */
  pause: z.number(),
})
export type LookView = z.output<typeof lookView>

export function findLook(db: Database, id: string): Promise<LookView | null> {
  return db.maybeOne(sql.prepared('find_look', lookView)`
    select id, state, stage, result, error, waiting,
           extract(epoch from changed_at + ${PAUSE_SECONDS} * interval '1 second' - now())::float8 pause
    from looks where id = ${id}`)
}

/** A look as its worker holds it. `attempt` is the token with which this worker may commit. */
const workingLook = z.object({
  id: z.uuid(),
  attempt: z.uuid(),
  address_key: z.string(),
  body: z.object({ source_url: z.string(), claim: z.string() }),
  sample: z.string().nullable(),
  domain: z.string(),
  priority: z.number(),
  changed_at: z.date(),
})
export type WorkingLook = z.output<typeof workingLook>

/** Takes the look for one attempt; an earlier attempt can commit nothing from here on. Null when no work is left. */
export function claimLook(db: Database, id: string, attempt: string): Promise<WorkingLook | null> {
  return db.maybeOne(sql.prepared('claim_look', workingLook)`
    update looks set attempt = ${attempt}, waiting = null where id = ${id} and state = 'pending'
    returning id, attempt, encode(address_key, 'hex') address_key, body, sample, domain, priority, changed_at`)
}

/** Whether this attempt still holds the look. If so, no other attempt can take it before the transaction ends. */
export function holdsLook(tx: Tx, { id, attempt }: Held): Promise<boolean> {
  return tx.exists(sql.type(z.object({ held: z.number() }))`
    select 1 held from looks where id = ${id} and attempt = ${attempt} and state = 'pending' for update`)
}

/** Writes nothing if another attempt has taken the look. */
export async function enterStage(db: Database, { id, attempt }: Held, stage: Stage): Promise<void> {
  await db.query(sql.prepared('enter_look_stage', nothing)`
    update looks set stage = ${stage} where id = ${id} and attempt = ${attempt} and state = 'pending'`)
}

/** Writes nothing, and answers false, if another attempt has taken the look. Throws for an answer of another shape. */
export async function completeLook(db: Database, { id, attempt }: Held, result: LookResult): Promise<boolean> {
  const bytes = Buffer.from(JSON.stringify(lookResult.parse(result)))
  const { rowCount } = await db.query(sql.prepared('complete_look', nothing)`
    update looks set state = 'completed', result = ${sql.binary(bytes)}, attempt = null, waiting = null, changed_at = now()
    where id = ${id} and attempt = ${attempt} and state = 'pending'`)
  return rowCount === 1
}

/** Writes nothing, and answers false, if another attempt has taken the look. */
export async function failLook(
  db: Database,
  { id, attempt }: Held,
  { code, message, retryable }: AppError,
): Promise<boolean> {
  const { rowCount } = await db.query(sql.prepared('fail_look', nothing)`
    update looks set state = 'failed', error = ${JSON.stringify({ code, message, retryable })}::json, attempt = null,
                     waiting = null, changed_at = now()
    where id = ${id} and attempt = ${attempt} and state = 'pending'`)
  return rowCount === 1
}

/** Records what a look waits for. */
export async function storeWait(tx: Tx, { id }: Held, wait: Waiting): Promise<void> {
  await tx.query(sql.type(nothing)`
    update looks set stage = 'waiting', waiting = ${JSON.stringify(wait)}::json where id = ${id}`)
}

const MAX_ATTEMPTS = 3

/** The job of a look. */
export function lookJob({ id, priority }: { id: string; priority: number }) {
  const payload = { look_id: id }
  return { name: 'take_look' as const, payload, key: `look:${id}`, priority, maxAttempts: MAX_ATTEMPTS }
}

/** Drops pages, claims and answers that are past their time. What is left of the rows counts for their day. @returns rows */
export async function expireLooks(db: Database): Promise<number> {
  const { rowCount } = await db.query(sql.type(nothing)`
    update looks set state = 'expired', body = null, result = null, error = null
    where state in ('completed', 'failed') and changed_at < now() - ${KEEP_SECONDS} * interval '1 second'`)
  return rowCount
}
