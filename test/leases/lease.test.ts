// Leases over HTTP: signatures, refusals, receipts, and concurrent acts.
import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import t from 'tap'
import type { IntroducedKey } from '../../client/chain/rotation.ts'
import { verifyLease } from '../../client/lease.ts'
import { trustIntroduced, verifyChain } from '../../client/verification.ts'
import { LIMITS } from '../../server/accounts/tiers.ts'
import { transact } from '../../server/db/pool.ts'
import { type Lease, type Signed, signGrant, signRenewal, signRevocation } from '../../server/leases/format.ts'
import { leaseActs } from '../../server/leases/lease.ts'
import { verifyLease as verifyLeaseOperation } from '../../server/leases/operations.ts'
import { rotateKey } from '../../server/receipts/rotation.ts'
import { type Answer, openAccountHarness } from '../accounts/harness.ts'
import { jcs } from '../client/issuer.ts'

const harness = await openAccountHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { clock } = harness
const { keys } = (await harness.call('GET', '/v1/keys')).body as {
  keys: { key_id: number; use: string; pubkey_hex: string }[]
}

const TERMS = { agent: 'agent-7', action: 'pay', ttl_s: 600, lim: 'usd<=20' }
const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex')
const base64 = (text: string) => Buffer.from(text, 'base64')

/** Verifies by OpenSSL, independently of the client. */
function isSignedByLeaseKey(bytes: Buffer, signature: string): boolean {
  const hex = keys.find((key) => key.use === 'lease')?.pubkey_hex ?? ''
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(hex, 'hex')])
  return verify(null, bytes, createPublicKey({ key: der, format: 'der', type: 'spki' }), Buffer.from(signature, 'hex'))
}

const name = (changes: object) =>
  JSON.stringify(changes)
    .replace(/[^ -~]+/g, '?')
    .slice(0, 60)
const codeOf = (answer: Answer) => answer.body?.error?.code as string | undefined
const countBy = (answers: Answer[]) =>
  Object.fromEntries(
    Object.entries(Object.groupBy(answers, (answer) => answer.status)).map(([status, group]) => [
      status,
      group?.length,
    ]),
  )
/** Receipts about leases, oldest first. */
async function leaseReceipts(subject?: string) {
  const { rows } = await harness.tables.query<{ serial: number; label: string; subject: string; requested_by: string }>(
    `select serial::int, label, encode(subject_sha256, 'hex') subject, requested_by from receipts
     where $1::text is null or encode(subject_sha256, 'hex') = $1 order by serial`,
    [subject ?? null],
  )
  return rows
}

t.test('a grant: the requested terms, signed, in the chain, and valid for 30 seconds', async (t) => {
  const account = await harness.register({ handle: 'kelby' })
  const answer = await account.call('POST', '/v1/lease', { body: TERMS })
  t.equal(answer.status, 201)
  const { lease, canonical_lease_base64, sig_ed25519_hex, attestation } = answer.body
  t.same(lease, {
    v: 1,
    typ: 'lease',
    lease_id: lease.lease_id,
    account: 'kelby',
    ...TERMS,
    granted_ms: clock.now,
    issued_ms: clock.now,
    expires_ms: clock.now + 600_000,
    recheck_by_ms: clock.now + 30_000,
    key_id: keys.find((key) => key.use === 'lease')?.key_id,
  })
  t.match(lease.lease_id, /^ls_[0-9a-f]{32}$/)
  const bytes = base64(canonical_lease_base64)
  t.equal(bytes.toString(), jcs(lease))
  t.ok(isSignedByLeaseKey(bytes, sig_ed25519_hex))
  t.match(attestation, { subject_sha256: sha256(bytes), label: 'lease.granted', requested_by: 'lease' })
  t.match(answer.body, { state: 'active', revoked_ms: null, receipts: { granted: attestation.serial, renewed: null } })
  t.match((await harness.call('GET', `/v1/receipt/${attestation.serial}`)).body, { attestation })

  const gateway = { keys, account: 'kelby', agent: 'agent-7', action: 'pay', now: clock.now, skewMs: 0 }
  t.match(verifyLease(answer.body, gateway), { ok: true, remainingMs: 30_000 })
  t.match(verifyLease(answer.body, { ...gateway, account: 'orsay' }), { ok: false, reason: 'wrong_account' })
  t.match((await account.call('GET', '/v1/usage')).body.used, { active_leases: 1, receipts_today: 0 })
})

t.test('terms outside the limits are refused, never clamped', async (t) => {
  const account = await harness.register({ tier: 'pro' })
  const ask = (changes: object) => account.call('POST', '/v1/lease', { body: { ...TERMS, ...changes } })
  const wrong = [
    { ttl_s: 0 },
    { ttl_s: 86_401 },
    { ttl_s: 1.5 },
    { ttl_s: '60' },
    { ttl_s: null },
    { ttl_s: undefined },
    { agent: '' },
    { agent: 'a'.repeat(201) },
    { agent: 7 },
    { agent: '\ud800' },
    { agent: undefined },
    { action: '' },
    { action: '\u{1F6A2}'.repeat(201) },
    { action: undefined },
    { lim: 'x'.repeat(1001) },
    { lim: undefined },
    { lim: { usd: 20 } },
    { surprise: 1 },
    { lease_id: 'ls_00000000000000000000000000000000' },
  ]
  for (const changes of wrong) {
    const answer = await ask(changes)
    t.equal(answer.status, 400, name(changes))
    t.equal(codeOf(answer), 'invalid_request')
  }
  const right = [
    { ttl_s: 1 },
    { ttl_s: 86_400 },
    { agent: '\u{1F6A2}'.repeat(200) },
    { action: 'a\u0000\n"\\\u2028' },
    { lim: '' },
    { lim: '\u{1F6A2}'.repeat(1000) },
  ]
  for (const changes of right) {
    const { status, body } = await ask(changes)
    t.equal(status, 201, name(changes))
    t.match(body.lease, changes)
    t.equal(base64(body.canonical_lease_base64).toString(), jcs(body.lease))
    t.equal(body.lease.recheck_by_ms, clock.now + Math.min(30_000, body.lease.ttl_s * 1000))
  }
})

t.test('a renewal makes the deadline of the same lease later, but never later than its end', async (t) => {
  const account = await harness.register()
  const granted = (await account.call('POST', '/v1/lease', { body: { ...TERMS, ttl_s: 50 } })).body
  const path = `/v1/lease/${granted.lease.lease_id}`
  for (const [after, deadline] of [
    [10_000, 40_000],
    [15_000, 50_000],
    [24_000, 50_000],
  ] as const) {
    clock.now += after
    const { status, body } = await account.call('POST', `${path}/renew`)
    t.equal(status, 200)
    const { issued_ms, recheck_by_ms, ...same } = body.lease
    t.match(granted.lease, same)
    t.equal(issued_ms, clock.now)
    t.equal(recheck_by_ms, granted.lease.granted_ms + deadline)
    const bytes = base64(body.canonical_lease_base64)
    t.equal(bytes.toString(), jcs(body.lease))
    t.ok(isSignedByLeaseKey(bytes, body.sig_ed25519_hex))
    t.match(body.attestation, { subject_sha256: sha256(bytes), label: 'lease.renewed', requested_by: 'lease' })
    const { attestation, ...stored } = body
    t.same((await account.call('GET', path)).body, stored)
    t.equal(stored.receipts.renewed, attestation.serial)
  }
  clock.now += 1000
  const late = await account.call('POST', `${path}/renew`)
  t.equal(late.status, 409)
  t.equal(codeOf(late), 'lease_ended')
  t.match((await account.call('GET', path)).body, { state: 'expired', revoked_ms: null })
})

t.test('a clock that is behind makes no deadline earlier', async (t) => {
  const account = await harness.register()
  const granted = (await account.call('POST', '/v1/lease', { body: TERMS })).body.lease
  clock.now += 10_000
  const ahead = (await account.call('POST', `/v1/lease/${granted.lease_id}/renew`)).body.lease
  clock.now -= 8000
  const behind = (await account.call('POST', `/v1/lease/${granted.lease_id}/renew`)).body.lease
  t.equal(behind.recheck_by_ms, ahead.recheck_by_ms)
  const revoked = (await account.call('POST', `/v1/lease/${granted.lease_id}/revoke`)).body
  t.equal(revoked.revoked_ms, ahead.issued_ms)
  clock.now += 8000
})

t.test('a revocation is signed, final, and the same in every answer of every process', async (t) => {
  const account = await harness.register({ handle: 'orsay' })
  const { lease } = (await account.call('POST', '/v1/lease', { body: TERMS })).body
  const path = `/v1/lease/${lease.lease_id}`
  clock.now += 1000
  const first = await account.call('POST', `${path}/revoke`)
  t.equal(first.status, 200)
  const { revocation, canonical_revocation_base64, sig_ed25519_hex, attestation } = first.body
  t.same(revocation, {
    v: 1,
    typ: 'lease_revocation',
    lease_id: lease.lease_id,
    account: 'orsay',
    agent: 'agent-7',
    action: 'pay',
    revoked_ms: clock.now,
    key_id: lease.key_id,
  })
  t.match(first.body, { lease_id: lease.lease_id, state: 'revoked', revoked_ms: clock.now })
  const bytes = base64(canonical_revocation_base64)
  t.equal(bytes.toString(), jcs(revocation))
  t.ok(isSignedByLeaseKey(bytes, sig_ed25519_hex))
  t.match(attestation, { subject_sha256: sha256(bytes), label: 'lease.revoked', requested_by: 'lease' })

  clock.now += 1000
  await using other = await harness.openApiProcess()
  for (const otherProcess of [harness, other]) {
    const again = await otherProcess.call('POST', `${path}/revoke`, { key: account.key })
    t.equal(again.status, 200)
    t.equal(again.bytes.toString(), first.bytes.toString())
  }
  t.equal(codeOf(await account.call('POST', `${path}/renew`)), 'lease_ended')
  const stored = (await account.call('GET', path)).body
  t.match(stored, { state: 'revoked', receipts: { revoked: attestation.serial } })
  t.match(verifyLease(stored, { keys, account: 'orsay', agent: 'agent-7', action: 'pay' }), { reason: 'ended' })
  t.equal((await leaseReceipts(attestation.subject_sha256)).length, 1)
})

t.test('an expired lease can be revoked, once', async (t) => {
  const account = await harness.register()
  const { lease } = (await account.call('POST', '/v1/lease', { body: { ...TERMS, ttl_s: 1 } })).body
  clock.now += 1000
  const first = await account.call('POST', `/v1/lease/${lease.lease_id}/revoke`)
  t.equal(first.status, 200)
  t.equal((await account.call('POST', `/v1/lease/${lease.lease_id}/revoke`)).bytes.toString(), first.bytes.toString())
})

t.test('the free tier has one active lease; an ended one does not count', async (t) => {
  const account = await harness.register()
  const grant = (ttl_s: number) => account.call('POST', '/v1/lease', { body: { ...TERMS, ttl_s } })
  t.equal((await grant(5)).status, 201)
  const second = await grant(5)
  t.equal(second.status, 403)
  t.match(second.body.error, { code: 'tier_limit', message: /active_leases.*free tier has 1/, retryable: false })
  clock.now += 4999
  t.equal((await grant(5)).status, 403)
  clock.now += 1
  const third = await grant(5)
  t.equal(third.status, 201, 'expired')
  await account.call('POST', `/v1/lease/${third.body.lease.lease_id}/revoke`)
  t.equal((await grant(5)).status, 201, 'revoked')
  t.match((await account.call('GET', '/v1/usage')).body.used, { active_leases: 1, receipts_today: 0 })
})

t.test('fifty concurrent grants on the free tier through two processes: exactly one succeeds', async (t) => {
  await using other = await harness.openApiProcess()
  const { key } = await harness.register()
  const before = (await leaseReceipts()).length
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => (n % 2 ? harness : other).call('POST', '/v1/lease', { key, body: TERMS })),
  )
  t.same(countBy(answers), { 201: 1, 403: 49 })
  t.equal((await leaseReceipts()).length, before + 1, 'refused grants have no receipt')
  t.equal((await harness.call('GET', '/v1/lease', { key })).body.leases.length, 1)
})

t.test('twenty concurrent revocations: one receipt, one answer', async (t) => {
  await using other = await harness.openApiProcess()
  const { key } = await harness.register()
  const { lease } = (await harness.call('POST', '/v1/lease', { key, body: TERMS })).body
  const path = `/v1/lease/${lease.lease_id}/revoke`
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => (n % 2 ? harness : other).call('POST', path, { key })),
  )
  t.same(countBy(answers), { 200: 20 })
  t.equal(new Set(answers.map((answer) => answer.bytes.toString())).size, 1)
  t.equal((await leaseReceipts(answers[0]?.body.attestation.subject_sha256)).length, 1)
})

t.test('concurrent renewals and a revocation: no renewal is in the chain after the revocation', async (t) => {
  await using other = await harness.openApiProcess()
  const { key } = await harness.register({ tier: 'pro' })
  for (let round = 0; round < 5; round++) {
    const { lease } = (await harness.call('POST', '/v1/lease', { key, body: TERMS })).body
    const ask = (verb: string, n: number) =>
      (n % 2 ? harness : other).call('POST', `/v1/lease/${lease.lease_id}/${verb}`, { key })
    const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => ask(n === 6 ? 'revoke' : 'renew', n)))
    const revoked = answers[6]?.body.attestation.serial
    t.equal(answers[6]?.status, 200)
    const renewals = answers.filter((answer, n) => n !== 6 && answer.status === 200)
    t.ok(renewals.every((answer) => answer.body.attestation.serial < revoked))
    t.equal(renewals.length + answers.filter((answer) => codeOf(answer) === 'lease_ended').length, 11)
    const stored = (await harness.call('GET', `/v1/lease/${lease.lease_id}`, { key })).body
    t.match(stored, { state: 'revoked', receipts: { revoked } })
  }
})

t.test('the verdict of the service on a lease', async (t) => {
  const account = await harness.register({ tier: 'pro' })
  const { lease } = (await account.call('POST', '/v1/lease', { body: { ...TERMS, ttl_s: 40 } })).body as {
    lease: Lease
  }
  const path = `/v1/lease/${lease.lease_id}`
  const ask = async (body?: object) => {
    const answer = await account.call('POST', `${path}/verify`, { body })
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('cache-control'), 'no-store')
    return verifyLeaseOperation.output.parse(answer.body)
  }
  const facts = {
    lease_id: lease.lease_id,
    agent: 'agent-7',
    action: 'pay',
    lim: TERMS.lim,
    expires_ms: lease.expires_ms,
  }
  const { recheck_by_ms } = lease
  const good = { ...facts, valid: true, reason: null, state: 'active', recheck_by_ms, server_now_ms: clock.now }
  t.same(await ask(), good)
  t.same(await ask({ agent: 'agent-7', action: 'pay' }), good)
  t.match(await ask({ agent: 'agent-8' }), { valid: false, reason: 'wrong_agent', state: 'active' })
  t.match(await ask({ agent: 'agent-7', action: '' }), { valid: false, reason: 'wrong_action' })
  clock.now = recheck_by_ms - 1
  t.match(await ask(), { valid: true })
  clock.now = recheck_by_ms
  t.match(await ask(), { valid: false, reason: 'recheck_passed', state: 'active' })
  await account.call('POST', `${path}/renew`)
  t.match(await ask(), { valid: true, recheck_by_ms: lease.expires_ms })
  clock.now = lease.expires_ms
  t.match(await ask(), { valid: false, reason: 'expired', state: 'expired' })
  t.match(await ask({ action: 'sell' }), { reason: 'wrong_action' }, 'another action is reported before the state')

  const second = (await account.call('POST', '/v1/lease', { body: TERMS })).body.lease as Lease
  await account.call('POST', `/v1/lease/${second.lease_id}/revoke`)
  const revoked = await account.call('POST', `/v1/lease/${second.lease_id}/verify`)
  t.match(revoked.body, { valid: false, reason: 'revoked', state: 'revoked' })
  for (const id of ['ls_00000000000000000000000000000000', 'x'])
    t.equal((await account.call('POST', `/v1/lease/${id}/verify`)).status, 404)
  t.equal((await account.call('POST', `${path}/verify`, { body: { agent: 7 } })).status, 400)
})

t.test('a rotation of the lease key reaches running processes, and old leases still verify', async (t) => {
  const seed = randomBytes(32)
  await using branch = await openAccountHarness({ SIGNING_SEED: seed.toString('hex') })
  await using idle = await branch.openApiProcess()
  const { chain, db } = branch.api
  const account = await branch.register({ tier: 'pro', handle: 'kelby' })
  const grant = async (otherProcess: { call: typeof idle.call }) =>
    (await otherProcess.call('POST', '/v1/lease', { key: account.key, body: TERMS })).body
  const published = async () => (await branch.call('GET', '/v1/keys')).body.keys as IntroducedKey[]
  const old = await grant(branch)
  const pinned = await published()
  const { retired, record } = await rotateKey(db, seed, 'lease', { origin: chain.origin, now: Date.now })
  t.equal(retired, old.lease.key_id)

  // The first act of each process after the rotation is signed again, because the batch detects the new key.
  const acts = await Promise.all([grant(idle), grant(branch), grant(branch)])
  for (const { lease } of acts) t.equal(lease.key_id, record.key_id)
  const renewed = (await idle.call('POST', `/v1/lease/${old.lease.lease_id}/renew`, { key: account.key })).body
  t.equal(renewed.lease.key_id, record.key_id, 'a renewal is signed with the new key')
  const revoked = (await branch.call('POST', `/v1/lease/${acts[0].lease.lease_id}/revoke`, { key: account.key })).body
  t.equal(revoked.revocation.key_id, record.key_id)

  const receiptKey = pinned.filter((key) => key.use === 'receipt')
  const leaseKeys = pinned.filter((key) => key.use === 'lease')
  const gateway = { account: 'kelby', agent: 'agent-7', action: 'pay', now: branch.clock.now }
  t.match(
    verifyLease(old, { ...gateway, keys: leaseKeys }),
    { ok: true },
    'a lease that was signed before still verifies',
  )
  t.match(verifyLease(renewed, { ...gateway, keys: leaseKeys }), { ok: false, reason: 'untrusted_key' })
  const followed = trustIntroduced(await published(), [...receiptKey, ...leaseKeys])
  for (const lease of [old, renewed, acts[1]]) t.match(verifyLease(lease, { ...gateway, keys: followed }), { ok: true })
  t.match(
    (await published()).filter((key) => key.use === 'lease'),
    [
      { status: 'retired', introduction: null },
      { status: 'active', introduction: { label: 'lease-key', requested_by: 'key-rotation' } },
    ],
  )
})

t.test('acts of one batch see the effect of earlier ones', async (t) => {
  const account = await harness.register()
  const { lease } = (await account.call('POST', '/v1/lease', { body: TERMS })).body as { lease: Lease }
  const { rows } = await harness.tables.query('select id from accounts where handle = $1', [account.handle])
  const { keys } = harness.api
  const about = { accountId: rows[0]?.id as string, leaseId: lease.lease_id, atMs: clock.now, keys }
  const key = keys.lease
  const dailyLimit = 5
  const granted = signGrant(account.handle, TERMS, clock.now, key)
  const grant = { ...about, act: 'grant', signed: granted, limit: 1, dailyLimit } as const
  const renewed = signRenewal(lease, clock.now, key) as Signed<Lease>
  const renew = { ...about, act: 'renew', signed: renewed, dailyLimit } as const
  const revoke = { ...about, act: 'revoke', signed: signRevocation(lease, clock.now, key) } as const
  const outcomes = await transact(harness.api.db, (tx) =>
    leaseActs.check(tx, [grant, renew, revoke, revoke, renew, grant, grant]),
  )
  t.same(
    outcomes.map((outcome) => outcome?.reason ?? 'done'),
    ['limit', 'done', 'done', 'repeat', 'ended', 'done', 'limit'],
  )
})

t.test('acts of one batch count against the day, and a revocation is never refused', async (t) => {
  const account = await harness.register()
  const { lease } = (await account.call('POST', '/v1/lease', { body: TERMS })).body as { lease: Lease }
  const { rows } = await harness.tables.query('select id from accounts where handle = $1', [account.handle])
  const { keys } = harness.api
  // The grant above was the first of three acts.
  const about = { accountId: rows[0]?.id as string, leaseId: lease.lease_id, atMs: clock.now, keys, dailyLimit: 3 }
  const signed = signRenewal(lease, clock.now, keys.lease) as Signed<Lease>
  const renew = { ...about, act: 'renew', signed } as const
  const revoke = { ...about, act: 'revoke', signed: signRevocation(lease, clock.now, keys.lease) } as const
  const outcomes = await transact(harness.api.db, (tx) => leaseActs.check(tx, [renew, renew, renew, revoke, revoke]))
  t.same(
    outcomes.map((outcome) => outcome?.reason ?? 'done'),
    ['done', 'done', 'daily_limit', 'done', 'repeat'],
  )
  const { used } = (await account.call('GET', '/v1/usage')).body
  t.equal(used.lease_acts_today, 4, 'refused acts are not counted')
})

t.test('lease acts of a free account are limited per day', async (t) => {
  const account = await harness.register()
  const grant = () => account.call('POST', '/v1/lease', { body: TERMS })
  const { lease_id } = (await grant()).body.lease
  const renew = () => account.call('POST', `/v1/lease/${lease_id}/renew`)
  const most = LIMITS.free.lease_acts_per_day
  const setDay = (acts: number) =>
    harness.tables.query(
      'update receipt_days set lease_acts = $1 where account_id = (select id from accounts where handle = $2)',
      [acts, account.handle],
    )
  await setDay(most - 2)
  const head = async () => (await harness.call('GET', '/v1/chain-head')).body.serial
  const before = await head()
  const statuses = (await Promise.all(Array.from({ length: 10 }, renew))).map(({ status }) => status)
  t.equal(statuses.filter((status) => status === 200).length, 2)
  t.equal(statuses.filter((status) => status === 429).length, 8)
  t.equal((await head()) - before, 2, 'a refused act leaves no receipt')
  const refused = await renew()
  t.match(refused.body.error, { code: 'daily_limit', message: `lease_acts_per_day: the free tier has ${most} a day` })
  const seconds = Number(refused.headers.get('retry-after'))
  t.ok(Math.abs(seconds - (86_400 - ((Date.now() / 1000) % 86_400))) < 60, `${seconds} s to the next UTC midnight`)
  t.equal((await account.call('POST', `/v1/lease/${lease_id}/revoke`)).status, 200, 'a revocation is never refused')
  t.match(await grant(), { status: 429, body: { error: { code: 'daily_limit' } } })
  t.equal((await account.call('GET', '/v1/usage')).body.used.lease_acts_today, most + 1)
  await harness.tables.query('update receipt_days set day = day - 1')
  t.equal((await grant()).status, 201, 'the count starts again the next day')
})

t.test('the list: newest first, in pages, with a filter for active leases', async (t) => {
  const account = await harness.register({ tier: 'pro' })
  const ids: string[] = []
  for (let n = 0; n < 5; n++) {
    clock.now += 1
    ids.unshift((await account.call('POST', '/v1/lease', { body: { ...TERMS, lim: `${n}` } })).body.lease.lease_id)
  }
  const list = async (query = '') => {
    const { status, body } = await account.call('GET', `/v1/lease${query}`)
    t.equal(status, 200)
    return { ids: body.leases.map((one: Answer['body']) => one.lease.lease_id) as string[], next: body.next }
  }
  t.same(await list(), { ids, next: null })
  t.same(await list('?limit=2'), { ids: ids.slice(0, 2), next: ids[1] })
  t.same(await list(`?limit=2&before=${ids[1]}`), { ids: ids.slice(2, 4), next: ids[3] })
  t.same(await list(`?limit=2&before=${ids[3]}`), { ids: ids.slice(4), next: null })
  t.same(await list('?before=ls_00000000000000000000000000000000'), { ids: [], next: null })
  await account.call('POST', `/v1/lease/${ids[2]}/revoke`)
  t.same(await list('?state=active'), { ids: ids.filter((id) => id !== ids[2]), next: null })
  clock.now += 600_000
  t.same((await list('?state=active')).ids, [])
  t.same((await list('?state=all')).ids, ids)
  for (const query of [
    '?limit=0',
    '?limit=1001',
    '?limit=x',
    '?limit=0x2',
    '?limit=1e1',
    '?limit=%203',
    '?limit=%2B3',
    '?state=expired',
    '?surprise=1',
  ])
    t.equal((await account.call('GET', `/v1/lease${query}`)).status, 400, query)
})

t.test('the chain of all these acts verifies', async (t) => {
  const { body } = await harness.call('GET', '/v1/chain')
  const { body: head } = await harness.call('GET', '/v1/chain-head')
  const { checks } = verifyChain(body.attestations, { keys, head, signatures: 'last' })
  t.same(
    checks.filter((check) => !check.ok),
    [],
  )
  t.ok(body.attestations.length > 50 && body.head_serial < 1000)
})
