// What a caller may ask of verification: buy one, get its result back, learn what is on offer.
//
// The order in `submit` is the contract: the key is looked up before any payment is read, because a stock x402 client
// repeats every call unsigned first and signs anew at every 402. No 402 leaves here while a payment may be under way.
import { createHash, randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Api } from '../context.ts'
import { AppError, sayUncharged } from '../errors.ts'
import { completedResult, PRICE, type VerificationInput, verificationInput } from '../interface/result.ts'
import { type Call, defineExchange, defineVerification, refuseOverflow } from '../operation.ts'
import { sourceDomain } from '../outbound/registrable-domain.ts'
import { isBoundToAnother } from '../payments/known-payments.ts'
import { sealPayload } from '../payments/seal.ts'
import { type OfferedPayment, samePayment } from '../payments/x402.ts'
import { canonicalJson, sha256 } from '../receipts/format.ts'
import type { Admission, Admitted } from './admission.ts'
import type { VerificationAnswer } from './answer-body.ts'
import { capabilities, describeCapabilities } from './capabilities.ts'
import { addressKeyOf, limitError } from './fairness.ts'
import { checkProspects } from './gate.ts'
import { findById, findByIdentifier, findByKey, findResult } from './lookup.ts'
import { describeResource } from './offer.ts'
import { describeWait } from './pending.ts'
import { isRecoveryToken, isSameToken, recoveryToken } from './recovery.ts'
import { isPayable, type RequestView, WORKING } from './request.ts'

export const verifySource = defineVerification({
  name: 'verify_source',
  summary: 'Verify one claim against one public HTTPS page',
  description:
    'Without PAYMENT-SIGNATURE: 402 with the terms of payment. With it, the identical body and the identical ' +
    'Idempotency-Key: the work is done, and paid for only when it is done. Repeat the same call as often as you like: ' +
    'one key is charged at most once. After a failure that is `retryable`, the same call is answered 402 and may be paid ' +
    'again. `Prefer: wait=N` (up to 25 s) holds the answer until the work is finished.',
  method: 'POST',
  path: '/api/agent/v1/verify-source',
  family: 'verification',
  access: 'payment',
  kind: 'exchange',
  input: verificationInput,
  output: completedResult,
  run: submit,
})

export const getRequest = defineVerification({
  name: 'get_request',
  summary: 'Recover the result of a request',
  description:
    'Needs the recovery token that came with 202 and 200 as bearer token. `Prefer: wait=N` holds the answer. A request that ' +
    'failed answers 422; one whose payment did not settle, and provably never will, answers 402 with the terms.',
  method: 'GET',
  path: '/api/agent/v1/requests/{request_id}',
  family: 'verification',
  access: 'recovery',
  kind: 'exchange',
  input: z.object({ request_id: z.string() }),
  output: completedResult,
  run: recover,
})

export const getCapabilities = defineExchange({
  name: 'get_capabilities',
  summary: 'What this service offers: schemas, limits, price, networks',
  method: 'GET',
  path: '/api/agent/v1/capabilities',
  family: 'verification',
  unlimited: true,
  access: 'public',
  kind: 'exchange',
  input: z.object({}),
  output: capabilities,
  run: async (_input, { api }) => describeCapabilities(api),
})

async function submit(input: VerificationInput, call: Call): Promise<VerificationAnswer> {
  const { api } = call
  const keyHash = hashKey(call.options.idempotencyKey)
  const body = withoutEmptyOptions(input)
  const bodyHash = sha256(canonicalJson(body))
  const row = await findByKey(api.db, keyHash)
  if (row && row.body_hash !== bodyHash)
    throw new AppError('idempotency_conflict', 'This Idempotency-Key was used with another request body.')
  if (row && !isPayable(row, Date.now())) return answerStanding(row, call, { replay: true })
  if (!api.config.verificationEnabled) throw new AppError('verification_disabled', 'Verification is switched off here.')
  const isAttempt = !row || row.state === 'failed'
  const url = checkProspects(body, api.config.fixtures)
  // A facilitator that was never reached leaves some networks without terms.
  if (api.facilitator.accepts.length === 0)
    throw new AppError('provider_unavailable', 'Payments cannot be taken right now. Nothing was charged.')
  if (isAttempt) await api.assessors.requireOne()

  const id = row?.id ?? call.options.requestId ?? randomUUID()
  // The payer is proved before anything is looked up for it.
  const { offer, refusal } = await takePayment(call, id)
  const twin = offer && (await findTwin(offer, id, call))
  if (twin && twin.body_hash !== bodyHash)
    throw new AppError('payment_conflict', 'This payment identifier was used for another request body.')
  if (twin) return answerStanding(twin, withoutPayment(call), { replay: true })
  if (call.options.withdrawn?.aborted) throw new AppError('cancelled', 'The call was taken back. Nothing was charged.')
  const admission: Admission = {
    id,
    known: row !== null,
    keyHash,
    bodyHash,
    body,
    quoteTtlSeconds: api.config.quoteTtlSeconds,
    addressKey: addressKeyOf(call.credentials.address, api.secrets.address),
    domain: sourceDomain(url, api.config.fixtures),
  }
  const admitted = await admit(admission, offer, call)
  if (admitted.kind === 'payment_taken') throw paymentTaken()
  if (admitted.kind === 'limited') throw limitError(admitted)
  const { row: now, accepted } = admitted
  if (now.body_hash !== bodyHash)
    throw new AppError('idempotency_conflict', 'This Idempotency-Key was used with another request body.')
  if (accepted) return awaitOutcome(now, call, { replay: false })
  return isPayable(now, Date.now()) ? askForPayment(now, call, refusal) : answerStanding(now, call, { replay: true })
}

/** Options of which none is given are none: `{}` is the body that has no options. */
function withoutEmptyOptions({ options, ...rest }: VerificationInput): VerificationInput {
  const isGiven = Object.values(options ?? {}).some((value) => value !== undefined)
  return isGiven ? { ...rest, options } : rest
}

type Decided = Exclude<Admitted, { kind: 'cover_unknown' }>

/** Asks what the payer's balance covers only where it matters: when the payer has something unsettled already. */
async function admit(admission: Admission, offer: OfferedPayment | null, { api }: Call): Promise<Decided> {
  const add = (cover?: number | null) => {
    const payment = offer && {
      bound: offer.bound,
      sealFor: (id: string) => sealPayload(api.secrets.payload, id, offer.payload),
      ...(cover !== undefined && { cover }),
    }
    return api.admissions.add({ ...admission, ...(payment && { payment }) }).catch(refuseOverflow)
  }
  const first = await add()
  if (first.kind !== 'cover_unknown') return first
  const second = await add(offer && (await api.facilitator.cover(offer)))
  if (second.kind === 'cover_unknown') throw new Error('the cover of a payment was given and not taken')
  return second
}

const requestId = z.uuid()

async function recover(input: { request_id: string }, call: Call): Promise<VerificationAnswer> {
  const { api, credentials } = call
  const unknown = () => new AppError('not_found', 'There is no such request, or the recovery token is not its own.')
  if (!requestId.safeParse(input.request_id).success || !credentials.bearer) throw unknown()
  const id = input.request_id.toLowerCase()
  const kept = api.results.get(id)
  if (kept && kept.expiresAt > Date.now() && isSameToken(kept.recoveryToken, credentials.bearer))
    return { kind: 'completed', requestId: id, replay: false, ...kept }
  if (!isRecoveryToken(api.secrets.recovery, id, credentials.bearer)) throw unknown()
  const row = await findById(api.db, id)
  if (!row || row.state === 'quoted') throw unknown()
  if (row.state === 'unpaid' && isPayable(row, Date.now())) return askForPayment(row, call, null)
  return answerStanding(row, call, { replay: false })
}

const KEY_FORM = /^[A-Za-z0-9_.:-]{16,128}$/

/** What is stored of a key. Throws AppError `invalid_idempotency_key`. */
export function hashKey(key: string | undefined): Buffer {
  if (key === undefined) throw new AppError('invalid_idempotency_key', 'The Idempotency-Key header is required.')
  if (!KEY_FORM.test(key))
    throw new AppError('invalid_idempotency_key', 'Idempotency-Key must be 16 to 128 characters of A-Z a-z 0-9 _ . : -')
  return createHash('sha256').update(key).digest()
}

/** Throws AppError `payment_invalid`. */
function readPaymentOf(requestId: string, given: unknown, api: Api): OfferedPayment {
  return api.facilitator.read(given, requestId, (through) => describeResource(api, through))
}

/** The verified payment that came along, or why the one that came is not taken, or neither. */
async function takePayment(
  { api, credentials }: Call,
  requestId: string,
): Promise<{ offer: OfferedPayment | null; refusal: AppError | null }> {
  if (credentials.payment === undefined) return { offer: null, refusal: null }
  let offer: OfferedPayment | undefined
  try {
    offer = readPaymentOf(requestId, credentials.payment, api)
    // The signature of a payment that is bound proves as much as checking it would, and takes no call outside.
    if (await isBoundToAnother(api.db, offer.bound, requestId)) throw paymentTaken()
    await api.facilitator.verify(offer, credentials.address)
    return { offer, refusal: null }
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'payment_invalid')) throw error
    // Bound meanwhile: a chain refuses what it has seen before, and so says less than we know.
    if (offer && (await isBoundToAnother(api.db, offer.bound, requestId))) throw paymentTaken()
    return { offer: null, refusal: error }
  }
}

/** Another request that this payer calls by the same name, under whatever key: the payment that came is not used. */
async function findTwin({ bound }: OfferedPayment, requestId: string, { api }: Call): Promise<RequestView | null> {
  if (!bound.identifier) return null
  const twin = await findByIdentifier(api.db, bound.identity.payer, bound.identifier)
  return twin?.id === requestId ? null : twin
}

function withoutPayment(call: Call): Call {
  return { ...call, credentials: { ...call.credentials, payment: undefined } }
}

function paymentTaken() {
  return new AppError('payment_conflict', 'This payment authorization is bound to another request.')
}

function askForPayment(row: RequestView, { api }: Call, refusal: AppError | null): VerificationAnswer {
  // A failed request can be paid anew at any time; its terms are told anew each time.
  const anew = new Date(Date.now() + api.config.quoteTtlSeconds * 1000)
  const quoteExpiresAt = row.state === 'failed' ? anew : row.quote_expires_at
  const asked = { kind: 'payment_required' as const, requestId: row.id, quoteExpiresAt }
  if (refusal) return { ...asked, code: 'payment_invalid', message: sayUncharged(refusal.message) }
  if (row.state === 'unpaid')
    return {
      ...asked,
      code: 'settlement_failed',
      message: 'The earlier payment did not settle and never will: nothing was charged. The work is kept; pay anew.',
    }
  const offered = `${PRICE.usd} USDC buys this verification. Nothing was charged.`
  const again = `The last attempt failed and may succeed now (${row.error?.code}). ${PRICE.usd} USDC buys another.`
  const message = row.state === 'failed' ? sayUncharged(again) : offered
  return { ...asked, code: 'payment_required', message }
}

/** A request that is past payment: what it came to, or where it is. */
async function answerStanding(
  row: RequestView,
  call: Call,
  { replay }: { replay: boolean },
): Promise<VerificationAnswer> {
  const otherPayment = bringsOtherPayment(row, call)
  if (row.state === 'completed') {
    if (otherPayment)
      throw new AppError('payment_conflict', 'This request is completed and was paid by another payment.')
    return serveResult(row.id, call, replay)
  }
  if (WORKING.includes(row.state)) return awaitOutcome(row, call, { replay, otherPayment })
  if (row.state === 'failed' && row.error) return { kind: 'failed', requestId: row.id, error: row.error }
  if (row.state === 'expired' && row.payment)
    throw new AppError('result_expired', 'The result is past its retention and was deleted.')
  throw new AppError(
    'quote_expired',
    'The quote was not paid in time. Ask with a new Idempotency-Key; this one is free again an hour after the expiry.',
  )
}

/** A payment that cannot be read is no payment; only a readable one that differs from the bound one counts. */
function bringsOtherPayment(row: RequestView, { api, credentials }: Call): boolean {
  if (credentials.payment === undefined || !row.payment) return false
  try {
    return !samePayment(readPaymentOf(row.id, credentials.payment, api).bound.identity, row.payment.identity)
  } catch {
    return false
  }
}

/** Stages are not announced; whoever watches them looks this often. */
const WATCH_MS = 200

/** Waits as long as the caller wants to and we may, then says how things stand. */
async function awaitOutcome(
  row: RequestView,
  call: Call,
  { replay, otherPayment = false }: { replay: boolean; otherPayment?: boolean },
): Promise<VerificationAnswer> {
  const { api, options } = call
  const enough = AbortSignal.any([AbortSignal.timeout(options.waitSeconds * 1000), options.signal, api.draining])
  let now: RequestView | null = row
  options.watch?.(row.state)
  while (now && WORKING.includes(now.state) && options.waitSeconds > 0 && !enough.aborted) {
    await api.waiting.nextSign(row.id, enough, options.watch && WATCH_MS)
    now = await findById(api.db, row.id)
    if (now) options.watch?.(now.state)
  }
  if (!now) throw new Error(`request ${row.id} vanished`)
  if (!WORKING.includes(now.state))
    return now.state === 'unpaid' ? askForPayment(now, call, null) : answerStanding(now, call, { replay })
  const unused = otherPayment ? ' The other payment that came with this call is not used.' : ''
  const { message, ...pending } = describeWait(now, { now: api.now(), hasWorker: await api.assessors.hasWorker() })
  return { kind: 'pending', requestId: row.id, ...pending, message: message + unused }
}

async function serveResult(id: string, { api }: Call, replay: boolean): Promise<VerificationAnswer> {
  const kept = api.results.get(id) ?? (await readResult(id, api))
  if (!kept || kept.expiresAt <= Date.now())
    throw new AppError('result_expired', 'The result is past its retention and was deleted.')
  return { kind: 'completed', requestId: id, replay, ...kept }
}

async function readResult(id: string, api: Call['api']) {
  const row = await findResult(api.db, id)
  if (!row) return null
  const kept = {
    bytes: row.result,
    settlementHeader: row.settlement_header,
    recoveryToken: recoveryToken(api.secrets.recovery, id),
    expiresAt: row.changed_at.getTime() + api.config.resultRetentionSeconds * 1000,
  }
  api.results.set(id, kept)
  return kept
}
