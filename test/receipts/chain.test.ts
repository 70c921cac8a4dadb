// Appending to the chain: several processes, participants, lost connections, limits, and what the database refuses.
import { createPublicKey, randomBytes, verify } from 'node:crypto'
import { type AddressInfo, connect, createServer } from 'node:net'
import pg from 'pg'
import t from 'tap'
import { z } from 'zod'
import { BatchOverflowError } from '../../server/db/batch.ts'
import { openDatabase, sql } from '../../server/db/pool.ts'
import { type Appended, openChain, Refused } from '../../server/receipts/chain.ts'
import { attestationPreimage, canonicalJson, GENESIS, sha256 } from '../../server/receipts/format.ts'
import { findHead } from '../../server/receipts/head.ts'
import { openSigningKey } from '../../server/receipts/keys.ts'
import { openTestDatabase } from '../database.ts'
import { entry, ORIGIN, openTestLog } from './log.ts'

t.test('two processes append to one chain without gap or fork', async (t) => {
  await using log = await openTestLog({ processes: 2 })
  const chain = await log.append(400)
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
  t.match(await log.head(), { serial: 400, receipt_hash: prev })
  t.same(await log.read(), chain, 'the JSON text of the database is what was signed')
})

t.test('a refused entry gets no receipt, and the others of its batch do', async (t) => {
  await using log = await openTestLog()
  const written: string[] = []
  const kind = {
    check: async (_tx: unknown, items: string[]) => items.map((item) => (item === 'no' ? new Refused('no') : null)),
    apply: async (_tx: unknown, entries: { item: string }[]) => void written.push(...entries.map((e) => e.item)),
  }
  const { chain } = log.processes[0]!
  const ask = (items: string[]) =>
    Promise.all(items.map((item, n) => chain.append({ ...entry(n), participant: { kind, item } })))
  const outcomes = (answers: Awaited<ReturnType<typeof ask>>) =>
    answers.map((a) => (a instanceof Refused ? a.reason : a.attestation.serial))
  t.same(outcomes(await ask(['yes', 'no', 'also'])), [1, 'no', 2])
  t.same(outcomes(await ask(['no', 'no'])), ['no', 'no'], 'a batch of refusals only')
  t.same(written, ['yes', 'also'])
  t.equal((await log.head()).serial, 2)
})

t.test('a batch whose participant fails leaves nothing behind', async (t) => {
  await using log = await openTestLog()
  const kind = {
    check: async (_tx: unknown, items: string[]) => items.map(() => null),
    apply: async () => {
      throw new Error('the rows cannot be written')
    },
  }
  const { chain } = log.processes[0]!
  const both = await Promise.allSettled([
    chain.append({ ...entry(1), participant: { kind, item: 'x' } }),
    chain.append(entry(2)),
  ])
  t.same(
    both.map((one) => one.status),
    ['rejected', 'rejected'],
  )
  t.equal((await log.head()).serial, 0)
  t.match(await log.append(1), [{ serial: 1 }], 'and the next one is the first')
})

t.test('a connection that dies before the commit loses no receipt', async (t) => {
  await using log = await openTestLog()
  const admin = new pg.Client({ connectionString: log.url })
  await admin.connect()
  let tries = 0
  const kind = {
    check: async (_tx: unknown, items: string[]) => items.map(() => null),
    apply: async () => {
      if (tries++ > 0) return
      await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and state = 'idle in transaction'`)
    },
  }
  const appended = await log.processes[0]!.chain.append({ ...entry(1), participant: { kind, item: 'x' } })
  await admin.end()
  t.equal(tries, 2)
  t.match(appended, { attestation: { serial: 1 } })
  t.same(await log.read(), [(appended as Appended).attestation])
})

t.test('a commit whose answer is lost is not written again', async (t) => {
  await using log = await openTestLog()
  await using lossy = await openLossyConnection(log.url)
  await using opened = new AsyncDisposableStack()
  const db = await openDatabase(lossy.url, { maxConnections: 1 })
  opened.defer(() => db.end())
  await using chain = openChain(db, log.processes[0]!.signer, { origin: ORIGIN })
  await chain.append(entry(1))
  lossy.loseNextCommit()
  const appended = (await Promise.all([chain.append(entry(2)), chain.append(entry(3))])) as Appended[]
  t.equal(lossy.lost(), 1)
  const stored = await log.read()
  t.equal(stored.length, 3)
  t.same(
    appended.map((one) => one.attestation),
    stored.slice(1),
  )
})

/** A proxy to the database that can drop the server's answer to the next COMMIT and then break the connection. */
async function openLossyConnection(url: string) {
  const { hostname, port, searchParams } = new URL(url)
  const socketFolder = searchParams.get('host')
  const target = socketFolder
    ? { path: `${socketFolder}/.s.PGSQL.${port || 5432}` }
    : { host: hostname, port: Number(port || 5432) }
  let armed = false
  let lost = 0
  const proxy = createServer((client) => {
    const server = connect(target)
    let swallow = false
    client.on('data', (chunk) => {
      swallow ||= armed && chunk.includes('COMMIT')
      server.write(chunk)
    })
    server.on('data', (chunk) => {
      if (!swallow) return void client.write(chunk)
      armed = false
      lost++
      client.destroy()
      server.destroy()
    })
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  })
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening))
  const through = new URL(url)
  through.hostname = '127.0.0.1'
  through.port = String((proxy.address() as AddressInfo).port)
  return {
    url: through.href,
    loseNextCommit: () => {
      armed = true
    },
    lost: () => lost,
    [Symbol.asyncDispose]: () => new Promise<void>((closed) => void proxy.close(() => closed())),
  }
}

t.test('beyond the queue, appends are refused, and the others are made', async (t) => {
  await using log = await openTestLog()
  const chain = openChain(log.db, log.processes[0]!.signer, { origin: 'log.test', maxQueue: 4 })
  const all = await Promise.allSettled(Array.from({ length: 9 }, (_, n) => chain.append(entry(n))))
  const turned = all.filter((one) => one.status === 'rejected')
  t.equal(turned.length, 5)
  for (const { reason } of turned) t.ok(reason instanceof BatchOverflowError)
  t.equal((await log.head()).serial, 4)
})

t.test('a log keeps the name in its first checkpoint', async (t) => {
  await using log = await openTestLog({ origin: 'first.example' })
  await log.append(1)
  await using renamed = openChain(log.db, log.processes[0]!.signer, { origin: 'second.example' })
  await renamed.append(entry(2))
  t.match((await log.head()).checkpoint, /^first\.example\n2\n/)
})

t.test('receipts can be neither changed nor deleted', async (t) => {
  await using log = await openTestLog()
  await log.append(300)
  await log.rotate()
  const none = z.object({}).strict()
  for (const table of ['receipts', 'tree_nodes', 'signing_keys'])
    await t.rejects(log.db.query(sql.type(none)`delete from ${sql.identifier([table])}`), /append-only/, table)
  await t.rejects(log.db.query(sql.type(none)`update receipts set requested_by = 'x'`), /append-only/)
  await t.rejects(log.db.query(sql.type(none)`update tree_nodes set index = index + 1`), /append-only/)
  await t.rejects(log.db.query(sql.type(none)`truncate receipts cascade`), /append-only/)
  await t.rejects(log.db.query(sql.type(none)`truncate tree_nodes`), /append-only/)
  await t.rejects(log.db.query(sql.type(none)`update signing_keys set pubkey = sha256(pubkey)`), /only ended/)
  await t.rejects(
    log.db.query(sql.type(none)`update signing_keys set status = 'active', retired_at = null, last_serial = null
      where status = 'retired'`),
    /only ended/,
  )
})

t.test('the database refuses a receipt that does not follow the one before it', async (t) => {
  await using log = await openTestLog()
  await log.append(2)
  const insert = (serial: number, prevHash: ReturnType<typeof sql.fragment>) =>
    log.db.query(sql.type(z.object({}).strict())`
      insert into receipts select ${serial}, ts_ms, subject_sha256, label, requested_by, key_id,
        ${prevHash}, sha256(receipt_hash), sig_ed25519 from receipts where serial = 2`)
  await t.rejects(insert(3, sql.fragment`prev_hash`), /does not follow/, 'a fork')
  await t.rejects(insert(4, sql.fragment`receipt_hash`), /does not follow/, 'a gap')
  await t.rejects(insert(3, sql.fragment`null::bytea`), /null/i, 'no link')
  await t.rejects(insert(2, sql.fragment`receipt_hash`), /integrity|unique/i, 'another one of the same serial')
  await insert(3, sql.fragment`receipt_hash`)
  await log.damage('delete from receipts')
  const first = (prevHash: string) =>
    log.db.query(sql.type(z.object({}).strict())`
      insert into receipts (serial, ts_ms, subject_sha256, requested_by, key_id, prev_hash, receipt_hash, sig_ed25519)
      values (1, 1, sha256(''), 'tester', 1, decode(repeat(${prevHash}, 32), 'hex'), sha256('x'), decode(repeat('00', 64), 'hex'))`)
  await t.rejects(first('01'), /does not follow/, 'a first one that follows another')
  await first('00')
})

t.test('another seed is refused once a key is active', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  const seed = randomBytes(32)
  const first = await openSigningKey(db, seed, 'receipt')
  for (let starts = 0; starts < 3; starts++) t.same((await openSigningKey(db, seed, 'receipt')).keyId, first.keyId)
  t.equal((await openSigningKey(db, seed, 'lease')).keyId, first.keyId + 1, 'a start takes no number')
  await t.rejects(openSigningKey(db, randomBytes(32), 'receipt'), /not the active one/)
  t.equal((await findHead(db)).serial, 0)
  await db.end()
})
