// The client's methods against the real service: an account from its registration to its last slot.
import { hash, randomUUID } from 'node:crypto'
import t from 'tap'
import { Countersign, CountersignError } from '../../client/client.ts'
import { verifyLease } from '../../client/lease.ts'
import { verifyReceipt } from '../../client/verification.ts'
import { type ApiHarness, openApiHarness } from '../api-harness.ts'

async function openAccount({ url }: ApiHarness) {
  const handle = `h-${randomUUID()}`
  const { api_key } = await new Countersign({ baseUrl: url('/') }).register({ handle })
  return { handle, service: new Countersign({ baseUrl: url('/'), apiKey: api_key }) }
}

t.test('an account, through the client alone', async (t) => {
  await using harness = await openApiHarness()
  const { handle, service } = await openAccount(harness)
  const { keys } = await service.getKeys()

  const granted = await service.grantLease({ agent: 'shopper', action: 'pay', lim: 'usd<=5', ttl_s: 60 })
  const terms = { keys, account: handle, agent: 'shopper', action: 'pay' }
  t.match(verifyLease(granted, terms), { ok: true })
  const { lease_id } = granted.lease
  t.equal((await service.verifyLease({ lease_id, agent: 'other' })).reason, 'wrong_agent')
  t.equal((await service.listLeases({ state: 'all', limit: 1 })).leases[0]?.lease.lease_id, lease_id)
  t.equal((await service.revokeLease({ lease_id })).state, 'revoked')
  const ended: unknown = await service.renewLease({ lease_id }).catch((error) => error)
  t.match(ended, { status: 409, retryable: false })

  const subject_sha256 = hash('sha256', 'evidence')
  const receipt = await service.createReceipt({ subject_sha256, label: 'mine' }, { idempotencyKey: 'once' })
  t.same(await service.createReceipt({ subject_sha256, label: 'mine' }, { idempotencyKey: 'once' }), receipt)
  const { vkey } = await service.getChainHead()
  t.ok(verifyReceipt(receipt, { keys, vkey }).ok)
  t.ok((await service.verifyReceipt(receipt)).valid)
  t.ok((await service.verifyChain({ from: 1 })).valid)
  t.ok((await service.getChain({ from: 1, to: 2 })).attestations.length > 0)

  const webhook_url = harness.site.url('/hook')
  const made = await service.putWatchdog({ name: 'nightly', interval_s: 60, webhook_url })
  t.match(made.webhook_secret, /^whsec_/)
  t.equal((await service.sendHeartbeat({ name: 'nightly', note: 'fine' })).state, 'up')
  t.equal((await service.pauseWatchdog({ name: 'nightly', paused: true })).state, 'paused')
  t.same((await service.listAlerts({ name: 'nightly' })).alerts, [])
  t.equal(await service.deleteWatchdog({ name: 'nightly' }), undefined)

  const data = new Uint8Array([0, 1, 255])
  const slot = await service.putJournalSlot({ slot: 'state', data }, { ifNoneMatch: '*' })
  t.equal(slot.sha256, hash('sha256', data))
  const kept = await service.getJournalSlot({ slot: 'state' })
  t.same(kept.data, data)
  t.equal(await service.getJournalSlot({ slot: 'state' }, { ifNoneMatch: kept.etag }), null)
  const taken = await service.putJournalSlot({ slot: 'state', data }, { ifNoneMatch: '*' }).catch((error) => error)
  t.match(taken, { code: 'precondition_failed', status: 412 })
  t.ok(taken instanceof CountersignError)
  await service.deleteJournalSlot({ slot: 'state' }, { ifMatch: kept.etag })

  const second = await service.createApiKey({ kind: 'read_only', label: 'reader' })
  t.equal((await service.listApiKeys()).api_keys.length, 2)
  t.equal((await service.revokeApiKey({ id: second.id })).id, second.id)
  t.match(await service.getUsage(), { handle, tier: 'free', used: { receipts_today: 1 } })
  t.equal((await service.createCheckout({ tier: 'dev' })).mode, 'simulated')
})

t.test('what is public needs no key', async (t) => {
  await using harness = await openApiHarness()
  const service = new Countersign({ baseUrl: harness.url('/') })
  const { price, methodology_version } = await service.getCapabilities()
  t.equal(price.usd, '0.03')
  t.equal((await service.getMethodology({ version: methodology_version })).in_force, true)
  t.ok((await service.getRiskFlags()).risk_flags.length > 0)
  await t.rejects(service.getUsage(), { code: 'api_key_missing' })
  const stranger = new Countersign({ baseUrl: harness.url('/'), apiKey: 'ctk_unknown' })
  await t.rejects(stranger.getUsage(), { code: 'unauthenticated', status: 401, retryable: false })
})
