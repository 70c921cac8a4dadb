// The key of a purchase whose caller brings none. A stock x402 client sends its payment beside the arguments and nothing
// else, so the second call has to be known again by the payment alone.
import { createHmac, randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { provePayer } from '../payments/known-payments.ts'
import { readPayload } from '../payments/payload.ts'
import { type PaymentIdentity, samePayment } from '../payments/x402.ts'
import { canonicalJson } from '../receipts/format.ts'
import { findByKey, hashKey } from '../verification/lookup.ts'
import { isPayable } from '../verification/request.ts'

export interface PurchaseKey {
  idempotencyKey: string
  /** The id its request is to have, where that is a new one. */
  requestId?: string
}

/**
 * Unpaid, or with a payment that is nobody's: a key that was never used. Paid: the key of the request that the terms
 * named, where they name one (Solana), else a key of the authorization's own. Either way, the same payment always comes to
 * the same request.
 *
 * A chain shows payments whole, signatures and the requests they name included. So a payment is no secret, and opens only
 * what was asked with the very same arguments, which no chain shows; and one of another payer opens nothing at all.
 * Throws AppError `payment_conflict` for a payment of a request that another one was given for, and what `provePayer`
 * throws beside `payment_invalid`. @param address the caller's
 */
export async function findPurchaseKey(payment: unknown, api: Api, address: string): Promise<PurchaseKey> {
  const identity = payment === undefined ? null : await identify(payment, api, address)
  if (!identity) return makeKey(api)
  if (!identity.network.startsWith('solana:'))
    return { idempotencyKey: derive('authorization', canonicalJson(identity), api) }
  const requestId = requestNamedIn(payment)
  return (requestId && (await findKeyOf(requestId, identity, api))) || makeKey(api)
}

/** Null when there is nothing that this payment could be for. */
async function findKeyOf(requestId: string, identity: PaymentIdentity, api: Api): Promise<PurchaseKey | null> {
  const idempotencyKey = keyOf(requestId, api)
  const row = await findByKey(api.db, hashKey(idempotencyKey))
  if (!row) return null
  // What did not settle, or failed in a way that may pass, waits for another payment.
  const isOpen = row.state === 'quoted' || row.state === 'unpaid' || isPayable(row, Date.now())
  if (isOpen || !row.payment || samePayment(row.payment.identity, identity)) return { idempotencyKey }
  if (row.state === 'failed' || row.state === 'expired') return null
  // Not a price: whoever forgot a first payment would make a second.
  throw new AppError('payment_conflict', 'The request that this payment names was paid by another payment.')
}

function makeKey(api: Api): PurchaseKey {
  const requestId = randomUUID()
  return { idempotencyKey: keyOf(requestId, api), requestId }
}

function keyOf(requestId: string, api: Api): string {
  return derive('request', requestId, api)
}

function derive(of: 'authorization' | 'request', value: string, { secrets }: Api): string {
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
  const memo = z.uuid().safeParse(readPayload(payment).accepted.extra?.memo)
  return memo.success ? memo.data.toLowerCase() : null
}
