// Operations of leases. Every grant, renewal and revocation is also a receipt, so that auditors can see who was allowed to
// act and when.
import { z } from 'zod'
import { dailyLimit, LIMITS, tierLimit } from '../accounts/tiers.ts'
import type { Api } from '../context.ts'
import { transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { type Attestation, attestation } from '../interface/attestation.ts'
import { defineAccountExchange, defineAccountOperation, Reply, refuseOverflow, wholeNumber } from '../operation.ts'
import { findAttestation } from '../receipts/archive.ts'
import { type Appended, Refused } from '../receipts/chain.ts'
import type { SigningKey } from '../receipts/format.ts'
import {
  type Lease,
  lease,
  leaseId,
  readLease,
  readRevocation,
  revocation,
  signGrant,
  signRenewal,
  signRevocation,
  subjectOf,
} from './format.ts'
import { findLease, findLeases, type LeaseAct, type LeaseRecord, type LeaseRefusal, leaseActs } from './lease.ts'
import { leaseTerms } from './terms.ts'

const base64 = z.string().regex(/^[A-Za-z0-9+/]+={0,2}$/)
const signature = z.string().regex(/^[0-9a-f]{128}$/)
const serial = z.int().min(1)

const state = z.enum(['active', 'expired', 'revoked'])
type State = z.output<typeof state>

const leaseOutput = z.strictObject({
  lease,
  canonical_lease_base64: base64.describe('The signed bytes: RFC 8785 JSON of lease.'),
  sig_ed25519_hex: signature,
  state,
  revoked_ms: z.int().nullable(),
  receipts: z
    .strictObject({ granted: serial, renewed: serial.nullable(), revoked: serial.nullable() })
    .describe('Serials in the chain; renewed is the latest renewal.'),
  server_now_ms: z.int(),
})
const attested = attestation.describe('The receipt: its subject_sha256 is the SHA-256 of the signed bytes.')
const leaseActOutput = leaseOutput.extend({ attestation: attested })
const revocationOutput = z.strictObject({
  lease_id: leaseId,
  state: z.literal('revoked'),
  revoked_ms: z.int(),
  revocation,
  canonical_revocation_base64: base64,
  sig_ed25519_hex: signature,
  attestation: attested,
})

/** The id has no form: a malformed one is answered like an id that no lease has. */
const byId = z.strictObject({ lease_id: z.string() })

export const grantLease = defineAccountExchange({
  name: 'grant_lease',
  summary: 'Grant a lease: signed permission for one agent to do one action',
  description:
    'Each grant makes a new lease (a permission, not a lock). It authorizes until recheck_by_ms and, renewed ' +
    'before that, until expires_ms. lim is signed unchanged: your gateway has to enforce it.',
  method: 'POST',
  path: '/v1/lease',
  family: 'control',
  access: 'account',
  scope: 'lease:write',
  statuses: [201],
  errors: ['tier_limit', 'daily_limit', 'capacity_exceeded'],
  kind: 'exchange',
  input: leaseTerms,
  output: leaseActOutput,
  async run(terms, { api, caller }) {
    const { active_leases: limit, lease_acts_per_day: perDay } = LIMITS[caller.tier]
    const { signed, appended } = await append(api, 'lease.granted', (key) => {
      const signed = signGrant(caller.handle, terms, api.now(), key)
      const { lease_id, granted_ms } = signed.document
      const act = { accountId: caller.accountId, leaseId: lease_id, atMs: granted_ms, signed }
      return { act: 'grant', ...act, limit, dailyLimit: perDay }
    })
    if (appended instanceof Refused)
      throw appended.reason === 'daily_limit'
        ? dailyLimit('lease_acts_per_day', caller.tier)
        : tierLimit('active_leases', caller.tier)
    const { text, signature, document } = signed
    const bytes = { lease: text, sig_hex: signature.toString('hex'), expires_ms: document.expires_ms }
    const record = { ...NEW, ...bytes, grant_serial: appended.attestation.serial }
    return new Reply(
      { ...describe(record, api.now()), attestation: appended.attestation },
      { status: 201, headers: FRESH },
    )
  },
})

const NEW = { revocation: null, revocation_sig_hex: null, revoked_ms: null, renew_serial: null, revoke_serial: null }
/** The state of a lease must never come from a cache. */
const FRESH = { 'cache-control': 'no-store' }

export const renewLease = defineAccountExchange({
  name: 'renew_lease',
  summary: 'Recheck a lease: the same one with a later recheck_by_ms',
  description: '`expires_ms` stays as it is. A lease that is revoked or expired is not renewed (409).',
  method: 'POST',
  path: '/v1/lease/{lease_id}/renew',
  family: 'control',
  access: 'account',
  scope: 'lease:write',
  errors: ['not_found', 'lease_ended', 'daily_limit', 'capacity_exceeded'],
  kind: 'exchange',
  input: byId,
  output: leaseActOutput,
  async run({ lease_id }, { api, caller }) {
    const { accountId, tier } = caller
    const record = await findLease(api.db, accountId, lease_id)
    if (record.revoked_ms !== null) throw ended()
    const { signed, appended } = await append(api, 'lease.renewed', (key) => {
      const signed = signRenewal(readLease(record.lease), api.now(), key)
      if (!signed) throw ended()
      const act = { accountId, leaseId: lease_id, atMs: signed.document.issued_ms, signed }
      return { act: 'renew', ...act, dailyLimit: LIMITS[tier].lease_acts_per_day }
    })
    if (appended instanceof Refused)
      throw appended.reason === 'daily_limit' ? dailyLimit('lease_acts_per_day', tier) : ended()
    const bytes = { lease: signed.text, sig_hex: signed.signature.toString('hex') }
    const renewed = { ...record, ...bytes, renew_serial: appended.attestation.serial }
    return new Reply({ ...describe(renewed, api.now()), attestation: appended.attestation }, { headers: FRESH })
  },
})

function ended() {
  return new AppError('lease_ended', 'The lease is revoked or expired.')
}

export const revokeLease = defineAccountExchange({
  name: 'revoke_lease',
  summary: 'Revoke a lease',
  description:
    'The lease cannot be renewed any more, so every gateway stops accepting it by its latest recheck_by_ms, at most 30 ' +
    'seconds from now. A repeated call gets the same answer.',
  method: 'POST',
  path: '/v1/lease/{lease_id}/revoke',
  family: 'control',
  access: 'account',
  scope: 'lease:write',
  errors: ['not_found', 'capacity_exceeded'],
  kind: 'exchange',
  input: byId,
  output: revocationOutput,
  async run({ lease_id }, { api, caller }) {
    const { accountId } = caller
    const record = await findLease(api.db, accountId, lease_id)
    if (record.revoked_ms !== null) return describeRevocation(record, await readAttestation(api, record))
    const { appended } = await append(api, 'lease.revoked', (key) => {
      const signed = signRevocation(readLease(record.lease), api.now(), key)
      return { act: 'revoke', accountId, leaseId: lease_id, atMs: signed.document.revoked_ms, signed }
    })
    const revoked = await findLease(api.db, accountId, lease_id)
    // Refused as a repeat: a concurrent call revoked the lease, and that revocation is valid.
    if (appended instanceof Refused) return describeRevocation(revoked, await readAttestation(api, revoked))
    return describeRevocation(revoked, appended.attestation)
  },
})

export const getLease = defineAccountOperation({
  name: 'get_lease',
  summary: 'One lease with its latest signature, and its state',
  method: 'GET',
  path: '/v1/lease/{lease_id}',
  family: 'control',
  access: 'account',
  scope: 'lease:read',
  errors: ['not_found'],
  kind: 'transaction',
  input: byId,
  output: leaseOutput,
  run: async ({ lease_id }, { tx, caller, api }) =>
    new Reply(describe(await findLease(tx, caller.accountId, lease_id), api.now()), { headers: FRESH }),
})

const asked = (name: string) =>
  z.string().optional().describe(`The ${name} that the lease must be for; without it, any ${name} is accepted.`)
const REASONS = ['wrong_agent', 'wrong_action', 'revoked', 'expired', 'recheck_passed'] as const

export const verifyLease = defineAccountExchange({
  name: 'verify_lease',
  summary: 'Check whether a lease authorizes at this moment',
  description:
    'The verdict of the service on the lease with its latest signature. `recheck_passed`: renew it, then it authorizes again. A ' +
    'gateway should not need this: it verifies the signed lease offline, with `verifyLease` of the client and pinned keys, ' +
    'also while the service cannot be reached. `lim` is for the gateway to enforce either way.',
  method: 'POST',
  path: '/v1/lease/{lease_id}/verify',
  family: 'control',
  access: 'account',
  scope: 'lease:read',
  errors: ['not_found'],
  kind: 'exchange',
  input: byId.extend({ agent: asked('agent'), action: asked('action') }),
  output: z.strictObject({
    lease_id: leaseId,
    valid: z.boolean(),
    reason: z.enum(REASONS).nullable().describe('Why the lease does not authorize; null if it does.'),
    state,
    agent: z.string(),
    action: z.string(),
    lim: z.string(),
    recheck_by_ms: z.int(),
    expires_ms: z.int(),
    server_now_ms: z.int(),
  }),
  async run({ lease_id, ...wanted }, { api, caller }) {
    const { lease, state, server_now_ms } = describe(await findLease(api.db, caller.accountId, lease_id), api.now())
    const reason = refusalOf(lease, state, server_now_ms, wanted)
    const { agent, action, lim, recheck_by_ms, expires_ms } = lease
    const verdict = { lease_id, valid: reason === null, reason, state, agent, action, lim }
    return new Reply({ ...verdict, recheck_by_ms, expires_ms, server_now_ms }, { headers: FRESH })
  },
})

function refusalOf(
  lease: Lease,
  state: State,
  nowMs: number,
  wanted: { agent?: string; action?: string },
): (typeof REASONS)[number] | null {
  if (wanted.agent !== undefined && wanted.agent !== lease.agent) return 'wrong_agent'
  if (wanted.action !== undefined && wanted.action !== lease.action) return 'wrong_action'
  if (state !== 'active') return state
  return nowMs < lease.recheck_by_ms ? null : 'recheck_passed'
}

const MAX_PAGE = 1000

export const listLeases = defineAccountOperation({
  name: 'list_leases',
  summary: "The account's leases, newest first",
  method: 'GET',
  path: '/v1/lease',
  family: 'control',
  access: 'account',
  scope: 'lease:read',
  kind: 'transaction',
  input: z.strictObject({
    state: z.enum(['active', 'all']).default('all'),
    limit: wholeNumber(1, MAX_PAGE).prefault(100),
    before: z.string().optional().describe('`next` of the previous page.'),
  }),
  output: z.strictObject({ leases: z.array(leaseOutput), next: leaseId.nullable() }),
  async run({ state, limit, before }, { tx, caller, api }) {
    const nowMs = api.now()
    const activeAt = state === 'active' ? nowMs : undefined
    const found = await findLeases(tx, { accountId: caller.accountId, activeAt, before, limit: limit + 1 })
    const leases = found.slice(0, limit).map((record) => describe(record, nowMs))
    const next = found.length > limit ? (leases.at(-1)?.lease.lease_id ?? null) : null
    return new Reply({ leases, next }, { headers: FRESH })
  },
})

/**
 * Signs an act and appends its receipt. If the key was rotated meanwhile, the batch detects it and the act is signed again:
 * after a rotation, everything in the chain is signed with the new key.
 */
async function append<Act extends Unkeyed<LeaseAct>>(
  api: Appending,
  label: string,
  sign: (key: SigningKey) => Act,
): Promise<{ signed: Act['signed']; appended: Appended | Refused<LeaseRefusal> }> {
  for (;;) {
    const act = sign(api.keys.lease)
    const appended = await appendAct(api, label, { ...act, keys: api.keys })
    if (appended instanceof Refused && appended.reason === 'stale_key') continue
    return { signed: act.signed, appended }
  }
}

type Appending = Pick<Api, 'chain' | 'keys'>
/** Distributes over the union of acts, which a plain `Omit` would merge into one. */
type Unkeyed<Act> = Act extends unknown ? Omit<Act, 'keys'> : never

function appendAct(api: Appending, label: string, act: LeaseAct): Promise<Appended | Refused<LeaseRefusal>> {
  const participant = { kind: leaseActs, item: act }
  const entry = { subjectSha256: subjectOf(act.signed), label, requestedBy: 'lease', participant }
  return api.chain.append(entry).catch(refuseOverflow)
}

function describe(record: LeaseRecord, nowMs: number): z.output<typeof leaseOutput> {
  return {
    lease: readLease(record.lease),
    canonical_lease_base64: Buffer.from(record.lease).toString('base64'),
    sig_ed25519_hex: record.sig_hex,
    state: record.revoked_ms !== null ? 'revoked' : record.expires_ms <= nowMs ? 'expired' : 'active',
    revoked_ms: record.revoked_ms,
    receipts: { granted: record.grant_serial, renewed: record.renew_serial, revoked: record.revoke_serial },
    server_now_ms: nowMs,
  }
}

function describeRevocation(record: LeaseRecord, attestation: Attestation): Reply<z.output<typeof revocationOutput>> {
  const { revocation: text, revocation_sig_hex, revoked_ms } = record
  if (text === null || revocation_sig_hex === null || revoked_ms === null)
    throw new Error('a revoked lease has no revocation')
  const document = readRevocation(text)
  return new Reply(
    {
      lease_id: document.lease_id,
      state: 'revoked',
      revoked_ms,
      revocation: document,
      canonical_revocation_base64: Buffer.from(text).toString('base64'),
      sig_ed25519_hex: revocation_sig_hex,
      attestation,
    },
    { headers: FRESH },
  )
}

async function readAttestation({ db }: Pick<Api, 'db'>, { revoke_serial }: LeaseRecord): Promise<Attestation> {
  const found = await transact(db, (tx) => findAttestation(tx, revoke_serial ?? 0), { readOnly: true })
  if (!found) throw new Error(`the receipt ${revoke_serial} of a revocation is missing`)
  return found
}
