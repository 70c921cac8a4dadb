// Writes quotes and acceptances in groups. One add_job per transaction caps a database at the rate of its serialised
// NOTIFY commits; a group shares one. Request, claim on the payment and job are stored by one transaction or not at all.
import { z } from 'zod'
import { type Batcher, openBatcher } from '../db/batch.ts'
import { enqueue } from '../db/jobs.ts'
import { column, type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import type { BoundPayment } from '../payments/x402.ts'
import { type RequestView, requestView, viewColumns } from './request.ts'
import type { VerificationInput } from './result.ts'

/** A key's first quote, or a paid request. `payment` has been verified; nothing here asks the network. */
export interface Admission {
  /** Id of the row if this call makes it. */
  id: string
  /** A row with this key was seen already. */
  known: boolean
  keyHash: Buffer
  bodyHash: string
  body: VerificationInput
  quoteTtlSeconds: number
  payment?: { bound: BoundPayment; sealFor(requestId: string): Buffer }
}

export type Admitted =
  /** The row as it stands now; `accepted` when this call bound its payment to it. */
  | { kind: 'row'; row: RequestView; accepted: boolean }
  /** The authorization belongs to another live request. */
  | { kind: 'payment_taken' }

const MAX_BATCH = 64
const MAX_QUEUE = 2048
/** Times a verification's job may be taken up before the sweep decides what becomes of it. */
export const MAX_JOB_ATTEMPTS = 5

export function openAdmissions(db: Database): Batcher<Admission, Admitted> {
  return openBatcher((items) => transact(db, (tx) => admitBatch(tx, items)), { batch: MAX_BATCH, queue: MAX_QUEUE })
}

/** Items of one call may repeat keys and payments; each key and each payment still ends with one request. */
export async function admitBatch(tx: Tx, items: Admission[]): Promise<Admitted[]> {
  await insertQuotes(
    tx,
    items.filter((item) => !item.known),
  )
  const rows = await lockRows(tx, items)
  const offers = items.flatMap((item) => {
    const row = rows.get(item.keyHash.toString('hex'))
    return item.payment && row?.payable && row.body_hash === item.bodyHash ? [{ item, row, payment: item.payment }] : []
  })
  const claimed = await claimPayments(tx, offers)
  const accepted = await acceptRows(tx, claimed)
  await enqueue(
    tx,
    [...accepted.keys()].map((id) => ({ name: 'verify_request', payload: { request_id: id }, ...jobOf(id) })),
  )
  return items.map((item) => {
    const row = rows.get(item.keyHash.toString('hex'))
    if (!row) throw new Error('a request row vanished while it was locked')
    const now = accepted.get(row.id) ?? row
    const bound = claimed.some((offer) => offer.item === item)
    const refused = !bound && now === row && offers.some((offer) => offer.item === item)
    return refused ? { kind: 'payment_taken' } : { kind: 'row', row: now, accepted: bound }
  })
}

/** One job per request, found again under this key. */
export function jobOf(requestId: string) {
  return { key: `verify:${requestId}`, maxAttempts: MAX_JOB_ATTEMPTS }
}

/** Inserted in the order of their keys, like every lock below, so that two batches never wait for each other in a ring. */
async function insertQuotes(tx: Tx, items: Admission[]) {
  if (items.length === 0) return
  await tx.query(sql.prepared('insert_quotes', nothing)`
    insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at)
    select id::uuid, key_hash, decode(body_hash, 'hex'), 'quoted', body::json, now() + ttl * interval '1 second'
    from unnest(${column(items, 'text', (i) => i.id)}, ${column(items, 'bytea', (i) => i.keyHash)},
                ${column(items, 'text', (i) => i.bodyHash)},
                ${column(items, 'text', (i) => JSON.stringify(i.body))},
                ${column(items, 'int4', (i) => i.quoteTtlSeconds)}) as t (id, key_hash, body_hash, body, ttl)
    order by key_hash
    on conflict (key_hash) do nothing`)
}

const lockedRow = requestView.extend({ key_hash: z.string(), payable: z.boolean() })
type LockedRow = z.output<typeof lockedRow>

async function lockRows(tx: Tx, items: Admission[]): Promise<Map<string, LockedRow>> {
  const rows = await tx.any(sql.prepared('lock_requests', lockedRow)`
    select ${viewColumns}, encode(key_hash, 'hex') key_hash,
           state in ('quoted', 'unpaid') and quote_expires_at > now() payable
    from verification_requests where key_hash = any(${column(items, 'bytea', (item) => item.keyHash)})
    order by verification_requests.key_hash for update`)
  return new Map(rows.map((row) => [row.key_hash, row]))
}

interface Offer {
  item: Admission
  row: LockedRow
  payment: NonNullable<Admission['payment']>
}

/** The offers whose authorization is now theirs: one per request, one request per authorization. */
async function claimPayments(tx: Tx, offers: Offer[]): Promise<Offer[]> {
  if (offers.length === 0) return []
  const column = (pick: (offer: Offer) => string) => sql.array(offers.map(pick), 'text')
  const identity = (offer: Offer) => offer.payment.bound.identity
  const claims = await tx.any(sql.prepared('claim_payments', z.object({ request_id: z.string(), claim: z.string() }))`
    insert into payment_claims (network, asset, payer, nonce, request_id)
    select network, asset, payer, nonce, request_id::uuid
    from unnest(${column((o) => identity(o).network)}, ${column((o) => identity(o).asset)},
                ${column((o) => identity(o).payer)}, ${column((o) => identity(o).nonce)},
                ${column((o) => o.row.id)}) as t (network, asset, payer, nonce, request_id)
    order by network, asset, payer, nonce
    on conflict do nothing
    returning request_id, concat_ws(' ', network, asset, payer, nonce) claim`)
  const won = new Set(claims.map((claim) => `${claim.request_id} ${claim.claim}`))
  return offers.filter((offer) => {
    const { network, asset, payer, nonce } = identity(offer)
    // Taken out once found: the same call twice in one batch binds once and sees itself pending the second time.
    return won.delete(`${offer.row.id} ${network} ${asset} ${payer} ${nonce}`)
  })
}

/** New requests start at the beginning; one whose payment did not settle goes on where its work ended. */
async function acceptRows(tx: Tx, offers: Offer[]): Promise<Map<string, RequestView>> {
  if (offers.length === 0) return new Map()
  const rows = await tx.any(sql.prepared('accept_requests', requestView)`
    update verification_requests r
    set state = case r.state when 'unpaid' then 'assessed' else 'accepted' end,
        payment = t.bound::json, payment_sealed = t.sealed, changed_at = now()
    from unnest(${column(offers, 'text', (o) => o.row.id)},
                ${column(offers, 'text', (o) => JSON.stringify(o.payment.bound))},
                ${column(offers, 'bytea', (o) => o.payment.sealFor(o.row.id))}) as t (request_id, bound, sealed)
    where r.id = t.request_id::uuid
    returning ${viewColumns}`)
  return new Map(rows.map((row) => [row.id, row]))
}
