// The purchase of a verification: quote, payment, acceptance.
//
// The order in `submit` is part of the contract. The key is looked up before any payment is read, because a stock x402
// client repeats every call unsigned first and signs a new payment at every 402. The service never answers 402 while a
// payment for the key may still be charged.
import { AppError, errorTable, sayUncharged } from '../errors.ts'
import { claimCount, type PurchaseBody } from '../interface/claims.ts'
import { type Call, refuseOverflow } from '../operation.ts'
import { sourceDomain } from '../outbound/registrable-domain.ts'
import { sealPayload } from '../payments/seal.ts'
import type { OfferedPayment } from '../payments/x402.ts'
import { canonicalJson, sha256 } from '../receipts/format.ts'
import { aboutRequest } from '../telemetry.ts'
import { inSpan, presentSpan, sending } from '../tracing/spans.ts'
import type { Admission, Admitted } from './admission/admission.ts'
import { addressKeyOf, limitError } from './admission/in-flight-limits.ts'
import { findTwin, paymentTaken, takePayment, withoutPayment } from './admission/offered-payment.ts'
import { checkPurchasable } from './admission/preflight.ts'
import { findNamed, findPaymentKey } from './admission/purchase-key.ts'
import { answerRequest, askForPayment, awaitOutcome, describeSale, expiryOf } from './answer.ts'
import type { VerificationAnswer } from './answer-body.ts'
import { keyHashOf } from './lookup.ts'
import { isPayable } from './request.ts'
import { makeRequestId } from './request-id.ts'

export async function submit(input: PurchaseBody, call: Call): Promise<VerificationAnswer> {
  const { api } = call
  const arrived = performance.now()
  const keyHash = keyHashOf(call.options)
  const body = withoutEmptyOptions(input)
  const claims = claimCount(body)
  const bodyHash = hashBody(body)
  const row = await api.keyReads.add(keyHash)
  const expiry = row && expiryOf(row, api)
  if (expiry) throw expiry
  if (row && row.body_hash !== bodyHash) throw keyReused()
  if (row && !isPayable(row, Date.now())) return answerRequest(row, call, { replay: true })
  if (!api.config.verificationEnabled) throw new AppError('verification_disabled', 'Verification is switched off here.')
  const isAttempt = !row || row.state === 'failed'
  const url = checkPurchasable(body, api.config.fixtures)
  requireSale(api)
  if (isAttempt) {
    await api.assessors.requireOne()
    await api.queueWait.requireShort()
  }

  const named = await findNamed(call.credentials.payment, api)
  const id = row?.id ?? call.options.requestId ?? (named?.isFree ? named.id : makeRequestId())
  aboutRequest(id)
  // The signature must prove the payer before anything is looked up by payer.
  const { offer, refusal } = await takePayment(call, { id: named?.isReleased ? named.id : id, claims })
  const twin = offer && (await findTwin(offer, id, call))
  if (twin && twin.body_hash !== bodyHash)
    throw new AppError('payment_conflict', 'This payment identifier was used for another request body.')
  if (twin) return answerRequest(twin, withoutPayment(call), { replay: true })
  if (call.options.withdrawn?.aborted) throw new AppError('cancelled', 'The call was cancelled. Nothing was charged.')
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
  if (!offer && !row) await api.limits.spendQuote(call.credentials.address)
  // The work on the request is a part of this span.
  const admitted = await inSpan(...sending('verify_request'), () =>
    admit({ ...admission, ...presentSpan() }, offer, call),
  )
  if (admitted.kind === 'payment_taken') throw paymentTaken()
  if (admitted.kind === 'limited') throw limitError(admitted)
  const { row: current, accepted } = admitted
  if (current.body_hash !== bodyHash) throw keyReused()
  if (accepted) {
    api.metrics.moves.inc({ state: 'accepted' })
    api.metrics.admissionSeconds.observe((performance.now() - arrived) / 1000)
    return awaitOutcome(current, call, { replay: false })
  }
  return isPayable(current, Date.now())
    ? askForPayment({ ...current, claims }, call, refusal)
    : answerRequest(current, call, { replay: true })
}

/** A purchase by a call that may lack a key: it is then named by its payment. */
export async function buy(input: PurchaseBody, call: Call): Promise<VerificationAnswer> {
  const { api, credentials, options } = call
  if (options.idempotencyKey !== undefined) return submit(input, call)
  const bodyHash = hashBody(withoutEmptyOptions(input))
  const key = await findPaymentKey(credentials.payment, bodyHash, { api, address: credentials.address })
  return submit(input, { ...call, options: { ...options, ...key } })
}

/** The statuses of errors in the call itself. */
const OF_CALL = new Set([400, 415, 422])

/**
 * The answer to a call without a payment: of `submit` if key and body are valid, and else the terms alone, with what is wrong
 * with the call. @param read as for `unpaid` in operation.ts
 */
export async function quoteAnyCall(read: () => PurchaseBody, call: Call): Promise<VerificationAnswer> {
  let claims: number | null = null
  try {
    const input = read()
    claims = claimCount(input)
    checkPurchasable(input, call.api.config.fixtures)
    if (call.options.idempotencyKey === undefined) return showTerms(call, { claims })
    return await submit(input, call)
  } catch (error) {
    if (!(error instanceof AppError) || !OF_CALL.has(errorTable[error.code].status)) throw error
    return showTerms(call, { claims, problem: error })
  }
}

/**
 * The terms of a purchase, which is stored only when it is paid.
 * @param problem why the call could not buy as it is @param claims as in `RequestView`
 */
export function showTerms(
  { api }: Pick<Call, 'api'>,
  { claims = null, problem }: { claims?: number | null; problem?: AppError } = {},
): VerificationAnswer {
  requireSale(api)
  const offer = describeSale(claims)
  const message = problem ? `${offer} As it is, this call would be refused: ${problem.message}` : offer
  return {
    kind: 'payment_required',
    requestId: makeRequestId(),
    claims,
    unstored: true,
    code: 'payment_required',
    message: sayUncharged(message),
    quoteExpiresAt: new Date(api.now() + api.config.quoteTtlSeconds * 1000),
  }
}

/** Throws AppError `verification_disabled`, `provider_unavailable`. */
function requireSale({ config, facilitator }: Call['api']) {
  if (!config.verificationEnabled) throw new AppError('verification_disabled', 'Verification is switched off here.')
  // Until the facilitator has answered once, some networks have no terms.
  if (facilitator.accepts.length === 0)
    throw new AppError('provider_unavailable', 'Payments cannot be taken right now. Nothing was charged.')
}

function keyReused() {
  return new AppError('idempotency_conflict', 'This Idempotency-Key was used with another request body.')
}

function hashBody(body: PurchaseBody): string {
  return sha256(canonicalJson(body))
}

/** Options without any value are dropped: `{}` is the same body as one without `options`. */
function withoutEmptyOptions(given: PurchaseBody): PurchaseBody {
  const isGiven = Object.values(given.options ?? {}).some((value) => value !== undefined)
  if (isGiven) return given
  const { options: _, ...rest } = given
  return rest
}

type Decided = Exclude<Admitted, { kind: 'cover_unknown' | 'pruned' }>

/**
 * The payer's balance is read only when it decides: when the payer has unsettled requests in flight. A row that was pruned
 * between lookup and admission is inserted again.
 */
async function admit(
  admission: Admission,
  offer: OfferedPayment | null,
  call: Call,
  cover?: number | null,
): Promise<Decided> {
  const { api } = call
  const payment = offer && {
    bound: offer.bound,
    sealFor: (id: string) => sealPayload(api.secrets.payload, id, offer.payload),
    ...(cover !== undefined && { cover }),
  }
  const admitted = await api.admissions.add({ ...admission, ...(payment && { payment }) }).catch(refuseOverflow)
  if (admitted.kind === 'pruned') return admit({ ...admission, known: false }, offer, call, cover)
  if (admitted.kind !== 'cover_unknown') return admitted
  if (!offer || cover !== undefined) throw new Error('the cover of a payment was given and not used')
  return admit(admission, offer, call, await api.facilitator.cover(offer))
}
