import { createPublicKey, randomBytes, verify } from 'node:crypto'
import t from 'tap'
import { z } from 'zod'
import { openDatabase, sql } from '../../server/db/pool.ts'
import { type Appended, findHead, openChain, Refused } from '../../server/receipts/chain.ts'
import { attestationPreimage, canonicalJson, GENESIS, sha256 } from '../../server/receipts/format.ts'
import { openSigningKey } from '../../server/receipts/keys.ts'
import { openSigner } from '../../server/receipts/signer.ts'
import { openTestDatabase } from '../database.ts'

async function openSequencers(count: number) {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await openTestDatabase())
  const seed = randomBytes(32)
  const open = async () => {
    const db = await openDatabase(database.url, { maxConnections: 2 })
    opened.defer(() => db.end())
    const signer = await openSigner(db, seed)
    return { db, chain: opened.use(openChain(db, signer, { origin: 'test/log' })) }
  }
  const sequencers = await Promise.all(Array.from({ length: count }, open))
  const closing = opened.move()
  return { url: database.url, sequencers, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

const entry = (n: number) => ({
  subjectSha256: sha256(`subject ${n}`),
  label: n % 2 ? `n ${n} "é"` : null,
  requestedBy: 'me',
})

t.test('two processes append to one chain without gap or fork', async (t) => {
  await using set = await openSequencers(2)
  const appended = await Promise.all(
    Array.from({ length: 400 }, (_, n) => set.sequencers[n % 2]?.chain.append(entry(n))),
  )
  const chain = appended.map((a) => (a as Appended).attestation).sort((a, b) => a.serial - b.serial)
  let prev = GENESIS
  for (const [index, a] of chain.entries()) {
    if (a.serial !== index + 1 || a.prev_hash !== prev) t.fail(`broken at ${index + 1}`)
    const { receipt_hash, sig_ed25519_hex, ...rest } = a
    if (attestationPreimage(rest) !== canonicalJson(rest)) t.fail(`preimage of ${a.serial} is not canonical`)
    if (sha256(canonicalJson(rest)) !== receipt_hash) t.fail(`hash of ${a.serial}`)
    const key = createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(a.pubkey_hex, 'hex').toString('base64url') },
      format: 'jwk',
    })
    if (!verify(null, Buffer.from(canonicalJson(rest)), key, Buffer.from(sig_ed25519_hex, 'hex')))
      t.fail(`signature of ${a.serial}`)
    prev = receipt_hash
  }
  const { db } = set.sequencers[0] as (typeof set.sequencers)[0]
  t.match(await findHead(db), { serial: 400, receipt_hash: prev })
})

t.test('a refused companion gets no receipt, and the others of its batch do', async (t) => {
  await using set = await openSequencers(1)
  const { chain, db } = set.sequencers[0] as (typeof set.sequencers)[0]
  const written: string[] = []
  const kind = {
    admit: async (_tx: unknown, items: string[]) => items.map((item) => (item === 'no' ? new Refused('no') : null)),
    write: async (_tx: unknown, entries: { item: string }[]) => void written.push(...entries.map((e) => e.item)),
  }
  const answers = await Promise.all(
    ['yes', 'no', 'also'].map((item, n) => chain.append({ ...entry(n), companion: { kind, item } })),
  )
  t.same(
    answers.map((a) => (a instanceof Refused ? a.reason : a.attestation.serial)),
    [1, 'no', 2],
  )
  t.same(written, ['yes', 'also'])
  t.equal((await findHead(db)).serial, 2)
})

t.test('receipts can be neither changed nor deleted', async (t) => {
  await using set = await openSequencers(1)
  const { chain, db } = set.sequencers[0] as (typeof set.sequencers)[0]
  await chain.append(entry(1))
  const none = z.object({}).strict()
  await t.rejects(db.query(sql.type(none)`update receipts set requested_by = 'x'`), /append-only/)
  await t.rejects(db.query(sql.type(none)`delete from receipts`), /append-only/)
  await t.rejects(db.query(sql.type(none)`truncate receipts cascade`), /append-only/)
})

t.test('another seed is refused once a key is active', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  const seed = randomBytes(32)
  const first = await openSigningKey(db, seed, 'receipt')
  t.same((await openSigningKey(db, seed, 'receipt')).keyId, first.keyId)
  await t.rejects(openSigningKey(db, randomBytes(32), 'receipt'), /not the active one/)
  await db.end()
})
