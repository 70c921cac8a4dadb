// The call for a free look: what a purchase would refuse is refused, then the work is admitted and followed to its end.
import { z } from 'zod'
import { networkKey } from '../accounts/address-key.ts'
import { transact } from '../db/pool.ts'
import { AppError, ERROR_CODES } from '../errors.ts'
import { type Call, endOfWait, parseInput } from '../operation.ts'
import { sourceDomain } from '../outbound/registrable-domain.ts'
import { addressKeyOf } from '../verification/admission/in-flight-limits.ts'
import { checkPurchasable } from '../verification/admission/preflight.ts'
import { describeWork } from '../verification/pending-answer.ts'
import { admitLook } from './admission.ts'
import { findLook, type LookInput, type LookView, lookInput, type Stage } from './look.ts'
import { type Sample, sampleAt } from './samples.ts'

export type LookEvent =
  | { kind: 'stage'; stage: Stage }
  | { kind: 'completed'; bytes: Buffer }
  | { kind: 'failed'; error: AppError }
  /** The work goes on after the longest wait: the same call gets its answer later, and is not counted again. */
  | { kind: 'pending'; message: string; retryAfterSeconds: number }

/** The address of a sample is accepted as it is, also where the service has a local one. */
const sampleInput = z.strictObject({ source_url: z.string(), claim: lookInput.shape.claim })

/**
 * Admits the look that the body asks for. Throws AppError: `not_found` where looks are switched off, what a purchase of the
 * same page and claim would be refused with, and the limits.
 * @param raw the body as it came
 * @returns its id
 */
export async function startLook(raw: unknown, call: Pick<Call, 'api' | 'credentials'>): Promise<string> {
  const { api, credentials } = call
  const { config } = api
  if (!config.try.enabled) throw new AppError('not_found', 'Nothing can be tried here: TRY_ENABLED is false.')
  const { input, sample } = readBody(raw, api.baseUrl)
  if (!config.verificationEnabled) throw new AppError('verification_disabled', 'Verification is switched off here.')
  const domain = sample
    ? `sample ${sample.name}`
    : sourceDomain(checkPurchasable(input, config.fixtures), config.fixtures)
  await api.assessors.requireOne()
  await api.queueWait.requireShort()
  const address = {
    addressKey: addressKeyOf(credentials.address, api.secrets.address),
    networkKey: addressKeyOf(networkKey(credentials.address).replace(/\/\d+$/, ''), api.secrets.address),
  }
  const caller = sample?.claim === input.claim ? null : address
  return transact(api.db, (tx) => admitLook(tx, { caller, input, sample: sample?.name ?? null, domain }, config.try))
}

function readBody(raw: unknown, baseUrl: string): { input: LookInput; sample: Sample | undefined } {
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw))
    throw new AppError('invalid_request', 'The body must be a JSON object.')
  const url = 'source_url' in raw && typeof raw.source_url === 'string' ? raw.source_url : ''
  const sample = sampleAt(url, baseUrl)
  // The cast is safe: each schema has these two members, and no other.
  return { input: parseInput(sample ? sampleInput : lookInput, raw) as LookInput, sample }
}

/**
 * The stages of a look as they are entered, and at last its outcome. It ends when the caller disconnects, and after the wait
 * that the call asks for, with `pending`.
 */
export async function* followLook(id: string, { api, options }: Call): AsyncGenerator<LookEvent, void> {
  const enough = endOfWait(options, api.draining)
  let told: Stage | undefined
  while (true) {
    using watching = watchChange(id, api, enough)
    const look = await findLook(api.db, id)
    const outcome = look && outcomeOf(look)
    if (outcome) return yield outcome
    if (!look) return yield { kind: 'failed', error: new AppError('execution_failed', 'The look has expired.') }
    if (look.stage !== told) yield { kind: 'stage', stage: look.stage }
    told = look.stage
    if (!enough || enough.aborted) return yield await describeWaiting(look, api)
    await watching.changed
  }
}

/** Listens from before the row is read, so that no change is missed between. */
function watchChange(id: string, { changeEvents }: Call['api'], enough: AbortSignal | null) {
  const done = new AbortController()
  const signal = enough ? AbortSignal.any([enough, done.signal]) : done.signal
  const changed = enough ? changeEvents.waitForChange(id, signal) : Promise.resolve()
  return { changed, [Symbol.dispose]: () => done.abort() }
}

function outcomeOf({ result, error, pause }: LookView): LookEvent | null {
  if (result) return { kind: 'completed', bytes: result }
  if (!error) return null
  const { message, retryable } = error
  // A code that another release stored and this release does not know becomes `execution_failed`.
  const code = ERROR_CODES.find((one) => one === error.code) ?? 'execution_failed'
  const headers: Record<string, string> = retryable ? { 'retry-after': String(Math.max(1, Math.ceil(pause))) } : {}
  return { kind: 'failed', error: new AppError(code, message, { retryable, headers }) }
}

async function describeWaiting({ waiting }: LookView, api: Call['api']): Promise<LookEvent> {
  const now = api.now()
  const { reason, retryAfterSeconds } = describeWork(waiting, { now, hasWorker: await api.assessors.hasWorker() })
  const message = `${reason} Repeat this call in ${retryAfterSeconds} s; it is not counted again.`
  return { kind: 'pending', message, retryAfterSeconds }
}
