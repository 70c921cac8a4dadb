// Checks over HTTP: the receipts of an account, whether the service made a receipt, whether a range of the chain is sound.
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import type { Attestation } from '../../server/interface/attestation.ts'
import { verifyChain, verifyReceipt } from '../../server/receipts/check-operations.ts'
import { attest, canonicalJson, sha256 } from '../../server/receipts/format.ts'
import { listReceipts } from '../../server/receipts/operations.ts'
import { rotateKey } from '../../server/receipts/rotation.ts'
import { type Account, openAccountHarness } from '../accounts/harness.ts'
import { entry } from './log.ts'

const seed = randomBytes(32)
const office = await openAccountHarness({ SIGNING_SEED: seed.toString('hex') })
t.teardown(() => office[Symbol.asyncDispose]())
const { chain, db } = office.api
const rotate = () => rotateKey(db, seed, 'receipt', { origin: chain.origin, now: Date.now })

async function submit(account: Account, n: number, label: string | null = null) {
  const subject_sha256 = createHash('sha256').update(`${account.handle} ${n}`).digest('hex')
  const { status, body } = await account.call('POST', '/v1/receipt', { body: { subject_sha256, label } })
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body as { attestation: Attestation; inclusion: { hashes: string[]; tree_size: number }; checkpoint: string }
}

async function scrutinize(body: unknown) {
  const answer = await office.call('POST', '/v1/receipt/verify', { body })
  t.equal(answer.status, 200)
  return verifyReceipt.output.parse(answer.body)
}

async function failing(body: unknown) {
  const { valid, checks } = await scrutinize(body)
  const names = checks.filter(({ ok }) => !ok).map(({ name }) => name)
  t.equal(valid, names.length === 0)
  return names
}

t.test('an account lists its own receipts, newest first, in pages', async (t) => {
  const [account, other] = [await office.register({ tier: 'pro' }), await office.register()]
  const made: Attestation[] = []
  for (let n = 0; n < 5; n++) {
    made.unshift((await submit(account, n, n % 2 ? `n ${n} "caf\u00e9" \\ \u{1F600}` : null)).attestation)
    await submit(other, n)
  }
  const list = async (query = '') => {
    const answer = await account.call('GET', `/v1/receipt${query}`)
    t.equal(answer.status, 200)
    return listReceipts.output.parse(answer.body)
  }
  t.same(await list(), { receipts: made, next: null })
  t.same(await list('?limit=2'), { receipts: made.slice(0, 2), next: made[1]!.serial })
  t.same(await list(`?limit=2&before=${made[1]!.serial}`), { receipts: made.slice(2, 4), next: made[3]!.serial })
  t.same(await list(`?limit=2&before=${made[3]!.serial}`), { receipts: made.slice(4), next: null })
  t.same(await list('?limit=5'), { receipts: made, next: null })
  t.same(await list('?before=1'), { receipts: [], next: null })
  await account.call('POST', '/v1/lease', { body: { agent: 'a', action: 'b', ttl_s: 60, lim: '' } })
  t.same((await list()).receipts, made, 'receipts of leases are not among them')
  for (const query of ['?limit=0', '?limit=1001', '?limit=x', '?before=0', '?before=x'])
    t.equal((await account.call('GET', `/v1/receipt${query}`)).status, 400, query)
})

t.test('no label and the label null are the same body of an idempotency key', async (t) => {
  const account = await office.register()
  const subject_sha256 = 'ab'.repeat(32)
  const send = (body: object, key: string) =>
    account.call('POST', '/v1/receipt', { body, headers: { 'idempotency-key': key } })
  const bodies = [{ subject_sha256 }, { subject_sha256, label: null }]
  for (const [key, [first, second]] of [
    ['k1', bodies],
    ['k2', bodies.toReversed()],
  ] as const) {
    const made = await send(first!, key)
    t.equal(made.status, 201)
    const again = await send(second!, key)
    t.equal(again.status, 200)
    t.same(again.body.attestation, made.body.attestation)
    t.equal((await send({ subject_sha256, label: '' }, key)).status, 409, 'an empty label is another body')
  }
})

t.test('a receipt of the service is valid, alone and with its proof', async (t) => {
  const account = await office.register({ tier: 'pro' })
  const first = await submit(account, 1, 'a "label" \u{1F600}')
  const retired = first.attestation.key_id
  await rotate()
  const second = await submit(account, 2)
  t.not(second.attestation.key_id, retired)
  for (const receipt of [first, second]) {
    t.same(await failing({ attestation: receipt.attestation }), [])
    t.same(await failing(receipt), [])
  }
  const later = (await office.call('GET', `/v1/receipt/${first.attestation.serial}`)).body
  t.same(await failing(later), [], 'with a proof in the tree of now')
  const { checks } = await scrutinize(later)
  t.same(
    checks.map(({ name }) => name),
    ['form', 'receipt_hash', 'key', 'signature', 'chain', 'inclusion', 'checkpoint'],
  )
})

t.test('the answer for a wrong receipt names the check that failed', async (t) => {
  const account = await office.register({ tier: 'pro' })
  const receipt = await submit(account, 1, 'label')
  const { attestation: a, inclusion, checkpoint } = receipt
  const other = (await submit(account, 2)).attestation
  const not = (hex: string) => `${hex.slice(0, -1)}${hex.endsWith('0') ? '1' : '0'}`
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const forger = {
    keyId: a.key_id,
    privateKey,
    publicKeyHex: publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex'),
  }
  const fields = {
    subjectSha256: a.subject_sha256,
    label: 'label',
    requestedBy: account.handle,
    prevHash: a.prev_hash,
    tsMs: a.ts_ms,
  }
  const forged = attest({ ...fields, serial: a.serial }, forger)
  const beyond = attest({ ...fields, serial: 1_000_000 }, forger)
  const cases: [what: string, given: object, names: string[]][] = [
    ['another subject', { ...a, subject_sha256: not(a.subject_sha256) }, ['receipt_hash', 'signature', 'chain']],
    ['another label', { ...a, label: null }, ['receipt_hash', 'signature', 'chain']],
    ['another hash', { ...a, receipt_hash: not(a.receipt_hash) }, ['receipt_hash', 'chain']],
    ['another signature', { ...a, sig_ed25519_hex: not(a.sig_ed25519_hex) }, ['signature', 'chain']],
    ['of another serial', { ...a, serial: other.serial }, ['receipt_hash', 'signature', 'chain']],
    ['a key of another service', forged, ['key', 'signature', 'chain']],
    [
      'a key of another use',
      { ...a, key_id: office.api.keys.lease.keyId },
      ['receipt_hash', 'key', 'signature', 'chain'],
    ],
    ['the first key, retired long ago', { ...a, key_id: 1 }, ['receipt_hash', 'key', 'signature', 'chain']],
    ['beyond the head', beyond, ['key', 'signature', 'chain']],
    ['an extra member', { ...a, proof: 1 }, ['form', 'receipt_hash', 'key', 'signature', 'chain']],
    ['nothing in it', {}, ['form', 'receipt_hash', 'key', 'signature', 'chain']],
  ]
  for (const [what, attestation, names] of cases) t.same(await failing({ attestation }), names, what)

  t.same(await failing({ attestation: a, inclusion: { ...inclusion, leaf_index: 0 } }), ['inclusion'])
  t.same(await failing({ attestation: a, inclusion: { ...inclusion, hashes: [] } }), ['inclusion'])
  t.same(await failing({ attestation: a, inclusion: { ...inclusion, extra: 1 } }), ['inclusion'])
  for (const tree_size of [0, a.serial - 1, 1e9, 1.5, 'x', null])
    t.same(
      await failing({ attestation: a, inclusion: { ...inclusion, tree_size } }),
      ['inclusion'],
      `size ${tree_size}`,
    )
  t.same(await failing({ attestation: other, inclusion }), ['inclusion'], "another receipt's proof")
  const lines = checkpoint.split('\n')
  const altered = [
    '',
    'x',
    checkpoint.slice(0, -2),
    checkpoint.replace(/\n\d+\n/, '\n1\n'),
    checkpoint.replace(/\n\d+\n/, '\n99999999\n'),
    [...lines.slice(0, 4), `\u2014 somebody ${randomBytes(68).toString('base64')}`, ''].join('\n'),
    `other.log${checkpoint.slice(checkpoint.indexOf('\n'))}`,
  ]
  for (const given of altered) t.same(await failing({ attestation: a, checkpoint: given }), ['checkpoint'], given)
})

t.test('the envelope of a purchase belongs to its attestation', async (t) => {
  const envelope = { type: 'service.source-verification.purchase', version: 1, note: 'caf\u00e9' }
  const bytes = Buffer.from(canonicalJson(envelope))
  const appended = await chain.append({ ...entry(0), subjectSha256: sha256(bytes) })
  if (!('attestation' in appended)) throw new Error('it was refused')
  const purchase = {
    envelope,
    canonical_envelope_base64: bytes.toString('base64'),
    attestation: appended.attestation,
    verification: 'as the docs say',
  }
  t.same(await failing(purchase), [])
  t.same(await failing({ ...purchase, envelope: { ...envelope, version: 2 } }), ['envelope'])
  const other = Buffer.from(canonicalJson({ ...envelope, version: 2 })).toString('base64')
  t.same(await failing({ ...purchase, canonical_envelope_base64: other }), ['envelope', 'envelope_digest'])
  t.same(await failing({ ...purchase, envelope: undefined, canonical_envelope_base64: other }), ['envelope_digest'])
  t.same(await failing({ ...purchase, canonical_envelope_base64: '*' }), ['envelope', 'envelope_digest'])
  t.same(await failing({ ...purchase, envelope: { lone: '\ud800' } }), ['envelope'])
  const shapeless = await scrutinize({ ...purchase, attestation: {} })
  t.notOk(
    shapeless.checks.some(({ ok }) => ok),
    'what could not be checked is not good',
  )
})

t.test('what is said of a wrong form is well-formed Unicode, wherever it is cut', async (t) => {
  const { attestation } = await submit(await office.register(), 1)
  for (const before of ['', 'a']) {
    const { checks } = await scrutinize({ attestation: { ...attestation, [before + '🚢'.repeat(400)]: 1 } })
    for (const { name, detail = '' } of checks) t.ok(detail.isWellFormed(), `${name}: ${detail.slice(-4)}`)
  }
})

t.test('an input that is no receipt is refused', async (t) => {
  for (const body of [{}, { attestation: 'x' }, { attestation: null }, { attestation: {}, surprise: 1 }])
    t.equal((await office.call('POST', '/v1/receipt/verify', { body })).status, 400, JSON.stringify(body))
})

const range = async (query = '') => {
  const answer = await office.call('GET', `/v1/chain/verify${query}`)
  t.equal(answer.status, 200, query)
  return verifyChain.output.parse(answer.body)
}

t.test('the chain is sound, over a rotation and a page', async (t) => {
  for (let n = 0; n < 3; n++) await Promise.all(Array.from({ length: 300 }, (_, k) => chain.append(entry(n * 300 + k))))
  await rotate()
  await Promise.all(Array.from({ length: 300 }, (_, k) => chain.append(entry(k))))
  const { serial } = (await office.call('GET', '/v1/chain-head')).body
  const sound = { head_serial: serial, valid: true, first_fault: null }
  t.same(await range(), { from: 1, to: 1000, ...sound, receipts: 1000, signatures_checked: 1000 })
  const last = { from: serial - 600, to: serial, ...sound, receipts: 601, signatures_checked: 601 }
  t.same(await range(`?from=${serial - 600}`), last)
  t.same(await range('?from=7&to=7'), { from: 7, to: 7, ...sound, receipts: 1, signatures_checked: 1 })
  t.same(await range(`?from=${serial + 5}`), {
    from: serial + 5,
    to: serial + 4,
    ...sound,
    receipts: 0,
    signatures_checked: 0,
  })
  for (const query of ['?from=0', '?from=5&to=4', '?from=1&to=1001', '?to=x'])
    t.equal((await office.call('GET', `/v1/chain/verify${query}`)).status, 400, query)
})

t.test('the first fault of a range is named', async (t) => {
  const client = new pg.Client({ connectionString: office.api.databaseUrl })
  await client.connect()
  await client.query('set session_replication_role = replica')
  await client.query('create table kept as select * from receipts')
  const { serial: head } = (await office.call('GET', '/v1/chain-head')).body
  const damage = async (statement: string) => {
    await client.query(statement)
    const found = await range('?from=101&to=700')
    await client.query('delete from receipts')
    await client.query('insert into receipts select * from kept')
    t.notOk(found.valid, statement)
    return found.first_fault
  }
  t.match(await damage(`update receipts set label = 'x' where serial in (650, 300)`), { serial: 300, check: 'hashes' })
  t.match(
    await damage(
      'update receipts set sig_ed25519 = (select sig_ed25519 from kept where serial = 5) where serial = 444',
    ),
    {
      serial: 444,
      check: 'signatures',
    },
  )
  t.match(await damage('update receipts set ts_ms = 1 where serial = 200'), { serial: 200, check: 'times' })
  t.match(await damage(`update receipts set prev_hash = sha256('x') where serial = 101`), {
    serial: 101,
    check: 'links',
  })
  t.match(await damage('update receipts set key_id = 1 where serial = 500'), { serial: 500, check: 'hashes' })
  t.match(await damage('delete from receipts where serial = 350'), { serial: 351, check: 'serials' })
  t.match(await damage('delete from receipts where serial = 700'), { serial: 700, check: 'serials' })
  t.match(await damage('delete from receipts where serial = 100'), { serial: 101, check: 'links' })
  await client.query(`update receipts set receipt_hash = sha256('x') where serial = ${head}`)
  t.match((await range(`?from=${head}`)).first_fault, { serial: head })
  await client.end()
})
