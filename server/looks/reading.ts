// The job of one free look: reads the page and judges the claim with the functions of a purchase, and stores the answer. Nothing
// is settled, and no receipt is made.

import { observeSource } from '../../workers/retrieval/observation.ts'
import { MAX_PAUSE_SECONDS } from '../../workers/retrieval/origin-wait.ts'
import type { Payload } from '../db/jobs.ts'
import { attempt, type FreeWork } from '../free-work/attempt.ts'
import { postpone } from '../free-work/jobs.ts'
import type { Observation } from '../interface/observation.ts'
import { DEFAULT_MAX_AGE_SECONDS } from '../interface/result.ts'
import type { Lane } from '../threads/pool.ts'
import { judgeClaim } from '../verification/stages/assessment-stage.ts'
import type { JobAttempt, VerificationTools as Work } from '../verification/stages/stage-tools.ts'
import {
  claimLook,
  completeLook,
  composeLook,
  enterStage,
  failLook,
  holdsLook,
  lookJob,
  type Stage,
  storeWait,
  type WorkingLook,
} from './look.ts'
import { observeSample } from './sample-observation.ts'

export const LOOKS: FreeWork<WorkingLook, Work> = {
  table: 'looks',
  event: 'look',
  job: lookJob,
  claim: claimLook,
  holds: holdsLook,
  // A look counts against the day from its admission on, also if it fails.
  fail: failLook,
  since: (look) => look.changed_at,
  begun: () => true,
  postpone: (tx, fetches, runAt) => postpone(LOOKS, tx, fetches, runAt),
  read: observe,
  answer: judge,
  storeWait,
  failed: ({ metrics }) => metrics.looks.inc({ outcome: 'failed' }),
}

export function takeLook({ look_id }: Payload<'take_look'>, work: Work, job: JobAttempt): Promise<void> {
  return attempt(LOOKS, look_id, work, job)
}

/** A page comes from the cache that purchases use, or is read into it; a sample from the service itself. */
async function observe(look: WorkingLook, work: Work, signal: AbortSignal): Promise<Observation> {
  await enter('reading', look, work)
  const { body, sample } = look
  const lane = lookLane(look)
  if (sample !== null) return observeSample(sample, body.source_url, work, { signal, lane })
  const visit = () => observeSource(body.source_url, work, { signal, jobKey: lookJob(look).key, lane })
  return (await work.cache.observe(body.source_url, DEFAULT_MAX_AGE_SECONDS, visit, signal)).observation
}

async function judge(look: WorkingLook, observation: Observation, work: Work, signal: AbortSignal) {
  const { id, body } = look
  await enter('assessing', look, work)
  const until = look.changed_at.getTime() + MAX_PAUSE_SECONDS * 1000
  const task = { claim: body.claim, observation, signal, until, lane: lookLane(look) }
  const assessment = await judgeClaim(task, work)
  if (!(await completeLook(work.db, look, composeLook(body, observation, assessment)))) return
  const verdict = assessment.claim_support
  work.metrics.looks.inc({ outcome: verdict })
  work.log.info({ event: 'look_completed', look_id: id, verdict, sample: look.sample ?? undefined })
  await work.changeEvents.add(id)
}

async function enter(stage: Stage, look: WorkingLook, { db, changeEvents }: Work) {
  await enterStage(db, look, stage)
  await changeEvents.add(look.id)
}

/** The lane of a look, for which no purchase pays. */
function lookLane({ address_key, domain }: WorkingLook): Lane {
  return { payer: address_key, domain, isFree: true }
}
