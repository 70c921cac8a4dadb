// Admission as it is usually written: a transaction for each request, with one add_job in it. Stores the same rows and
// claims and the same job as server/verification/admission/admission.ts.
import pg from 'pg'
import { z } from 'zod'
import { type Database, nothing, sql, type Tx, transact } from '../../server/db/pool.ts'
import type { Admission } from '../../server/verification/admission/admission.ts'
import { requestView, viewColumns } from '../../server/verification/request.ts'
import { jobOf } from '../../server/verification/stages/job.ts'

export interface Admitter extends AsyncDisposable {
  admit(admission: Admission): Promise<void>
}

const job = z.object({ id: z.string().nullable() })

/** Through the service's own query layer. */
export function slonikAdmitter(db: Database): Admitter {
  return {
    admit: (admission) =>
      transact(db, async (tx) => {
        const v = valuesOf(admission)
        const id = await (admission.known ? acceptBySlonik(tx, v) : insertBySlonik(tx, v))
        await tx.query(sql.prepared('one_claim', nothing)`
          insert into payment_claims (network, asset, payer, nonce, request_id)
          values (${v.network}, ${v.asset}, ${v.payer}, ${v.nonce}, ${id})`)
        await tx.one(sql.prepared('one_job', job)`
          select id::text from graphile_worker.add_job('verify_request', ${JSON.stringify({ request_id: id })}::json,
            job_key => ${fresh(id).key}, max_attempts => ${v.maxAttempts})`)
      }),
    async [Symbol.asyncDispose]() {},
  }
}

async function insertBySlonik(tx: Tx, v: Values): Promise<string> {
  await tx.query(sql.prepared('one_insert', nothing)`
    insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at, payment, payment_sealed,
                                       address_key, domain, accepted_at)
    values (${v.id}, ${sql.binary(v.keyHash)}, decode(${v.bodyHash}, 'hex'), 'accepted', ${v.body}::json,
            now() + ${v.ttl} * interval '1 second', ${v.bound}::json, ${sql.binary(v.sealFor(v.id))},
            ${sql.binary(v.addressKey)}, ${v.domain}, now())`)
  return v.id
}

async function acceptBySlonik(tx: Tx, v: Values): Promise<string> {
  const { id } = await tx.one(sql.prepared('one_lock', requestView)`
    select ${viewColumns} from verification_requests where key_hash = ${sql.binary(v.keyHash)} for update`)
  await tx.query(sql.prepared('one_accept', nothing)`
    update verification_requests set state = 'accepted', payment = ${v.bound}::json,
           payment_sealed = ${sql.binary(v.sealFor(id))}, changed_at = now(), accepted_at = now(),
           address_key = ${sql.binary(v.addressKey)}, domain = ${v.domain}
    where id = ${id}`)
  return id
}

/** Through pg alone, all statements prepared. */
export function pgAdmitter(url: string, maxConnections: number): Admitter {
  const pool = openPool(url, maxConnections)
  return {
    async admit(admission) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        await (admission.known ? acceptQuoted(client, admission) : insertAccepted(client, admission))
        await client.query('commit')
      } finally {
        client.release()
      }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

async function insertAccepted(client: pg.PoolClient, admission: Admission) {
  const v = valuesOf(admission)
  await client.query({
    name: 'insert',
    text: INSERT,
    values: [v.id, v.keyHash, v.bodyHash, v.body, v.ttl, v.bound, v.sealFor(v.id), v.addressKey, v.domain],
  })
  await claimAndEnqueue(client, v, v.id)
}

async function acceptQuoted(client: pg.PoolClient, admission: Admission) {
  const v = valuesOf(admission)
  const { rows } = await client.query<{ id: string }>({ name: 'lock', text: LOCK, values: [v.keyHash] })
  const { id } = rows[0]!
  await client.query({ name: 'accept', text: ACCEPT, values: [id, v.bound, v.sealFor(id), v.addressKey, v.domain] })
  await claimAndEnqueue(client, v, id)
}

async function claimAndEnqueue(client: pg.PoolClient, v: Values, id: string) {
  await client.query({ name: 'claim', text: CLAIM, values: [v.network, v.asset, v.payer, v.nonce, id] })
  const payload = JSON.stringify({ request_id: id })
  await client.query({ name: 'job', text: JOB, values: [payload, fresh(id).key, v.maxAttempts] })
}

/** Fresh keys only: everything in one statement, so in one round trip. The best that can be done without groups. */
export function statementAdmitter(url: string, maxConnections: number): Admitter {
  const pool = openPool(url, maxConnections)
  return {
    async admit(admission) {
      const v = valuesOf(admission)
      const payload = JSON.stringify({ request_id: v.id })
      const row = [v.id, v.keyHash, v.bodyHash, v.body, v.ttl, v.bound, v.sealFor(v.id), v.addressKey, v.domain]
      const claim = [v.network, v.asset, v.payer, v.nonce]
      const values = [...row, ...claim, payload, fresh(v.id).key, v.maxAttempts]
      await pool.query({ name: 'all', text: ALL, values })
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

function openPool(url: string, maxConnections: number) {
  const pool = new pg.Pool({ connectionString: url, max: maxConnections })
  // A closing connection may still get the error that its database is being dropped.
  return pool.on('error', () => {})
}

const fresh = (id: string) => jobOf({ id, priority: 0, state: 'accepted' })

type Values = ReturnType<typeof valuesOf>

function valuesOf({ id, keyHash, bodyHash, body, quoteTtlSeconds: ttl, addressKey, domain, payment }: Admission) {
  if (!payment) throw new Error('an admission of the bench is paid')
  const { bound, sealFor } = payment
  return {
    id,
    keyHash,
    bodyHash,
    body: JSON.stringify(body),
    ttl,
    addressKey,
    domain,
    bound: JSON.stringify(bound),
    sealFor,
    ...bound.identity,
    maxAttempts: fresh(id).maxAttempts,
  }
}

const COLUMNS =
  '(id, key_hash, body_hash, state, body, quote_expires_at, payment, payment_sealed, address_key, domain, accepted_at)'
const VALUES = `($1, $2, decode($3, 'hex'), 'accepted', $4::json, now() + $5::int * interval '1 second', $6::json, $7,
  $8, $9, now())`
const INSERT = `insert into verification_requests ${COLUMNS} values ${VALUES}`
const LOCK = `select id, state, encode(body_hash, 'hex') body_hash, quote_expires_at, changed_at, payment, error
  from verification_requests where key_hash = $1 for update`
const ACCEPT = `update verification_requests
  set state = 'accepted', payment = $2::json, payment_sealed = $3, changed_at = now(), accepted_at = now(),
      address_key = $4, domain = $5 where id = $1`
const CLAIM = 'insert into payment_claims (network, asset, payer, nonce, request_id) values ($1, $2, $3, $4, $5)'
const JOB = `select id from graphile_worker.add_job('verify_request', $1::json, job_key => $2, max_attempts => $3)`
const ALL = `with request as (${INSERT}),
  claim as (insert into payment_claims (network, asset, payer, nonce, request_id) values ($10, $11, $12, $13, $1))
  select id from graphile_worker.add_job('verify_request', $14::json, job_key => $15, max_attempts => $16)`
