// Admission: stores quotes and accepted payments, in groups. One add_job per transaction would cap a database at the rate of
// its serialised NOTIFY commits; a group shares one. One transaction stores request, payment claim and job, or none of them.
import { z } from 'zod'
import { type Batcher, openBatcher } from '../../db/batch.ts'
import { enqueueEach } from '../../db/jobs.ts'
import { column, type Database, nothing, sql, type Tx, transact } from '../../db/pool.ts'
import { claimCount, type PurchaseBody } from '../../interface/claims.ts'
import { noted, type RequestView, requestView, states, viewColumns } from '../request.ts'
import { MAX_JOB_ATTEMPTS } from '../stages/job.ts'
import { type LimitedCall, openPlaces, type Places, type Refusal } from './in-flight-limits.ts'

/** The first quote for a key, or a paid request. `payment` has been verified already; admission makes no outside call. */
export interface Admission extends LimitedCall {
  /** Id of the row if this call inserts it. */
  id: string
  bodyHash: string
  body: PurchaseBody
  quoteTtlSeconds: number
  payment?: LimitedCall['payment'] & { sealFor(requestId: string): Buffer }
  /** The `traceparent` of the span that the work on the request belongs to. */
  traceparent?: string | null
  tracestate?: string | null
}

export type Admitted =
  /** The row after the call; `accepted` if this call bound its payment to it. */
  | { kind: 'row'; row: RequestView; accepted: boolean }
  /** The authorization belongs to another live request. */
  | { kind: 'payment_taken' }
  /** The row that the call had seen was pruned meanwhile; its key is free. */
  | { kind: 'pruned' }
  /** No place is left; the key and the payment stay free. */
  | Refusal

const MAX_BATCH = 64
const MAX_QUEUE = 2048

/** @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER */
export function openAdmissions(db: Database, maxInFlightPerPayer: number): Batcher<Admission, Admitted> {
  const write = (items: Admission[]) => transact(db, (tx) => admitBatch(tx, items, maxInFlightPerPayer))
  return openBatcher(write, { batch: MAX_BATCH, queue: MAX_QUEUE })
}

const keyOf = (item: Admission) => item.keyHash.toString('hex')

/** Items of one batch may repeat keys and payments; each key and each payment still ends with one request. */
export async function admitBatch(tx: Tx, items: Admission[], maxInFlightPerPayer: number): Promise<Admitted[]> {
  const places = await openPlaces(tx, items, maxInFlightPerPayer)
  // A refused item inserts no row. If its row exists all the same, the row decides the answer.
  const made = await insertQuotes(
    tx,
    items.filter((item) => !item.known && !places.refusalOf(item)),
  )
  const existing = await lockRows(
    tx,
    items.filter((item) => !made.has(keyOf(item))),
  )
  const rowOf = (item: Admission) => made.get(keyOf(item)) ?? existing.get(keyOf(item))
  const { offers, refusals } = seat(items, { rowOf, made, places })
  const accepted = await acceptOffers(tx, offers)
  const offered = new Set(offers.map((offer) => offer.item))
  const answers = items.map((item): Admitted => {
    const refusal = refusals.get(item)
    if (refusal) return refusal
    const row = rowOf(item)
    if (!row && item.known) return { kind: 'pruned' }
    // Its id, which its payment named, is that of a request of another key.
    if (!row) return { kind: 'payment_taken' }
    const now = accepted.rows.get(row.id) ?? row
    const bound = accepted.items.has(item)
    const refused = !bound && now === row && offered.has(item)
    return refused ? { kind: 'payment_taken' } : { kind: 'row', row: now, accepted: bound }
  })
  await dropRefused(tx, items, answers, made)
  return answers
}

interface Seating {
  rowOf(item: Admission): LockedRow | undefined
  made: ReadonlyMap<string, LockedRow>
  places: Places
}

/** Assigns the free places, in the order of the calls, to payments that can be bound and to new quotes. */
function seat(items: Admission[], { rowOf, made, places }: Seating) {
  const offers: Offer[] = []
  const refusals = new Map<Admission, Refusal>()
  for (const item of items) {
    const row = rowOf(item)
    const payment = row?.payable && row.body_hash === item.bodyHash ? item.payment : undefined
    const isNew = made.get(keyOf(item))?.id === item.id
    if (row ? !payment && !isNew : item.known) continue
    const refusal = places.refusalOf(item)
    if (refusal) refusals.set(item, refusal)
    else if (row && payment) offers.push({ item, row, payment, priority: places.takeForWork(item) })
    else places.takeForQuote(item)
  }
  return { offers, refusals }
}

/** A key whose first call was refused stays free: its new row is deleted. */
async function dropRefused(tx: Tx, items: Admission[], answers: Admitted[], made: Map<string, LockedRow>) {
  const kept = new Set(items.filter((_, index) => answers[index]?.kind === 'row').map(keyOf))
  const dropped = [...made].filter(([key]) => !kept.has(key)).map(([, row]) => row.id)
  if (dropped.length === 0) return
  await tx.query(sql.prepared('drop_refused', nothing)`
    delete from verification_requests where id = any(${sql.array(dropped, 'uuid')})`)
}

/**
 * Inserts the rows that did not exist and answers them by key. No other transaction sees them before the commit, so they
 * need no lock. Rows are inserted, and below locked, in the order of their keys, so that batches cannot deadlock.
 */
async function insertQuotes(tx: Tx, items: Admission[]): Promise<Map<string, LockedRow>> {
  if (items.length === 0) return new Map()
  const rows = await tx.any(sql.prepared('insert_quotes', insertedRow)`
    insert into verification_requests (id, key_hash, body_hash, state, body, claims, quote_expires_at, address_key)
    select id::uuid, key_hash, decode(body_hash, 'hex'), 'quoted', body::json, claims, now() + ttl * interval '1 second', address
    from unnest(${column(items, 'text', (i) => i.id)}, ${column(items, 'bytea', (i) => i.keyHash)},
                ${column(items, 'text', (i) => i.bodyHash)},
                ${column(items, 'text', (i) => JSON.stringify(i.body))},
                ${column(items, 'int2', (i) => claimCount(i.body))},
                ${column(items, 'int4', (i) => i.quoteTtlSeconds)},
                ${column(items, 'bytea', (i) => i.addressKey)}) as t (id, key_hash, body_hash, body, claims, ttl, address)
    order by key_hash
    on conflict do nothing
    returning id, encode(key_hash, 'hex') key_hash, quote_expires_at, changed_at`)
  const byKey = new Map(rows.map((row) => [row.key_hash, row]))
  const made = new Map<string, LockedRow>()
  for (const item of items) {
    const key_hash = item.keyHash.toString('hex')
    const row = byKey.get(key_hash)
    const { body, bodyHash: body_hash } = item
    const claims = claimCount(body)
    const quoted = { state: 'quoted' as const, body_hash, claims, payment: null, error: null, waiting: null }
    if (row?.id === item.id) made.set(key_hash, { ...row, ...quoted, payable: true })
  }
  return made
}

const insertedRow = z.object({ id: z.string(), key_hash: z.string(), quote_expires_at: z.date(), changed_at: z.date() })

const lockedRow = requestView.extend({ key_hash: z.string(), payable: z.boolean() })
type LockedRow = z.output<typeof lockedRow>

/** The rule of `isPayable` in request.ts. */
const payable = sql.fragment`coalesce(state in ('quoted', 'unpaid') and quote_expires_at > now()
  or state = 'failed' and (error ->> 'retryable')::boolean, false)`

async function lockRows(tx: Tx, items: Admission[]): Promise<Map<string, LockedRow>> {
  if (items.length === 0) return new Map()
  const rows = await tx.any(sql.prepared('lock_requests', lockedRow)`
    select ${viewColumns}, encode(key_hash, 'hex') key_hash,
           ${payable} payable
    from verification_requests where key_hash = any(${column(items, 'bytea', (item) => item.keyHash)})
    order by verification_requests.key_hash for update`)
  return new Map(rows.map((row) => [row.key_hash, row]))
}

interface Offer {
  item: Admission
  row: LockedRow
  payment: NonNullable<Admission['payment']>
  priority: number
}

const acceptedRow = z.object({
  id: z.string(),
  state: z.enum(states),
  changed_at: z.date(),
  payer: z.string(),
  nonce: z.string(),
})

/**
 * Binds payments: one per request, one request per authorization. New requests start at the beginning, and so do those whose
 * last attempt failed; a request whose payment did not settle continues where its work ended. Answers the items whose
 * payments were bound, and their rows.
 */
async function acceptOffers(tx: Tx, offers: Offer[]) {
  const accepted = { items: new Set<Admission>(), rows: new Map<string, RequestView>() }
  if (offers.length === 0) return accepted
  const text = (pick: (offer: Offer) => string) => column(offers, 'text', pick)
  const identity = (offer: Offer) => offer.payment.bound.identity
  const won = await tx.any(sql.prepared('accept_offers', acceptedRow)`
    with offer as (
      select request_id::uuid, network, asset, payer, nonce, bound::json, sealed, body::json, address, domain, priority,
             traceparent, tracestate
      from unnest(${text((o) => o.row.id)}, ${text((o) => identity(o).network)}, ${text((o) => identity(o).asset)},
                  ${text((o) => identity(o).payer)}, ${text((o) => identity(o).nonce)},
                  ${text((o) => JSON.stringify(o.payment.bound))},
                  ${column(offers, 'bytea', (o) => o.payment.sealFor(o.row.id))},
                  ${column(offers, 'text', (o) => (o.row.state === 'failed' ? JSON.stringify(o.item.body) : null))},
                  ${column(offers, 'bytea', (o) => o.item.addressKey)}, ${text((o) => o.item.domain)},
                  ${column(offers, 'int2', (o) => o.priority)},
                  ${column(offers, 'text', (o) => o.item.traceparent ?? null)},
                  ${column(offers, 'text', (o) => o.item.tracestate ?? null)})
           as t (request_id, network, asset, payer, nonce, bound, sealed, body, address, domain, priority, traceparent,
                 tracestate)
    ), claim as (
      insert into payment_claims (network, asset, payer, nonce, request_id)
      select network, asset, payer, nonce, request_id from offer order by network, asset, payer, nonce
      on conflict do nothing
      returning network, asset, payer, nonce, request_id
    ), bound as (
      update verification_requests r
      set state = case r.state when 'unpaid' then 'assessed' else 'accepted' end,
          payment = offer.bound, payment_sealed = offer.sealed, changed_at = now(), accepted_at = now(),
          history = ${noted(sql.fragment`case r.state when 'unpaid' then 'assessed' else 'accepted' end`)},
          payer = offer.payer, address_key = offer.address, domain = offer.domain, priority = offer.priority,
          traceparent = offer.traceparent, tracestate = offer.tracestate,
          -- Of an attempt that failed nothing is left; its body may have been pruned.
          error = null, body = coalesce(r.body, offer.body),
          settlement_intent = case r.state when 'failed' then null else r.settlement_intent end
      from claim join offer using (network, asset, payer, nonce, request_id) where r.id = claim.request_id
      returning r.id, r.state, r.changed_at, r.priority, claim.payer, claim.nonce
    ), spec as (
      -- As jobOf has it.
      select json_build_object('request_id', id) payload, 'verify:' || id as key, ${MAX_JOB_ATTEMPTS}::int max_attempts,
             case state when 'accepted' then priority else 0 end::int priority
      from bound
    ), stored as (
      ${enqueueEach('verify_request', sql.fragment`spec`)}
    )
    select id, state, changed_at, payer, nonce from bound, stored`)
  const winners = new Map(won.map((row) => [`${row.id} ${row.payer} ${row.nonce}`, row]))
  for (const offer of offers) {
    const id = `${offer.row.id} ${identity(offer).payer} ${identity(offer).nonce}`
    const row = winners.get(id)
    // The same call twice in one batch binds once; the second is answered as pending.
    if (!row || !winners.delete(id)) continue
    accepted.items.add(offer.item)
    const { state, changed_at } = row
    const payment = offer.payment.bound
    accepted.rows.set(row.id, { ...offer.row, state, changed_at, payment, error: null })
  }
  return accepted
}
