// Lookups of stored requests by key, id or payment identifier, and of the result that is served.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { type Batcher, openReads } from '../db/batch.ts'
import { column, type Database, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { type RequestView, requestView, viewColumns } from './request.ts'

const KEY_FORM = /^[A-Za-z0-9_.:-]{16,128}$/

/** The hash of the key that a call is made with. Throws AppError `invalid_idempotency_key`. */
export function keyHashOf({
  keyHash,
  idempotencyKey,
}: {
  keyHash?: Buffer
  idempotencyKey?: string | undefined
}): Buffer {
  return keyHash ?? hashKey(idempotencyKey)
}

/** The SHA-256 of an Idempotency-Key, which is stored instead of the key. Throws AppError `invalid_idempotency_key`. */
export function hashKey(key: string | undefined): Buffer {
  if (key === undefined) throw new AppError('invalid_idempotency_key', 'The Idempotency-Key header is required.')
  if (!KEY_FORM.test(key))
    throw new AppError('invalid_idempotency_key', 'Idempotency-Key must be 16 to 128 characters of A-Z a-z 0-9 _ . : -')
  return createHash('sha256').update(key).digest()
}

/** Reads of requests by the hash of their key (see `hashKey`); null where there is none. */
export type KeyReads = Batcher<Buffer, RequestView | null>

/** Most keys of one query. */
const MAX_READS = 64

/** Reads that arrive while a query runs share the next one. */
export function openKeyReads(db: Database): KeyReads {
  return openReads((keys: Buffer[]) => findByKeys(db, keys), MAX_READS)
}

const foundView = requestView.extend({ key_hash: z.string() })

async function findByKeys(db: Database, keys: Buffer[]): Promise<(RequestView | null)[]> {
  const rows = await db.any(sql.prepared('find_requests_by_key', foundView)`
    select ${viewColumns}, encode(key_hash, 'hex') key_hash
    from verification_requests where key_hash = any(${column(keys, 'bytea', (key) => key)})`)
  const found = new Map(rows.map(({ key_hash, ...row }) => [key_hash, row]))
  return keys.map((key) => found.get(key.toString('hex')) ?? null)
}

export function findById(db: Database | Tx, id: string): Promise<RequestView | null> {
  return db.maybeOne(sql.prepared('find_request_by_id', requestView)`
    select ${viewColumns} from verification_requests where id = ${id}`)
}

const keyedView = requestView.extend({ key_hash: z.instanceof(Buffer) })

/** As `findById`, with the hash of the request's key. */
export function findKeyed(db: Database, id: string): Promise<z.output<typeof keyedView> | null> {
  return db.maybeOne(sql.type(keyedView)`
    select ${viewColumns}, key_hash from verification_requests where id = ${id}`)
}

/** The oldest request for which this payer used this payment identifier; a failed or unpaid one does not count. */
export function findByIdentifier(db: Database, payer: string, identifier: string): Promise<RequestView | null> {
  return db.maybeOne(sql.type(requestView)`
    select ${viewColumns} from verification_requests
    where payment #>> '{identity,payer}' = ${payer} and payment ->> 'identifier' = ${identifier}
      and state in ('accepted', 'observed', 'assessed', 'settling', 'settled', 'completed')
    order by created_at limit 1`)
}

/** When a request was created, and when its state last changed. */
const requestTimes = z.object({ created_at: z.date(), changed_at: z.date() })

export function findTimes(db: Database, id: string): Promise<z.output<typeof requestTimes> | null> {
  return db.maybeOne(sql.type(requestTimes)`
    select created_at, changed_at from verification_requests where id = ${id}`)
}

/** The result as the bytes that are served, its PAYMENT-RESPONSE header, and the capture of its page. */
const storedResult = z.object({
  result: z.instanceof(Buffer),
  settlement_header: z.string().nullable(),
  changed_at: z.date(),
  capture_id: z.string().nullable(),
})
type StoredResult = z.output<typeof storedResult>

/**
 * Null unless the request is completed and its result is within its retention by the clock, whenever it is deleted. What is made of a
 * stored result for a caller is made of this one.
 */
export async function findResult(
  db: Database | Tx,
  id: string,
  { resultRetentionSeconds }: Pick<Config, 'resultRetentionSeconds'>,
): Promise<StoredResult | null> {
  const row = await db.maybeOne(sql.prepared('find_result', storedResult)`
    select result, settlement_header, changed_at, capture_id::text
    from verification_requests where id = ${id} and state = 'completed'`)
  return row && resultEnd(row, resultRetentionSeconds) > Date.now() ? row : null
}

/** Milliseconds of the clock from which a completed request has no result. */
export function resultEnd({ changed_at }: Pick<StoredResult, 'changed_at'>, retentionSeconds: number): number {
  return changed_at.getTime() + retentionSeconds * 1000
}

/** Requests in one of the states WORKING, spelled out because a partial index covers them: how many, and seconds since the last change of the one that waits longest. */
export function measureBacklog(db: Pick<Database, 'one'>) {
  return db.one(sql.type(z.object({ count: z.number(), oldestSeconds: z.number() }))`
    select count(*) count, coalesce(extract(epoch from now() - min(changed_at)), 0)::float8 "oldestSeconds"
    from verification_requests where state in ('accepted', 'observed', 'assessed', 'settling', 'settled')`)
}
