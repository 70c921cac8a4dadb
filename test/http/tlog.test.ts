// The log as tools of transparency logs read it. The tests recompute everything from the receipts with node:crypto, by the
// definitions of C2SP signed-note and tlog-tiles, and use no code of the service.
import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import t from 'tap'
import { isContinued, isIncluded } from '../../client/verification.ts'
import { parseTile } from '../../server/http/tlog.ts'
import { rotateKey } from '../../server/receipts/rotation.ts'
import { referenceTree } from '../receipts/rfc6962.ts'
import { startSystem } from '../system.ts'

const SEED = randomBytes(32)
const system = await startSystem({ env: { SIGNING_SEED: SEED.toString('hex'), BASE_URL: 'https://verify.example/' } })
t.teardown(() => system[Symbol.asyncDispose]())
const at = (path: string) => new URL(path, system.service.address)

const digest = (text: string) => createHash('sha256').update(text).digest()
const append = (count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, n) =>
      system.service.api.chain.append({
        subjectSha256: digest(`${n}`).toString('hex'),
        label: null,
        requestedBy: 'tester',
      }),
    ),
  )

async function json(path: string) {
  const response = await fetch(at(path))
  if (response.status !== 200) throw new Error(`${path}: ${response.status}`)
  return response.json() as Promise<never>
}

async function bytes(path: string) {
  const response = await fetch(at(path))
  if (response.status !== 200) throw new Error(`${path}: ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}

/** Verifies a signed-note: lines of known keys are checked, all others are ignored. */
function openNote(note: string, vkey: string): string {
  const [, name = '', id, key = ''] = vkey.match(/^(.*?)\+(.*?)\+(.*)$/s)!
  const [type, ...raw] = Buffer.from(key, 'base64')
  const text = note.slice(0, note.lastIndexOf('\n\n') + 1)
  const publicKey = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(raw).toString('base64url') },
    format: 'jwk',
  })
  const keyHash = createHash('sha256')
    .update(`${name}\n`)
    .update(Buffer.of(type!, ...raw))
    .digest('hex')
    .slice(0, 8)
  if (type !== 1 || keyHash !== id) throw new Error('the verifier key is not what it says')
  for (const line of note
    .slice(text.length + 1)
    .trimEnd()
    .split('\n')) {
    const [dash, signer, signature = ''] = line.split(' ')
    const blob = Buffer.from(signature, 'base64')
    if (dash !== '\u2014' || signer !== name || blob.subarray(0, 4).toString('hex') !== id) continue
    if (verify(null, Buffer.from(text), publicKey, blob.subarray(4))) return text
  }
  throw new Error('not signed by the key')
}

await append(700)
const chain = await page(1, 700)
const leaves = chain.map((one) => Buffer.from(one.receipt_hash, 'hex'))
const reference = referenceTree(leaves)

async function page(from: number, to: number) {
  const { attestations } = await json(`/v1/chain?from=${from}&to=${to}`)
  return attestations as { serial: number; receipt_hash: string }[]
}

t.test('the checkpoint is a signed note over the tree of all receipts', async (t) => {
  const response = await fetch(at('/checkpoint'))
  t.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8')
  t.equal(response.headers.get('cache-control'), 'no-store')
  const note = await response.text()
  const { vkey, checkpoint } = (await json('/v1/chain-head')) as { vkey: string; checkpoint: string }
  t.equal(note, checkpoint)
  const published = (await json('/v1/keys')) as { keys: { use: string; vkey: string | null }[] }
  t.same(
    published.keys.filter((key) => key.vkey !== null).map(({ use, vkey }) => ({ use, vkey })),
    [{ use: 'checkpoint', vkey }],
  )
  t.equal(openNote(note, vkey), `verify.example\n700\n${reference.root(700).toString('base64')}\n`)
  t.throws(() => openNote(note.replace('700', '701'), vkey), /not signed/)
})

t.test('tiles hold the right hashes and never change', async (t) => {
  const leafHash = (n: number) => reference.root(n + 1, n)
  const tiles: [path: string, expected: Buffer[]][] = [
    ['/tile/0/000', Array.from({ length: 256 }, (_, n) => leafHash(n))],
    ['/tile/0/001', Array.from({ length: 256 }, (_, n) => leafHash(256 + n))],
    ['/tile/0/002.p/188', Array.from({ length: 188 }, (_, n) => leafHash(512 + n))],
    ['/tile/0/002.p/7', Array.from({ length: 7 }, (_, n) => leafHash(512 + n))],
    ['/tile/1/000.p/2', [reference.root(256), reference.root(512, 256)]],
    ['/tile/1/000.p/1', [reference.root(256)]],
  ]
  for (const [path, expected] of tiles) {
    const response = await fetch(at(path))
    t.equal(response.status, 200, path)
    t.equal(response.headers.get('content-type'), 'application/octet-stream')
    t.match(response.headers.get('cache-control'), /max-age=31536000, immutable/)
    t.ok(Buffer.from(await response.arrayBuffer()).equals(Buffer.concat(expected)), path)
  }
})

t.test('entries are the receipt hashes, and hash to the leaves', async (t) => {
  const bundle = await bytes('/tile/entries/002.p/188')
  const entries: Buffer[] = []
  for (let at = 0; at < bundle.length; at += 2 + bundle.readUInt16BE(at))
    entries.push(bundle.subarray(at + 2, at + 2 + bundle.readUInt16BE(at)))
  t.same(entries, leaves.slice(512))
  t.equal((await bytes('/tile/entries/000')).length, 256 * 34)
})

t.test('a tile that does not exist, or is spelled differently, is 404', async (t) => {
  const paths = [
    '0/002',
    '0/003',
    '0/002.p/189',
    '0/002.p/0',
    '0/002.p/256',
    '0/002.p/07',
    '0/000.p/256',
    '1/000',
    '1/000.p/3',
    '2/000.p/1',
    '63/000.p/1',
    '64/000',
    '00/000',
    '0/0',
    '0/00',
    '0/0000',
    '0/x000/000',
    '0/x001',
    '0/x001/234',
    '0/x01/234',
    '0/000/',
    '0/-01',
    '0/000.p',
    'entries/003',
    'entries/002',
    'entry/000',
    '0/999',
    `0/${'x999/'.repeat(40)}999`,
    '0/000.p/1x',
    '',
  ]
  for (const path of paths) t.equal((await fetch(at(`/tile/${path}`))).status, 404, path)
})

t.test('tile paths are parsed strictly', async (t) => {
  t.same(parseTile('0/x001/x234/067'), { level: 0, index: 1_234_067, width: 256 })
  t.same(parseTile('63/000.p/255'), { level: 63, index: 0, width: 255 })
  t.same(parseTile('entries/x001/000.p/9'), { level: 'entries', index: 1000, width: 9 })
})

t.test('proofs of inclusion and consistency verify', async (t) => {
  const head = { tree_size: 700, root_hash: reference.root(700).toString('hex') }
  for (const serial of [1, 2, 255, 256, 257, 512, 513, 699, 700]) {
    const found = await json(`/v1/receipt/${serial}`)
    const { inclusion } = found as { inclusion: { leaf_index: number; tree_size: number; hashes: string[] } }
    t.same(
      inclusion.hashes,
      reference.path(serial - 1, 700).map((hash) => hash.toString('hex')),
    )
    t.ok(isIncluded(chain[serial - 1]!.receipt_hash, inclusion, head), `serial ${serial}`)
    for (const size of [serial, Math.min(700, serial + 5), 512].filter((size) => size >= serial)) {
      const older = (await json(`/v1/receipt/${serial}?tree_size=${size}`)) as { inclusion: typeof inclusion }
      t.same(
        older.inclusion.hashes,
        reference.path(serial - 1, size).map((hash) => hash.toString('hex')),
        `in ${size}`,
      )
    }
  }
  for (const from of [1, 2, 3, 128, 255, 256, 257, 511, 512, 600, 699, 700]) {
    const { hashes } = (await json(`/v1/consistency?from=${from}`)) as { hashes: string[] }
    t.same(
      hashes,
      reference.proof(from, 700).map((hash) => hash.toString('hex')),
    )
    t.ok(
      isContinued({ tree_size: from, root_hash: reference.root(from).toString('hex') }, head, hashes),
      `from ${from}`,
    )
  }
  for (const path of ['/v1/receipt/701', '/v1/receipt/5?tree_size=4'])
    t.equal((await fetch(at(path))).status, 404, path)
  for (const path of [
    '/v1/receipt/5?tree_size=701',
    '/v1/consistency?from=5&to=4',
    '/v1/consistency?from=5&to=701',
    '/v1/consistency?from=0',
  ])
    t.equal((await fetch(at(path))).status, 400, path)
})

t.test('after a rotation of the checkpoint key, the note verifies with the old and the new key', async (t) => {
  const old = ((await json('/v1/chain-head')) as { vkey: string }).vkey
  await rotateKey(system.service.api.db, SEED, 'checkpoint', { origin: 'verify.example', now: Date.now })
  await append(1)
  const head = (await json('/v1/chain-head')) as { vkey: string; checkpoint: string }
  t.not(head.vkey, old)
  t.equal(openNote(head.checkpoint, old), openNote(head.checkpoint, head.vkey))
  t.match(head.checkpoint, /^verify\.example\n702\n/)
})

t.test('an empty log has no checkpoint and no tiles', async (t) => {
  await using empty = await startSystem()
  for (const path of ['/checkpoint', '/tile/0/000', '/tile/0/000.p/1', '/tile/entries/000.p/1'])
    t.equal((await fetch(empty.url(path))).status, 404, path)
})
