// The idempotency key of a purchase whose caller sends none. A stock x402 client sends its payment beside the arguments and
// nothing else, so the second call has to be recognised by the payment alone.
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import type { Api } from '../../context.ts'
import { AppError } from '../../errors.ts'
import { provePayer } from '../../payments/known-payments.ts'
import { readPayload } from '../../payments/payload.ts'
import { type PaymentIdentity, samePayment } from '../../payments/x402.ts'
import { canonicalJson } from '../../receipts/format.ts'
import { findKeyed, hashKey } from '../lookup.ts'
import { isPayable, type RequestView } from '../request.ts'
import { makeRequestId } from '../request-id.ts'

export interface PurchaseKey {
  idempotencyKey: string
  /** The id of the request, if the call creates it. */
  requestId?: string
}

/**
 * Without a valid payment: a new key. With one: the key of the request that the terms named, if they name one (Solana),
 * else a key derived from the authorization. The same payment always leads to the same request.
 *
 * A blockchain publishes payments, with their signatures and the requests that they name, so a payment is not secret. It
 * finds only a request with the same arguments, which are not published. The payment of another payer finds no request.
 * Throws AppError `payment_conflict` if the request was paid by another payment, and what `provePayer` throws except
 * `payment_invalid`. @param address the caller's
 */
export async function findPurchaseKey(payment: unknown, api: Api, address: string): Promise<PurchaseKey> {
  const identity = payment === undefined ? null : await identify(payment, api, address)
  if (!identity) return makeKey(api)
  if (!identity.network.startsWith('solana:'))
    return { idempotencyKey: derive('authorization', canonicalJson(identity), api) }
  const requestId = requestNamedIn(payment)
  return (requestId && (await findKeyOf(requestId, identity, api))) || makeKey(api)
}

/**
 * The key of a purchase that is named by its payment and its body. A payment whose purchase failed is free for another body,
 * and one that is bound is refused for another body when it is bound. `requestId`: what the terms named, where they name a
 * request (Solana). A payment without proof of its payer gets a new key, under which it is refused with new terms.
 * Throws what `findPurchaseKey` throws.
 * @param bodyHash of the body that is to be bought
 */
export async function findPaymentKey(
  payment: unknown,
  bodyHash: string,
  { api, address }: { api: Api; address: string },
): Promise<PurchaseKey | { keyHash: Buffer }> {
  const identity = await identify(payment, api, address)
  if (!identity) return makeKey(api)
  const named = requestNamedIn(payment)
  const row = named && (await findKeyed(api.db, named))
  // The terms of a request with a key of its own.
  if (row && row.body_hash === bodyHash && isFor(row, identity)) return { keyHash: row.key_hash }
  return { idempotencyKey: derive('authorization and body', canonicalJson({ ...identity, body: bodyHash }), api) }
}

/** The request that a payment names: the one whose terms it meets. */
export interface NamedRequest {
  id: string
  /** No request has the id. */
  isFree: boolean
  /** The request failed, and this payment was bound to it: so the payment is free for another request, with the terms it has. */
  isReleased: boolean
}

/** The request that a payment on Solana names; null on other networks. */
export async function findNamed(payment: unknown, api: Api): Promise<NamedRequest | null> {
  if (payment === undefined) return null
  try {
    const id = requestNamedIn(payment)
    const row = id && (await findKeyed(api.db, id))
    if (!id || !row) return id ? { id, isFree: true, isReleased: false } : null
    const isBound = row.payment && samePayment(row.payment.identity, api.facilitator.readClaim(payment).identity)
    return { id, isFree: false, isReleased: row.state === 'failed' && isBound === true }
  } catch (error) {
    if (error instanceof AppError && error.code === 'payment_invalid') return null
    throw error
  }
}

/** Null if the payment cannot be for that request. */
async function findKeyOf(requestId: string, identity: PaymentIdentity, api: Api): Promise<PurchaseKey | null> {
  const idempotencyKey = keyOf(requestId, api)
  const row = await api.keyReads.add(hashKey(idempotencyKey))
  if (!row) return null
  if (isFor(row, identity)) return { idempotencyKey }
  if (row.state === 'failed' || row.state === 'expired') return null
  // The answer has no terms: a caller that lost its first payment would otherwise make a second one.
  throw new AppError('payment_conflict', 'The request that this payment names was paid by another payment.')
}

/** A request that did not settle, or failed with an error that is retryable, accepts another payment. */
function isFor({ payment, ...row }: RequestView, identity: PaymentIdentity): boolean {
  const isOpen = row.state === 'quoted' || row.state === 'unpaid' || isPayable(row, Date.now())
  return isOpen || !payment || samePayment(payment.identity, identity)
}

function makeKey(api: Api): PurchaseKey {
  const requestId = makeRequestId()
  return { idempotencyKey: keyOf(requestId, api), requestId }
}

function keyOf(requestId: string, api: Api): string {
  return derive('request', requestId, api)
}

function derive(of: 'authorization' | 'authorization and body' | 'request', value: string, { secrets }: Api): string {
  return createHmac('sha256', secrets.recovery).update(`idempotency key of ${of} ${value}`).digest('base64url')
}

async function identify(payment: unknown, api: Api, address: string): Promise<PaymentIdentity | null> {
  try {
    return await provePayer(api, payment, address)
  } catch (error) {
    if (error instanceof AppError && error.code === 'payment_invalid') return null
    throw error
  }
}

/** A payment on Solana repeats the memo of its terms, which is the id of a request. */
function requestNamedIn(payment: unknown): string | null {
  const memo = z.uuidv7().safeParse(readPayload(payment).accepted.extra?.memo)
  return memo.success ? memo.data.toLowerCase() : null
}
