// The reader of the chain: proofs from cached tiles, cached pages, and a head that is never older than the call.
import { createHash } from 'node:crypto'
import t from 'tap'
import type { Database } from '../../server/db/pool.ts'
import { proveConsistency, proveReceipt, storedNodes } from '../../server/receipts/archive.ts'
import { auditChain } from '../../server/receipts/audit.ts'
import { fillMiddles } from '../../server/receipts/blocks.ts'
import { findHead } from '../../server/receipts/head.ts'
import { openReader } from '../../server/receipts/reader.ts'
import { growTree } from '../../server/receipts/tree.ts'
import { query } from '../system.ts'
import { openTestLog, type TestLog } from './log.ts'
import { referenceTree } from './rfc6962.ts'

const leafOf = (serial: number) => createHash('sha256').update(`leaf ${serial}`).digest()
const hex = (hashes: Buffer[]) => hashes.map((hash) => hash.toString('hex'))

/** A tree over receipts of which only the hashes are correct. */
async function plant(log: TestLog, size: number) {
  const tree = growTree(0, Buffer.alloc(0))
  for (let serial = 1; serial <= size; serial++) tree.append(leafOf(serial))
  const nodes = tree
    .made()
    .map(({ level, index, hash }) => `(${level}, ${index}, decode('${hash.toString('hex')}', 'hex'))`)
  await log.damage(
    `insert into receipts (serial, ts_ms, subject_sha256, requested_by, key_id, prev_hash, receipt_hash, sig_ed25519)
     select n, 1, sha256(''), 'tester', 1, sha256(('before ' || n)::bytea), sha256(('leaf ' || n)::bytea),
            decode(repeat('00', 64), 'hex') from generate_series(1, ${size}) n`,
    `insert into tree_nodes (level, index, hash) values ${nodes.join(', ')}`,
    `update chain_head set serial = ${size}, receipt_hash = sha256('leaf ${size}'),
       frontier = decode('${tree.frontier().toString('hex')}', 'hex'), checkpoint = 'x'`,
  )
}

/** Leaves of the larger planted tree: a full tile of the second level, and some beside it. */
const LEAVES = 65_536 + 700
const reference = referenceTree(Array.from({ length: LEAVES }, (_, n) => leafOf(n + 1)))

const middlesOf = ({ url }: TestLog) =>
  query(url, `select level, index::int, encode(hashes, 'hex') hashes from tile_middles order by level, index`)

t.test('a tree with full tiles of two levels, and more', async (t) => {
  const SIZE = LEAVES
  await using log = await openTestLog()
  await plant(log, SIZE)

  await t.test('proofs from its tiles', async (t) => {
    await using reader = openReader(log.db)
    const head = await reader.head()
    t.equal(head.serial, SIZE)
    const edges = [
      1,
      2,
      255,
      256,
      257,
      511,
      512,
      513,
      32_768,
      65_535,
      65_536,
      65_537,
      65_792,
      66_047,
      66_048,
      66_049,
      SIZE,
    ]
    for (const size of edges.filter((size) => size > 250)) {
      for (const serial of edges.filter((serial) => serial <= size)) {
        const { hashes } = await proveReceipt(reader.nodes(head), serial, size)
        t.same(hashes, hex(reference.path(serial - 1, size)), `serial ${serial} in ${size}`)
      }
      const old = edges.find((one) => one * 3 > size)!
      const expected = hex(reference.proof(old, size))
      t.same(await proveConsistency(reader.nodes(head), old, size), expected, `${old} to ${size}`)
      t.same(await proveConsistency(storedNodes(log.db), old, size), expected)
    }
  })

  await t.test('the hashes half way up full tiles are those of the tree, and proofs from them the same', async (t) => {
    const { db } = log
    t.equal(await fillMiddles(db, { maxRunMs: 0 }), 0, 'a run without time makes nothing')
    t.equal(await fillMiddles(db), 256 + 2 + 1)
    t.equal(await fillMiddles(db), 0)
    const rootsOf = (level: number, index: number) => {
      const width = 16 * 256 ** level
      return Array.from({ length: 16 }, (_, n) => {
        const from = (index * 16 + n) * width
        return reference.root(from + width, from).toString('hex')
      }).join('')
    }
    const stored = await middlesOf(log)
    t.same(
      stored,
      stored.map(({ level, index }) => ({ level, index, hashes: rootsOf(Number(level), Number(index)) })),
    )
    // What is read for each proof: every 97th receipt and both sides of every edge of a tile, each by a process that keeps nothing yet.
    const serials = new Set(Array.from({ length: SIZE / 97 }, (_, n) => n * 97 + 1))
    for (let edge = 256; edge <= SIZE; edge += 256 * 16) for (const at of [edge, edge + 1]) serials.add(at)
    await using reader = openReader(db)
    const head = await reader.head()
    const prove = (serial: number) => proveReceipt(reader.nodes(head), serial, SIZE)
    const wrong = []
    for (const [n, { hashes }] of (await Promise.all([...serials].map(prove))).entries()) {
      const serial = [...serials][n]!
      if (hashes.join() !== hex(reference.path(serial - 1, SIZE)).join()) wrong.push(serial)
    }
    t.same(wrong, [])
  })
})

t.test('a tree of full tiles', async (t) => {
  // So many fill a tile of the second level too, and no node is left beside full tiles.
  const SIZE = 65_536
  await using log = await openTestLog()
  await plant(log, SIZE)

  await t.test('tiles that callers need at the same time come by few queries', async (t) => {
    const TILES = 20
    let queries = 0
    const db: Database = {
      ...log.db,
      any: (query) => {
        if (query.sql.includes('tree_nodes')) queries++
        return log.db.any(query)
      },
    }
    await using reader = openReader(db)
    const head = await reader.head()
    const serials = Array.from({ length: TILES }, (_, tile) => tile * 256 + 7)
    const proofs = await Promise.all(serials.map((serial) => proveReceipt(reader.nodes(head), serial, head.serial)))
    t.same(
      proofs.map(({ hashes }) => hashes),
      serials.map((serial) => hex(reference.path(serial - 1, head.serial))),
    )
    t.ok(queries > 0 && queries < TILES / 2, `${queries} queries for ${TILES} tiles`)
  })

  await t.test('with the hashes half way up a proof reads sixteen receipts of a tile, without them all', async (t) => {
    const prove = async (serial: number) => {
      await using reader = openReader(log.db)
      return (await proveReceipt(reader.nodes(await reader.head()), serial, SIZE)).hashes
    }
    const expected = (serial: number) => hex(reference.path(serial - 1, SIZE))
    const gone = `delete from receipts where serial = 513`
    t.same(await prove(700), expected(700), 'no row yet')
    await fillMiddles(log.db)
    await log.damage('create table kept as select * from receipts where serial = 513', gone)
    t.same(await prove(700), expected(700), 'the receipt that is gone is not read')
    await log.damage('delete from tile_middles where level = 0 and index = 2')
    await t.rejects(prove(700), /has a hole/)
    await log.damage('insert into receipts select * from kept')
    t.same(await prove(700), expected(700), 'a row that is gone')
  })
})

t.test('a tile that is not full is not cached', async (t) => {
  await using log = await openTestLog()
  await using reader = openReader(log.db)
  for (const count of [200, 50, 10, 300]) {
    await log.append(count)
    const head = await reader.head()
    const leaves = (await log.read()).map((one) => Buffer.from(one.receipt_hash, 'hex'))
    const reference = referenceTree(leaves)
    for (const serial of [1, 100, 256, head.serial].filter((serial) => serial <= head.serial))
      t.same(
        (await proveReceipt(reader.nodes(head), serial, head.serial)).hashes,
        hex(reference.path(serial - 1, head.serial)),
        `serial ${serial} of ${head.serial}`,
      )
  }
})

t.test('missing rows are an error, which is not cached', async (t) => {
  await using log = await openTestLog()
  const chain = await log.append(300)
  await using reader = openReader(log.db)
  const head = await reader.head()
  const prove = () => proveReceipt(reader.nodes(head), 7, 300)
  await log.damage(
    'create table kept as select * from receipts where serial = 9',
    'delete from receipts where serial = 9',
  )
  await t.rejects(prove(), /has a hole/)
  await log.damage('insert into receipts select * from kept')
  const reference = referenceTree(chain.map((one) => Buffer.from(one.receipt_hash, 'hex')))
  t.same((await prove()).hashes, hex(reference.path(6, 300)))
})

t.test('one query serves callers at the same time, and none gets a head older than its call', async (t) => {
  await using log = await openTestLog()
  await using reader = openReader(log.db)
  const [appended] = await log.append(1)
  const all = await Promise.all(Array.from({ length: 50 }, () => reader.head()))
  t.equal(new Set(all).size, 1)
  t.equal(all[0]?.receipt_hash, appended!.receipt_hash)
  for (let n = 0; n < 30; n++) {
    const under = reader.head()
    await log.append(1)
    t.ok((await reader.head()).serial >= (await findHead(log.db)).serial)
    await under
  }
  const serials = [3, 1, 99, 3, 31]
  const found = await Promise.all(serials.map((serial) => reader.attestation(serial)))
  const stored = await log.read()
  t.same(
    found,
    serials.map((serial) => stored[serial - 1] ?? null),
  )
})

t.test('a row that does not follow from the receipts is not used', async (t) => {
  await using log = await openTestLog()
  const chain = await log.append(600)
  const reference = referenceTree(chain.map((one) => Buffer.from(one.receipt_hash, 'hex')))
  await fillMiddles(log.db)
  await log.damage(
    `update tile_middles set hashes = overlay(hashes placing sha256('x') from 32 * 5 + 1) where index = 1`,
    'update tile_middles set hashes = (select hashes from tile_middles where index = 1) where index = 0',
  )
  await using reader = openReader(log.db)
  const head = await reader.head()
  for (const serial of [1, 100, 256, 257, 350, 500, 600])
    t.same(
      (await proveReceipt(reader.nodes(head), serial, 600)).hashes,
      hex(reference.path(serial - 1, 600)),
      `serial ${serial}`,
    )
})

t.test('tiles that fill while rows are made, by two processes at once, get their rows in order', async (t) => {
  await using log = await openTestLog({ processes: 2 })
  const [one, other] = log.processes
  await log.append(300)
  // Without a row, as after the release before has appended.
  await log.append(500)
  const made = await Promise.all([fillMiddles(one!.db), log.append(300), fillMiddles(other!.db)])
  t.ok(Number(made[0]) + Number(made[2]) >= 3)
  await fillMiddles(log.db)
  t.same(
    (await middlesOf(log)).map(({ level, index }) => [level, index]),
    [0, 1, 2, 3].map((index) => [0, index]),
  )
  t.same([...(await auditChain(log.db, { signatures: 'ends' })).faults], [])
})

t.test('a receipt that was read is kept, and that there is none is not', async (t) => {
  await using log = await openTestLog()
  await using reader = openReader(log.db)
  t.equal(await reader.attestation(1), null)
  const [made] = await log.append(1)
  t.same(await reader.attestation(1), made)
  await log.damage('delete from receipts')
  t.same(await reader.attestation(1), made)
})

t.test('keys of checkpoints are read again when the head says that keys have changed', async (t) => {
  await using log = await openTestLog()
  await using reader = openReader(log.db)
  const head = await reader.head()
  const keys = await reader.checkpointKeys(head)
  t.equal(keys.length, 1)
  await log.damage(`delete from signing_keys where use = 'checkpoint'`)
  t.same(await reader.checkpointKeys(head), keys)
  t.same(await reader.checkpointKeys({ ...head, key_changes: head.key_changes + 1 }), [])
})
