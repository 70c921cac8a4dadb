// Payments that are stored already. A caller who sends the signature of a stored payment is its payer, because the
// signature was checked when the payment was bound. So no call to a chain or a facilitator is needed.
import { z } from 'zod'
import { type Batcher, openReads } from '../db/batch.ts'
import { column, type Database, sql } from '../db/pool.ts'
import { boundPayment, type Facilitator, type PaymentClaim, type PaymentIdentity } from './x402.ts'

/**
 * The identity of a payment: a stored one, or one proved by its signature, which may need a call to a chain.
 * Throws AppError `payment_invalid`, `provider_unavailable`, `rate_limited`.
 */
export async function provePayer(
  { db, facilitator }: { db: Database; facilitator: Facilitator },
  given: unknown,
  address: string,
): Promise<PaymentIdentity> {
  const claim = facilitator.readClaim(given)
  return (await isKnown(db, claim)) ? claim.identity : facilitator.identify(given, address)
}

const known = sql.type(z.object({ known: z.number() }))

function isKnown(db: Database, { identity, signature_sha256 }: PaymentClaim): Promise<boolean> {
  const { network, asset, payer, nonce } = identity
  if (!signature_sha256) return Promise.resolve(false)
  return db.exists(known`
    select 1 known from verification_requests
    where id in (
        select request_id from payment_claims
        where network = ${network} and asset = ${asset} and payer = ${payer} and nonce = ${nonce}
        union
        select request_id from payment_ledger
        where network = ${network} and asset = ${asset} and payer = ${payer} and nonce = ${nonce})
      and payment #>> '{identity,network}' = ${network} and payment #>> '{identity,asset}' = ${asset}
      and payment #>> '{identity,payer}' = ${payer} and payment #>> '{identity,nonce}' = ${nonce}
      and payment ->> 'signature_sha256' = ${signature_sha256}`)
}

/** A payment that comes with a call, and the hash of the call's key. */
export interface Shown {
  claim: PaymentClaim
  keyHash: Buffer
}

/**
 * Whether a payment, shown by its own signature, is bound to a request of another key, paid or under way. Compares keys and
 * not ids: two concurrent first calls with one key make two ids, and only one of them is stored. Reads that arrive while a
 * query runs share the next query.
 */
export type BindingReads = Batcher<Shown, boolean>

/** Most payments of one query. */
const MAX_READS = 64

export function openBindingReads(db: Database): BindingReads {
  return openReads((shown: Shown[]) => findBound(db, shown), MAX_READS)
}

async function findBound(db: Database, shown: Shown[]): Promise<boolean[]> {
  const text = (pick: (identity: PaymentIdentity) => string) =>
    column(shown, 'text', ({ claim }) => pick(claim.identity))
  const bound = await db.anyFirst(sql.prepared('find_bound', z.object({ n: z.number() }))`
    select t.n
    from unnest(${text((i) => i.network)}, ${text((i) => i.asset)}, ${text((i) => i.payer)}, ${text((i) => i.nonce)},
                ${column(shown, 'bytea', ({ keyHash }) => keyHash)},
                ${column(shown, 'text', ({ claim }) => claim.signature_sha256 ?? null)})
         with ordinality as t (network, asset, payer, nonce, key_hash, signature_sha256, n)
    join payment_claims c using (network, asset, payer, nonce)
    join verification_requests r on r.id = c.request_id
    where r.key_hash <> t.key_hash and r.payment ->> 'signature_sha256' = t.signature_sha256`)
  const found = new Set(bound)
  return shown.map((_, index) => found.has(index + 1))
}

const requestPayment = z.object({ state: z.string(), changed_at: z.date(), payment: boundPayment.nullable() })

/** The state of a request and the payment that is bound to it, for operators. */
export function findRequestPayment(db: Database, requestId: string): Promise<z.output<typeof requestPayment> | null> {
  return db.maybeOne(sql.type(requestPayment)`
    select state, changed_at, payment from verification_requests where id = ${requestId}`)
}
