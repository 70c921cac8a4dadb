// The record of leases, and the participant that keeps it in step with the receipts. Every grant, renewal and revocation
// is written under the lock of the chain's head, so acts on one lease, and an account's count of leases, have one order,
// whichever process they came through.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { type Participant, Refused } from '../receipts/chain.ts'
import { addToDay, takeFromDay } from '../receipts/days.ts'
import type { HeldKeys } from '../receipts/signer.ts'
import { type Lease, leaseId, type Revocation, type Sealed } from './format.ts'

/** What is to be done to a lease, already signed: whether it may be is decided where the order is. */
export type LeaseAct = {
  accountId: string
  leaseId: string
  atMs: number
  /** What this process signs with: under the lock, the key in force. */
  keys: Pick<HeldKeys, 'lease'>
} & (
  | { act: 'grant'; sealed: Sealed<Lease>; limit: number; dailyLimit: number }
  | { act: 'renew'; sealed: Sealed<Lease>; dailyLimit: number }
  | { act: 'revoke'; sealed: Sealed<Revocation> }
)
type Done<Name extends LeaseAct['act']> = Extract<LeaseAct, { act: Name }> & { serial: number }

/**
 * `limit`: the tier has no lease left. `daily_limit`: no act of this day. `ended`: revoked or expired. `repeat`: revoked
 * before. `stale_key`: sign it anew.
 */
export type LeaseRefusal = 'limit' | 'daily_limit' | 'ended' | 'repeat' | 'stale_key'

interface Standing {
  /** Active leases by account. */
  active: Map<string, number>
  leases: Map<string, { expires_ms: number; revoked: boolean }>
  /** Acts of this day by account, those that were admitted in this batch included. */
  acts: Map<string, number>
  nowMs: number
}

export const leaseActs: Participant<LeaseAct, LeaseRefusal> = {
  async check(tx, acts) {
    const nowMs = Math.max(...acts.map((act) => act.atMs))
    // Counted before they are judged, which saves the usual case a statement; what is refused is taken back.
    const asked = countByAccount(acts)
    const used = await addToDay(tx, 'lease_acts', asked)
    const before = [...used].map(([id, count]) => [id, count - (asked.get(id) ?? 0)] as const)
    const standing: Standing = {
      active: await countActive(tx, [...new Set(acts.map((act) => act.accountId))], nowMs),
      leases: await findStates(
        tx,
        acts.map((act) => act.leaseId),
      ),
      acts: new Map(before),
      nowMs,
    }
    const refusals = acts.map((act) => admitOne(act, standing))
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

/** Acts of one batch see what those before them will have done. */
function admitOne(act: LeaseAct, standing: Standing): null | Refused<LeaseRefusal> {
  // Signed before a rotation that this batch comes after.
  if (act.sealed.document.key_id !== act.keys.lease.keyId) return new Refused('stale_key')
  const refusal = refusalOf(act, standing)
  if (refusal) return new Refused(refusal)
  standing.acts.set(act.accountId, (standing.acts.get(act.accountId) ?? 0) + 1)
  return null
}

function refusalOf(act: LeaseAct, { active, leases, acts, nowMs }: Standing): LeaseRefusal | null {
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
  // A permission must always be possible to take back. There are no more revocations than grants, which are limited.
  if (state.revoked) return 'repeat'
  state.revoked = true
  if (state.expires_ms > nowMs) active.set(act.accountId, count - 1)
  return null
}

async function countActive(tx: Tx, accountIds: string[], nowMs: number): Promise<Map<string, number>> {
  const rows = await tx.any(sql.prepared('count_active_leases', z.object({ id: z.string(), leases: z.number() }))`
    select account_id::text id, count(*) leases from leases
    where account_id = any(${sql.array(accountIds, 'uuid')}) and revoked_ms is null and expires_ms > ${nowMs}
    group by account_id`)
  return new Map(rows.map((row) => [row.id, row.leases]))
}

const stateRow = z.object({ id: z.string(), expires_ms: z.number(), revoked: z.boolean() })

async function findStates(tx: Tx, ids: string[]): Promise<Standing['leases']> {
  const rows = await tx.any(sql.prepared('find_lease_states', stateRow)`
    select id, expires_ms, revoked_ms is not null revoked from leases where id = any(${sql.array(ids, 'text')})`)
  return new Map(rows.map((row) => [row.id, row]))
}

function signedRow({ sealed, accountId, serial }: Done<'grant' | 'renew'>) {
  const { lease_id, granted_ms, issued_ms, expires_ms, recheck_by_ms } = sealed.document
  const signed = { lease: sealed.text, sig: sealed.signature.toString('hex') }
  return { id: lease_id, account_id: accountId, serial, granted_ms, issued_ms, expires_ms, recheck_by_ms, ...signed }
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

/** Of several renewals of one lease the one that lasts longest stands, and of those the last. */
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
  const rows = acts.map(({ sealed, serial }) => ({
    id: sealed.document.lease_id,
    revoked_ms: sealed.document.revoked_ms,
    serial,
    text: sealed.text,
    sig: sealed.signature.toString('hex'),
  }))
  await tx.query(sql.prepared('update_revoked_leases', nothing)`
    update leases l set revocation = t.text, revocation_sig_ed25519 = decode(t.sig, 'hex'), revoked_ms = t.revoked_ms,
      revoke_serial = t.serial
    from json_to_recordset(${sql.json(rows)}) as t (id text, revoked_ms int8, serial int8, text text, sig text)
    where l.id = t.id`)
}

const leaseRow = z.object({
  /** The signed bytes of the lease, and of its revocation. */
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

/** Throws AppError `not_found`, the same for a lease of another account as for none. */
export async function findLease(db: Tx | Database, accountId: string, id: string): Promise<LeaseRecord> {
  const known = leaseId.safeParse(id).success
  const found = known
    ? await db.maybeOne(sql.prepared('find_lease', leaseRow)`
        select ${leaseColumns} from leases where account_id = ${accountId} and id = ${id}`)
    : null
  if (!found) throw new AppError('not_found', 'This account has no such lease.')
  return found
}

/** Newest first. @param before id of the lease after which to go on; one that does not exist ends the list */
export async function listLeases(
  tx: Tx,
  { accountId, activeAt, before, limit }: { accountId: string; activeAt?: number; before?: string; limit: number },
): Promise<readonly LeaseRecord[]> {
  if (before && !leaseId.safeParse(before).success) return []
  const older = before
    ? sql.fragment`and (granted_ms, id) < (select granted_ms, id from leases
                                           where account_id = ${accountId} and id = ${before})`
    : sql.fragment``
  const active =
    activeAt === undefined ? sql.fragment`` : sql.fragment`and revoked_ms is null and expires_ms > ${activeAt}`
  return tx.any(sql.type(leaseRow)`
    select ${leaseColumns} from leases where account_id = ${accountId} ${active} ${older}
    order by granted_ms desc, id desc limit ${limit}`)
}
