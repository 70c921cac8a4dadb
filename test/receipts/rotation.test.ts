// Key rotation while processes sign.
import t from 'tap'
import { verifyChain } from '../../client/verification.ts'
import { transact } from '../../server/db/pool.ts'
import { linkReceipts } from '../../server/receipts/chain.ts'
import { attest, canonicalJson, sha256 } from '../../server/receipts/format.ts'
import { advanceHead, lockHead } from '../../server/receipts/head.ts'
import { deriveKey, listKeys } from '../../server/receipts/keys.ts'
import { loadKeys } from '../../server/receipts/signer.ts'
import { entry, ORIGIN, openTestLog, type TestLog } from './log.ts'

const keysOf = ({ db }: TestLog) => transact(db, listKeys, { readOnly: true })
const failing = (verification: ReturnType<typeof verifyChain>) => verification.checks.filter(({ ok }) => !ok)

t.test('a rotation reaches every process with its next receipt', async (t) => {
  await using log = await openTestLog({ processes: 2 })
  const before = await log.append(10)
  const first = before[0]!.key_id
  const { record, introduction, retired } = await log.rotate()
  t.equal(retired, first)
  t.match(introduction, { serial: 11, key_id: first, requested_by: 'key-rotation', label: 'receipt-key' })
  t.equal(introduction.prev_hash, before[9]!.receipt_hash)
  t.equal(introduction.subject_sha256, sha256(canonicalJson(record)))
  t.match(record, { use: 'receipt', first_serial: 12, pubkey_hex: deriveKey(log.seed, 'receipt', 2).publicKeyHex })
  const after = await log.append(10)
  for (const attestation of after)
    t.match(attestation, { key_id: record.key_id, pubkey_hex: record.pubkey_hex }, `serial ${attestation.serial}`)
  const [old, next] = (await keysOf(log)).filter((key) => key.use === 'receipt')
  t.match(old, { key_id: first, status: 'retired', first_serial: 1, last_serial: 11, introduced_by: null })
  t.match(next, { key_id: record.key_id, status: 'active', first_serial: 12, last_serial: null, introduced_by: 11 })
})

t.test('rotating a key of another use reaches every process and changes no other key', async (t) => {
  await using log = await openTestLog({ processes: 2 })
  await log.append(2)
  const held = () => log.processes.map(({ signer }) => [signer.held.lease.keyId, signer.held.webhook.keyId])
  const [before] = held()
  const [lease, webhook] = before!
  t.same(held(), [before, before])
  const { record, introduction } = await log.rotate('webhook')
  t.match(introduction, { label: 'webhook-key', subject_sha256: sha256(canonicalJson(record)) })
  t.match(record, { use: 'webhook', first_serial: null })
  t.same(held(), [before, before], 'until they write again')
  await log.append(2)
  t.same(held(), [
    [lease, record.key_id],
    [lease, record.key_id],
  ])
  t.not(record.key_id, webhook)
})

t.test('processes that start later know the key in force', async (t) => {
  await using log = await openTestLog()
  await log.rotate()
  const { record } = await log.rotate()
  await using later = await openTestLog()
  t.not(later.seed, log.seed)
  const keys = await transact(log.db, (tx) => loadKeys(tx, log.seed), { readOnly: true })
  t.match(keys.receipt, { keyId: record.key_id, publicKeyHex: record.pubkey_hex })
  await t.rejects(
    transact(log.db, (tx) => loadKeys(tx, later.seed), { readOnly: true }),
    /not the active one/,
  )
})

t.test('a client that pinned the first key can follow every rotation', async (t) => {
  await using log = await openTestLog({ processes: 2 })
  await log.append(5)
  for (let n = 0; n < 3; n++) {
    await log.rotate()
    await log.append(n === 1 ? 0 : 4)
  }
  const chain = await log.read()
  const { serial, receipt_hash, checkpoint } = await log.head()
  const head = { serial, receipt_hash }
  const [first, second] = (await keysOf(log)).filter((key) => key.use === 'receipt')
  const pins = [{ key_id: first!.key_id, pubkey_hex: first!.pubkey_hex }]
  t.equal(new Set(chain.map((one) => one.key_id)).size, 4)
  for (const signatures of ['every', 'last'] as const)
    t.same(failing(verifyChain(chain, { keys: pins, head, checkpoint, signatures })), [])
  t.same(failing(verifyChain(chain, { keys: await keysOf(log), head })), [], 'with every key and its range')
  const late = [{ key_id: second!.key_id, pubkey_hex: second!.pubkey_hex }]
  t.match(failing(verifyChain(chain, { keys: late, head }))[0], { name: 'trusted_keys', detail: /^serial 1: / })
})

t.test('rotations under load lose nothing', async (t) => {
  await using log = await openTestLog({ processes: 2 })
  const loads = Array.from({ length: 8 }, () => log.append(40))
  await Promise.all([...loads, log.rotate(), log.rotate(), log.rotate('checkpoint')])
  const chain = await log.read()
  t.equal(chain.length, 323)
  const pins = [{ key_id: chain[0]!.key_id, pubkey_hex: chain[0]!.pubkey_hex }]
  t.same(failing(verifyChain(chain, { keys: pins, signatures: 'last' })), [])
})

t.test('a batch signed with a retired key does not commit', async (t) => {
  await using log = await openTestLog()
  await log.append(3)
  const stale = await transact(log.db, (tx) => loadKeys(tx, log.seed), { readOnly: true })
  await log.rotate()
  const head = await log.head()
  const write = transact(log.db, async (tx) =>
    advanceHead(tx, await linkReceipts(await lockHead(tx), stale, [entry(1)], { origin: ORIGIN, now: Date.now })),
  )
  await t.rejects(write, /not in force/)
  t.same(await log.head(), head)
  t.match(await log.append(1), [{ serial: 5 }])
})

t.test('a batch signed with an unregistered key does not commit', async (t) => {
  await using log = await openTestLog()
  const known = await transact(log.db, (tx) => loadKeys(tx, log.seed), { readOnly: true })
  const lease = { ...deriveKey(log.seed, 'lease', 1), keyId: known.checkpoint[0]!.keyId }
  const write = transact(log.db, async (tx) => {
    const links = await linkReceipts(await lockHead(tx), { ...known, receipt: lease }, [entry(1)], {
      origin: ORIGIN,
      now: Date.now,
    })
    t.match(
      links.attestations[0],
      attest({ ...entry(1), serial: 1, prevHash: '0'.repeat(64), tsMs: links.attestations[0]!.ts_ms }, lease),
    )
    return advanceHead(tx, links)
  })
  await t.rejects(write, /not in force/)
})

t.test(
  'a checkpoint key is introduced by a receipt, and its predecessor signs on until the next rotation',
  async (t) => {
    await using log = await openTestLog()
    await log.append(1)
    const signers = async () => (await log.head()).checkpoint.split('\n\n')[1]!.trimEnd().split('\n').length
    t.equal(await signers(), 1)
    const { record, introduction } = await log.rotate('checkpoint')
    t.match(introduction, { label: 'checkpoint-key', requested_by: 'key-rotation' })
    t.match(record, { use: 'checkpoint', first_serial: null })
    t.equal(await signers(), 1, 'the receipt that introduces it is covered by the old key alone')
    const [after] = await log.append(1)
    t.equal(await signers(), 2)
    t.equal(after!.key_id, introduction.key_id, 'receipts go on with their own key')
    await log.rotate('checkpoint')
    await log.append(1)
    t.equal(await signers(), 2)
    t.same(
      (await keysOf(log)).filter((key) => key.use === 'checkpoint').map(({ status }) => status),
      ['retired', 'retired', 'active'],
    )
  },
)
