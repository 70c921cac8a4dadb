// The record of leases, and the participant that writes it in the transaction of the receipts. An act is a grant, a renewal
// or a revocation. Acts are written under the lock of the chain's head. So the acts on one lease, and the count of an
// account's leases, have one order across all processes.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { type Participant, Refused } from '../receipts/chain.ts'
import { addToDay, takeFromDay } from '../receipts/days.ts'
import type { HeldKeys } from '../receipts/signer.ts'
import { type Lease, leaseId, type Revocation, type Signed } from './format.ts'

/** A signed act on a lease. Whether it is allowed is decided under the lock of the chain's head, where acts have an order. */
export type LeaseAct = {
  accountId: string
  leaseId: string
  atMs: number
  /** The keys of this process. Under the lock, `lease` is the active key. */
  keys: Pick<HeldKeys, 'lease'>
} & (
  | { act: 'grant'; signed: Signed<Lease>; limit: number; dailyLimit: number }
  | { act: 'renew'; signed: Signed<Lease>; dailyLimit: number }
  | { act: 'revoke'; signed: Signed<Revocation> }
)
type Done<Name extends LeaseAct['act']> = Extract<LeaseAct, { act: Name }> & { serial: number }

/**
 * `limit`: the account has all the active leases of its tier. `daily_limit`: it has used all acts of the day. `ended`: the lease
 * is revoked or expired. `repeat`: it was revoked before. `stale_key`: the key was rotated, so the act has to be signed again.
 */
export type LeaseRefusal = 'limit' | 'daily_limit' | 'ended' | 'repeat' | 'stale_key'

interface LeaseState {
  expires_ms: number
  revoked: boolean
}

/**
 * The state against which the acts of a batch are checked. Each accepted act changes it, so later acts of the batch see
 * its effect.
 */
interface BatchState {
  /** Active leases by account. */
  active: Map<string, number>
  leases: Map<string, LeaseState>
  /** Acts of this day by account. */
  acts: Map<string, number>
  nowMs: number
}

export const leaseActs: Participant<LeaseAct, LeaseRefusal> = {
  async check(tx, acts) {
    const nowMs = Math.max(...acts.map((act) => act.atMs))
    // All acts are counted first, and the counts of refused acts are subtracted afterwards. Most batches refuse nothing,
    // and so need one statement less.
    const asked = countByAccount(acts)
    const used = await addToDay(tx, 'lease_acts', asked)
    const before = [...used].map(([id, count]) => [id, count - (asked.get(id) ?? 0)] as const)
    const batch: BatchState = {
      active: new Map(await countActiveLeases(tx, [...asked.keys()], nowMs)),
      leases: await findStates(
        tx,
        acts.map((act) => act.leaseId),
      ),
      acts: new Map(before),
      nowMs,
    }
    const refusals = acts.map((act) => admitOne(act, batch))
    const refused = acts.filter((_, index) => refusals[index] !== null)
    await takeFromDay(tx, 'lease_acts', countByAccount(refused))
    return refusals
  },

  async apply(tx, entries) {
    const done = entries.map(({ item, attestation }) => ({ ...item, serial: attestation.serial }))
    const granted = done.filter((act) => act.act === 'grant')
    const renewed = done.filter((act) => act.act === 'renew')
    const revoked = done.filter((act) => act.act === 'revoke')
    if (granted.length > 0) await insertGranted(tx, granted)
    if (renewed.length > 0) await updateRenewed(tx, renewed)
    if (revoked.length > 0) await updateRevoked(tx, revoked)
  },
}

function countByAccount(acts: readonly LeaseAct[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { accountId } of acts) counts.set(accountId, (counts.get(accountId) ?? 0) + 1)
  return counts
}

function admitOne(act: LeaseAct, batch: BatchState): null | Refused<LeaseRefusal> {
  // The act was signed before a key rotation that committed before this batch.
  if (act.signed.document.key_id !== act.keys.lease.keyId) return new Refused('stale_key')
  const refusal = refusalOf(act, batch)
  if (refusal) return new Refused(refusal)
  batch.acts.set(act.accountId, (batch.acts.get(act.accountId) ?? 0) + 1)
  return null
}

function refusalOf(act: LeaseAct, { active, leases, acts, nowMs }: BatchState): LeaseRefusal | null {
  const count = active.get(act.accountId) ?? 0
  const today = acts.get(act.accountId) ?? 0
  if (act.act === 'grant') {
    if (count >= act.limit) return 'limit'
    if (today >= act.dailyLimit) return 'daily_limit'
    active.set(act.accountId, count + 1)
    return null
  }
  const state = leases.get(act.leaseId)
  if (!state) throw new Error(`lease ${act.leaseId} has no row`)
  if (act.act === 'renew') {
    if (state.revoked || state.expires_ms <= act.atMs) return 'ended'
    return today >= act.dailyLimit ? 'daily_limit' : null
  }
  // No limit applies: a permission can always be taken back. Grants are limited, and each has at most one revocation.
  if (state.revoked) return 'repeat'
  state.revoked = true
  if (state.expires_ms > nowMs) active.set(act.accountId, count - 1)
  return null
}

const isActive = (nowMs: number) => sql.fragment`revoked_ms is null and expires_ms > ${nowMs}`

/** Active leases by account; an account without one is missing. */
export async function countActiveLeases(
  tx: Tx,
  accountIds: readonly string[],
  nowMs: number,
): Promise<ReadonlyMap<string, number>> {
  const rows = await tx.any(sql.prepared('count_active_leases', z.object({ id: z.string(), leases: z.number() }))`
    select account_id::text id, count(*) leases from leases
    where account_id = any(${sql.array([...accountIds], 'uuid')}) and ${isActive(nowMs)}
    group by account_id`)
  return new Map(rows.map((row) => [row.id, row.leases]))
}

const stateRow = z.object({ id: z.string(), expires_ms: z.number(), revoked: z.boolean() })

async function findStates(tx: Tx, ids: string[]): Promise<Map<string, LeaseState>> {
  const rows = await tx.any(sql.prepared('find_lease_states', stateRow)`
    select id, expires_ms, revoked_ms is not null revoked from leases where id = any(${sql.array(ids, 'text')})`)
  return new Map(rows.map((row) => [row.id, row]))
}

function signedRow({ signed, accountId, serial }: Done<'grant' | 'renew'>) {
  const { lease_id, granted_ms, issued_ms, expires_ms, recheck_by_ms } = signed.document
  const bytes = { lease: signed.text, sig: signed.signature.toString('hex') }
  return { id: lease_id, account_id: accountId, serial, granted_ms, issued_ms, expires_ms, recheck_by_ms, ...bytes }
}

const signedColumns = sql.fragment`as t (id text, account_id uuid, serial int8, granted_ms int8, issued_ms int8,
  expires_ms int8, recheck_by_ms int8, lease text, sig text)`

async function insertGranted(tx: Tx, acts: Done<'grant'>[]) {
  await tx.query(sql.prepared('insert_granted_leases', nothing)`
    insert into leases (id, account_id, lease, sig_ed25519, granted_ms, issued_ms, expires_ms, recheck_by_ms,
                        grant_serial)
    select id, account_id, lease, decode(sig, 'hex'), granted_ms, issued_ms, expires_ms, recheck_by_ms, serial
    from json_to_recordset(${sql.json(acts.map(signedRow))}) ${signedColumns}`)
}

/** Of several renewals of one lease, the one issued last is kept; of those issued in one ms, the one with the last serial. */
async function updateRenewed(tx: Tx, acts: Done<'renew'>[]) {
  await tx.query(sql.prepared('update_renewed_leases', nothing)`
    update leases l set lease = t.lease, sig_ed25519 = decode(t.sig, 'hex'), issued_ms = t.issued_ms,
      recheck_by_ms = t.recheck_by_ms, renew_serial = t.serial
    from (select distinct on (id) id, lease, sig, issued_ms, recheck_by_ms, serial
          from json_to_recordset(${sql.json(acts.map(signedRow))}) ${signedColumns}
          order by id, issued_ms desc, serial desc) t
    where l.id = t.id and t.issued_ms >= l.issued_ms`)
}

async function updateRevoked(tx: Tx, acts: Done<'revoke'>[]) {
  const rows = acts.map(({ signed, serial }) => ({
    id: signed.document.lease_id,
    revoked_ms: signed.document.revoked_ms,
    serial,
    text: signed.text,
    sig: signed.signature.toString('hex'),
  }))
  await tx.query(sql.prepared('update_revoked_leases', nothing)`
    update leases l set revocation = t.text, revocation_sig_ed25519 = decode(t.sig, 'hex'), revoked_ms = t.revoked_ms,
      revoke_serial = t.serial
    from json_to_recordset(${sql.json(rows)}) as t (id text, revoked_ms int8, serial int8, text text, sig text)
    where l.id = t.id`)
}

const leaseRow = z.object({
  /** The signed text; `revocation` is that of its revocation. */
  lease: z.string(),
  sig_hex: z.string(),
  expires_ms: z.number(),
  revocation: z.string().nullable(),
  revocation_sig_hex: z.string().nullable(),
  revoked_ms: z.number().nullable(),
  grant_serial: z.number(),
  renew_serial: z.number().nullable(),
  revoke_serial: z.number().nullable(),
})
export type LeaseRecord = z.output<typeof leaseRow>

const leaseColumns = sql.fragment`lease, encode(sig_ed25519, 'hex') sig_hex, expires_ms, revocation,
  encode(revocation_sig_ed25519, 'hex') revocation_sig_hex, revoked_ms, grant_serial, renew_serial, revoke_serial`

/** Throws AppError `not_found`, also for a lease of another account. */
export async function findLease(db: Tx | Database, accountId: string, id: string): Promise<LeaseRecord> {
  const known = leaseId.safeParse(id).success
  const found = known
    ? await db.maybeOne(sql.prepared('find_lease', leaseRow)`
        select ${leaseColumns} from leases where account_id = ${accountId} and id = ${id}`)
    : null
  if (!found) throw new AppError('not_found', 'This account has no such lease.')
  return found
}

/** Newest first. @param before id of the last lease of the previous page; an id that does not exist gives an empty page */
export async function findLeases(
  tx: Tx,
  { accountId, activeAt, before, limit }: { accountId: string; activeAt?: number; before?: string; limit: number },
): Promise<readonly LeaseRecord[]> {
  if (before && !leaseId.safeParse(before).success) return []
  const older = before
    ? sql.fragment`and (granted_ms, id) < (select granted_ms, id from leases
                                           where account_id = ${accountId} and id = ${before})`
    : sql.fragment``
  const active = activeAt === undefined ? sql.fragment`` : sql.fragment`and ${isActive(activeAt)}`
  return tx.any(sql.type(leaseRow)`
    select ${leaseColumns} from leases where account_id = ${accountId} ${active} ${older}
    order by granted_ms desc, id desc limit ${limit}`)
}
