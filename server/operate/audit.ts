// The audit: checks the invariants of the whole service against the database, and lists what breaks them. It changes
// nothing and may run while the service runs; work in progress is allowed some time.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { auditChain, type SignatureMode } from '../receipts/audit.ts'
import { auditResults } from './result-audit.ts'

export interface Fault {
  /** Which rule is broken. */
  check: AuditCheck
  /** What breaks it, by the id of the request, payment or receipt. */
  subject: string
  detail: string
}

/** The rules in the order in which they are checked, with a description of each. */
export const AUDIT_CHECKS = {
  chain: 'every hash, link and tree node of the receipts is correct, and the keys signed them',
  one_charge_per_request: 'a request, and so an Idempotency-Key, is charged at most once',
  one_charge_per_payment: 'a payment authorization is charged at most once',
  charged_is_served: 'every charged request has a result, or had one that expired',
  served_is_charged: 'every request with a result was charged',
  result_has_receipt: 'every stored result has the digest that its receipt attests, and that receipt is in the chain',
  work_has_job: 'every request in progress has a job that will run',
  payment_is_bound: 'a payment is bound to a request exactly while that request may use it',
} as const
export type AuditCheck = keyof typeof AUDIT_CHECKS
/** The cast is safe: the table is written above, and has no member that its type does not name. */
export const AUDIT_NAMES = Object.keys(AUDIT_CHECKS) as AuditCheck[]

export interface Audit {
  /** The number of things that each check examined: receipts, requests or payments. */
  checked: Record<AuditCheck, number>
  faults: Fault[]
}

export interface AuditOptions {
  signatures: SignatureMode
  onProgress?: (serial: number, head: number) => void
}

/** Checks of one rule, most of which are one query. */
type Check = (db: Database, options: AuditOptions) => Promise<{ checked: number; found: Omit<Fault, 'check'>[] }>

/** Most faults of each kind that are listed. */
const MAX_LISTED = 100
/** Seconds that work may take between two steps. The sweep gives lost requests a new job once a minute. */
const GRACE_SECONDS = 150

export async function auditAll(db: Database, options: AuditOptions): Promise<Audit> {
  const faults: Fault[] = []
  const checked: Partial<Audit['checked']> = {}
  for (const name of AUDIT_NAMES) {
    const outcome = await CHECKS[name](db, options)
    checked[name] = outcome.checked
    faults.push(...outcome.found.map((found) => ({ check: name, ...found })))
  }
  // The cast is safe: the loop has set a member for each name.
  return { checked: checked as Audit['checked'], faults }
}

const fault = z.object({ subject: z.string(), detail: z.string() })
const count = z.object({ n: z.number() })

const settledEntries = (db: Database) =>
  db.oneFirst(sql.type(count)`select count(*) n from payment_ledger where outcome = 'settled'`)

const CHECKS: Record<AuditCheck, Check> = {
  chain: async (db, options) => {
    const { to, faults } = await auditChain(db, options)
    return { checked: to, found: [...faults].map(([subject, detail]) => ({ subject, detail })) }
  },
  one_charge_per_request: async (db) => ({
    checked: await settledEntries(db),
    found: [
      ...(await db.any(sql.type(fault)`
        select request_id::text subject, 'charged ' || count(*) || ' times, by entries ' || string_agg(entry::text, ', ') detail
        from payment_ledger where outcome = 'settled' group by request_id having count(*) > 1 limit ${MAX_LISTED}`)),
    ],
  }),
  one_charge_per_payment: async (db) => ({
    checked: await settledEntries(db),
    found: [
      ...(await db.any(sql.type(fault)`
        select network || ' ' || payer || ' ' || nonce subject,
               'charged ' || count(*) || ' times, for requests ' || string_agg(request_id::text, ', ') detail
        from payment_ledger where outcome = 'settled' group by network, asset, payer, nonce having count(*) > 1
        limit ${MAX_LISTED}`)),
    ],
  }),
  charged_is_served: async (db) => ({
    checked: await settledEntries(db),
    // Between `settled` and `completed` the ledger is ahead of the result.
    found: [
      ...(await db.any(sql.type(fault)`
        select r.id::text subject, 'charged, and is ' || r.state || ' since ' || r.changed_at::timestamptz(0) detail
        from verification_requests r
        where r.state not in ('completed', 'expired')
          and not (r.state = 'settled' and r.changed_at > now() - ${GRACE_SECONDS} * interval '1 second')
          and exists (select from payment_ledger l where l.request_id = r.id and l.outcome = 'settled')
        limit ${MAX_LISTED}`)),
    ],
  }),
  served_is_charged: async (db) => ({
    checked: await db.oneFirst(sql.type(count)`
      select count(*) n from verification_requests where state in ('settled', 'completed')`),
    found: [
      ...(await db.any(sql.type(fault)`
        select r.id::text subject, 'is ' || r.state || ' without an entry of the ledger' detail
        from verification_requests r
        where r.state in ('settled', 'completed')
          and not exists (select from payment_ledger l where l.request_id = r.id and l.outcome = 'settled')
        limit ${MAX_LISTED}`)),
    ],
  }),
  result_has_receipt: (db) => auditResults(db, MAX_LISTED),
  work_has_job: async (db) => ({
    checked: await db.oneFirst(sql.type(count)`
      select count(*) n from verification_requests
      where state in ('accepted', 'observed', 'assessed', 'settling', 'settled')`),
    found: [
      ...(await db.any(sql.type(fault)`
        select r.id::text subject, 'is ' || r.state || ' since ' || r.changed_at::timestamptz(0)
                 || case when j.id is null then ' without a job' else ' with a dead job' end detail
        from verification_requests r left join graphile_worker.jobs j on j.key = 'verify:' || r.id
        where r.state in ('accepted', 'observed', 'assessed', 'settling', 'settled')
          and r.changed_at < now() - ${GRACE_SECONDS} * interval '1 second'
          and (j.id is null or (j.attempts >= j.max_attempts and j.locked_at is null))
          -- A request that waits for its turn at a host has its job there.
          and not exists (select from origin_waits w where w.job_key = 'verify:' || r.id)
        order by r.changed_at limit ${MAX_LISTED}`)),
    ],
  }),
  payment_is_bound: async (db) => ({
    checked: await db.oneFirst(sql.type(count)`select count(*) n from payment_claims`),
    found: [
      ...(await db.any(sql.type(fault)`
        select r.id::text subject, case when c.request_id is null
                 then 'is ' || r.state || ', and its payment is bound to no request'
                 else 'is ' || r.state || ', and still holds a payment' end detail
        from verification_requests r left join payment_claims c on c.request_id = r.id
        where (c.request_id is null and r.state in ('accepted', 'observed', 'assessed', 'settling', 'settled', 'completed'))
           or (c.request_id is not null and r.state in ('quoted', 'unpaid', 'failed'))
        limit ${MAX_LISTED}`)),
    ],
  }),
}
