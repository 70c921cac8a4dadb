// The answer to a call, made from the stored request: a result, a failure, the terms of payment, or how long to wait.
import { AppError, sayUncharged } from '../errors.ts'
import { priceOf } from '../interface/price.ts'
import { type Call, endOfWait } from '../operation.ts'
import { hasOtherPayment } from './admission/offered-payment.ts'
import type { VerificationAnswer } from './answer-body.ts'
import { findById, findResult, resultEnd } from './lookup.ts'
import { describePending } from './pending-answer.ts'
import { recoveryToken } from './recovery-token.ts'
import { type RequestView, WORKING } from './request.ts'

/** The price in words. @param claims as in `RequestView` */
export function describeSale(claims: number | null): string {
  const { usd } = priceOf(claims)
  if (claims === null) return `${usd} USDC buys one verification.`
  return `${usd} USDC buys a verification of ${claims} ${claims === 1 ? 'claim' : 'claims'} on one page.`
}

/** The terms for a payable request. @param refusal why the payment that came with the call is not accepted */
export function askForPayment(row: RequestView, { api }: Call, refusal: AppError | null): VerificationAnswer {
  // A failed request can be paid again at any time; each 402 for it has a new expiry.
  const fresh = new Date(Date.now() + api.config.quoteTtlSeconds * 1000)
  const quoteExpiresAt = row.state === 'failed' ? fresh : row.quote_expires_at
  const asked = { kind: 'payment_required' as const, requestId: row.id, claims: row.claims, quoteExpiresAt }
  const { usd } = priceOf(row.claims)
  if (refusal) return { ...asked, code: 'payment_invalid', message: sayUncharged(refusal.message) }
  if (row.state === 'unpaid')
    return {
      ...asked,
      code: 'settlement_failed',
      message:
        'The earlier payment did not settle and never will: nothing was charged. The work is kept; make a new payment.',
    }
  const offered = `${usd} USDC buys this verification. Nothing was charged.`
  const again = `The last attempt failed and may succeed now (${row.error?.code}). ${usd} USDC buys another.`
  const message = row.state === 'failed' ? sayUncharged(again) : offered
  return { ...asked, code: 'payment_required', message }
}

/**
 * The error for a request whose time is over by the clock, or null. It comes before every other answer, with
 * any payment and body of the call; the deletion of old rows, which runs later, changes nothing for the caller.
 */
export function expiryOf(row: RequestView, { config }: Call['api']): AppError | null {
  const now = Date.now()
  if (row.state === 'completed') return resultEnd(row, config.resultRetentionSeconds) <= now ? resultExpired() : null
  if (row.state === 'expired') return row.payment ? resultExpired() : quoteExpired()
  const isUnpaid = row.state === 'quoted' || row.state === 'unpaid'
  return isUnpaid && row.quote_expires_at.getTime() <= now ? quoteExpired() : null
}

function resultExpired() {
  return new AppError('result_expired', 'The result is past its retention and was deleted.')
}

function quoteExpired() {
  return new AppError(
    'quote_expired',
    'The quote was not paid in time. Ask with a new Idempotency-Key; this one is free again an hour after the expiry.',
  )
}

/**
 * The answer for a request that is not payable. Throws AppError `payment_conflict`, `result_expired`, `quote_expired`.
 * @param options `replay`: the request existed before this call
 */
export async function answerRequest(
  row: RequestView,
  call: Call,
  { replay }: { replay: boolean },
): Promise<VerificationAnswer> {
  const expiry = expiryOf(row, call.api)
  if (expiry) throw expiry
  const otherPayment = hasOtherPayment(row, call)
  if (row.state === 'completed') {
    if (otherPayment)
      throw new AppError('payment_conflict', 'This request is completed and was paid by another payment.')
    return serveResult(row.id, call, replay)
  }
  if (WORKING.includes(row.state)) return awaitOutcome(row, call, { replay, otherPayment })
  if (row.state === 'failed' && row.error) return { kind: 'failed', requestId: row.id, error: row.error }
  throw new Error(`request ${row.id} in state ${row.state} has no answer`)
}

/** Changes between two stages are not announced; a call that reports stages reads the row this often. */
const WATCH_MS = 200

/**
 * Waits for the outcome, as long as the caller asks and the limits of the process allow, and returns the answer for the
 * state that the request has then.
 */
export async function awaitOutcome(
  row: RequestView,
  call: Call,
  { replay, otherPayment = false }: { replay: boolean; otherPayment?: boolean },
): Promise<VerificationAnswer> {
  const { api, options } = call
  const enough = endOfWait(options, api.draining)
  let current: RequestView | null = row
  options.watch?.(row.state)
  while (current && WORKING.includes(current.state) && enough && !enough.aborted) {
    await api.changeEvents.waitForChange(row.id, enough, options.watch && WATCH_MS)
    current = await findById(api.db, row.id)
    if (current) options.watch?.(current.state)
  }
  if (!current) throw new Error(`request ${row.id} vanished`)
  if (!WORKING.includes(current.state))
    return current.state === 'unpaid' ? askForPayment(current, call, null) : answerRequest(current, call, { replay })
  const unused = otherPayment ? ' The other payment that came with this call is not used.' : ''
  const { message, ...pending } = describePending(current, {
    now: api.now(),
    hasWorker: await api.assessors.hasWorker(),
    queueSeconds: current.state === 'accepted' ? await api.queueWait.forecast() : 0,
  })
  return { kind: 'pending', requestId: row.id, ...pending, message: message + unused }
}

async function serveResult(id: string, { api }: Call, replay: boolean): Promise<VerificationAnswer> {
  const kept = api.results.get(id) ?? (await readResult(id, api))
  if (!kept || kept.expiresAt <= Date.now()) throw resultExpired()
  return { kind: 'completed', requestId: id, replay, ...kept }
}

async function readResult(id: string, api: Call['api']) {
  const row = await findResult(api.db, id, api.config)
  if (!row) return null
  const kept = {
    bytes: row.result,
    settlementHeader: row.settlement_header,
    recoveryToken: recoveryToken(api.secrets.recovery, id),
    expiresAt: resultEnd(row, api.config.resultRetentionSeconds),
  }
  api.results.set(id, kept)
  return kept
}
