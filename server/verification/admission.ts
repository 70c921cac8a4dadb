// Writes quotes and acceptances in groups. One add_job per transaction caps a database at the rate of its serialised
// NOTIFY commits; a group shares one. Request, claim on the payment and job are stored by one transaction or not at all.
import { z } from 'zod'
import { type Batcher, openBatcher } from '../db/batch.ts'
import { enqueue } from '../db/jobs.ts'
import { column, type Database, sql, type Tx, transact } from '../db/pool.ts'
import type { BoundPayment } from '../payments/x402.ts'
import { type RequestView, requestView, states, viewColumns } from './request.ts'
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
  const keyOf = (item: Admission) => item.keyHash.toString('hex')
  const made = await insertQuotes(
    tx,
    items.filter((item) => !item.known),
  )
  const standing = await lockRows(
    tx,
    items.filter((item) => !made.has(keyOf(item))),
  )
  const rowOf = (item: Admission) => made.get(keyOf(item)) ?? standing.get(keyOf(item))
  const offers = items.flatMap((item) => {
    const row = rowOf(item)
    return item.payment && row?.payable && row.body_hash === item.bodyHash ? [{ item, row, payment: item.payment }] : []
  })
  const accepted = await acceptOffers(tx, offers)
  await enqueue(
    tx,
    [...accepted.rows.keys()].map((id) => ({ name: 'verify_request', payload: { request_id: id }, ...jobOf(id) })),
  )
  const offered = new Set(offers.map((offer) => offer.item))
  return items.map((item) => {
    const row = rowOf(item)
    if (!row) throw new Error('a request row vanished while it was locked')
    const now = accepted.rows.get(row.id) ?? row
    const bound = accepted.items.has(item)
    const refused = !bound && now === row && offered.has(item)
    return refused ? { kind: 'payment_taken' } : { kind: 'row', row: now, accepted: bound }
  })
}

/** One job per request, found again under this key. */
export function jobOf(requestId: string) {
  return { key: `verify:${requestId}`, maxAttempts: MAX_JOB_ATTEMPTS }
}

/**
 * The rows that did not exist yet, by their keys; nobody else can see them before the commit, so they need no lock.
 * Inserted in the order of their keys, like every lock below: so no two batches ever wait for each other in a ring.
 */
async function insertQuotes(tx: Tx, items: Admission[]): Promise<Map<string, LockedRow>> {
  if (items.length === 0) return new Map()
  const rows = await tx.any(sql.prepared('insert_quotes', insertedRow)`
    insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at)
    select id::uuid, key_hash, decode(body_hash, 'hex'), 'quoted', body::json, now() + ttl * interval '1 second'
    from unnest(${column(items, 'text', (i) => i.id)}, ${column(items, 'bytea', (i) => i.keyHash)},
                ${column(items, 'text', (i) => i.bodyHash)},
                ${column(items, 'text', (i) => JSON.stringify(i.body))},
                ${column(items, 'int4', (i) => i.quoteTtlSeconds)}) as t (id, key_hash, body_hash, body, ttl)
    order by key_hash
    on conflict (key_hash) do nothing
    returning id, quote_expires_at, changed_at`)
  const byId = new Map(rows.map((row) => [row.id, row]))
  const made = new Map<string, LockedRow>()
  for (const item of items) {
    const row = byId.get(item.id)
    const key_hash = item.keyHash.toString('hex')
    const quoted = { state: 'quoted' as const, body_hash: item.bodyHash, payment: null, error: null, waiting: null }
    if (row) made.set(key_hash, { ...row, ...quoted, key_hash, payable: true })
  }
  return made
}

const insertedRow = z.object({ id: z.string(), quote_expires_at: z.date(), changed_at: z.date() })

const lockedRow = requestView.extend({ key_hash: z.string(), payable: z.boolean() })
type LockedRow = z.output<typeof lockedRow>

async function lockRows(tx: Tx, items: Admission[]): Promise<Map<string, LockedRow>> {
  if (items.length === 0) return new Map()
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

const acceptedRow = z.object({
  id: z.string(),
  state: z.enum(states),
  changed_at: z.date(),
  payer: z.string(),
  nonce: z.string(),
})

/**
 * Binds payments: one per request, one request per authorization. New requests start at the beginning; one whose payment
 * did not settle goes on where its work ended. Answers the offers that won, and their requests as they stand now.
 */
async function acceptOffers(tx: Tx, offers: Offer[]) {
  const accepted = { items: new Set<Admission>(), rows: new Map<string, RequestView>() }
  if (offers.length === 0) return accepted
  const text = (pick: (offer: Offer) => string) => column(offers, 'text', pick)
  const identity = (offer: Offer) => offer.payment.bound.identity
  const won = await tx.any(sql.prepared('accept_offers', acceptedRow)`
    with offer as (
      select request_id::uuid, network, asset, payer, nonce, bound::json, sealed
      from unnest(${text((o) => o.row.id)}, ${text((o) => identity(o).network)}, ${text((o) => identity(o).asset)},
                  ${text((o) => identity(o).payer)}, ${text((o) => identity(o).nonce)},
                  ${text((o) => JSON.stringify(o.payment.bound))},
                  ${column(offers, 'bytea', (o) => o.payment.sealFor(o.row.id))})
           as t (request_id, network, asset, payer, nonce, bound, sealed)
    ), claim as (
      insert into payment_claims (network, asset, payer, nonce, request_id)
      select network, asset, payer, nonce, request_id from offer order by network, asset, payer, nonce
      on conflict do nothing
      returning network, asset, payer, nonce, request_id
    )
    update verification_requests r
    set state = case r.state when 'unpaid' then 'assessed' else 'accepted' end,
        payment = offer.bound, payment_sealed = offer.sealed, changed_at = now()
    from claim join offer using (network, asset, payer, nonce, request_id) where r.id = claim.request_id
    returning r.id, r.state, r.changed_at, claim.payer, claim.nonce`)
  const winners = new Map(won.map((row) => [`${row.id} ${row.payer} ${row.nonce}`, row]))
  for (const offer of offers) {
    const id = `${offer.row.id} ${identity(offer).payer} ${identity(offer).nonce}`
    const row = winners.get(id)
    // The same call twice in one batch binds once and sees itself pending the second time.
    if (!row || !winners.delete(id)) continue
    accepted.items.add(offer.item)
    const { state, changed_at } = row
    accepted.rows.set(row.id, { ...offer.row, state, changed_at, payment: offer.payment.bound })
  }
  return accepted
}
