// What a call finds of the requests before it: by key, by id, by payment; and the result that it is served.
import { z } from 'zod'
import { type Database, sql, type Tx } from '../db/pool.ts'
import { type RequestView, requestView, viewColumns } from './request.ts'

export function findByKey(db: Database, keyHash: Buffer): Promise<RequestView | null> {
  return db.maybeOne(sql.prepared('find_request_by_key', requestView)`
    select ${viewColumns} from verification_requests where key_hash = ${sql.binary(keyHash)}`)
}

export function findById(db: Database, id: string): Promise<RequestView | null> {
  return db.maybeOne(sql.prepared('find_request_by_id', requestView)`
    select ${viewColumns} from verification_requests where id = ${id}`)
}

/** The request that this payer's payment of that name is for, unless it came to nothing. */
export function findByIdentifier(db: Database, payer: string, identifier: string): Promise<RequestView | null> {
  return db.maybeOne(sql.type(requestView)`
    select ${viewColumns} from verification_requests
    where payment #>> '{identity,payer}' = ${payer} and payment ->> 'identifier' = ${identifier}
      and state in ('accepted', 'observed', 'assessed', 'settling', 'settled', 'completed')
    order by created_at limit 1`)
}

/** When a request was first asked for, and when it last moved. */
export const requestTimes = z.object({ created_at: z.date(), changed_at: z.date() })

export function findTimes(db: Database, id: string): Promise<z.output<typeof requestTimes> | null> {
  return db.maybeOne(sql.type(requestTimes)`
    select created_at, changed_at from verification_requests where id = ${id}`)
}

/** The bytes that are served, and the PAYMENT-RESPONSE that goes with them. */
export const storedResult = z.object({
  result: z.instanceof(Buffer),
  settlement_header: z.string().nullable(),
  changed_at: z.date(),
})
export type StoredResult = z.output<typeof storedResult>

export function findResult(db: Database | Tx, id: string): Promise<StoredResult | null> {
  return db.maybeOne(sql.prepared('find_result', storedResult)`
    select result, settlement_header, changed_at from verification_requests where id = ${id} and state = 'completed'`)
}

/** Requests in one of the states WORKING, spelled out because a partial index covers them: how many, and seconds since the last change of the one that waits longest. */
export function measureBacklog(db: Pick<Database, 'one'>) {
  return db.one(sql.type(z.object({ count: z.number(), oldestSeconds: z.number() }))`
    select count(*) count, coalesce(extract(epoch from now() - min(changed_at)), 0)::float8 "oldestSeconds"
    from verification_requests where state in ('accepted', 'observed', 'assessed', 'settling', 'settled')`)
}
