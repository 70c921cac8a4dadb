// Damage that a superuser of the database can do: the audit finds each kind, and nothing is appended after it.
import t from 'tap'
import { auditChain, checkTail } from '../../server/receipts/audit.ts'
import { fillMiddles } from '../../server/receipts/blocks.ts'
import { openTestLog, type TestLog } from './log.ts'

const RECEIPTS = 600

/** Each is done alone to a sound chain of 601 receipts with a rotation at 301. The tail's check does not see `early` ones. */
const DAMAGE: Record<string, { sql: string; faults: string[]; early?: true }> = {
  'another subject': { sql: `update receipts set subject_sha256 = sha256('x') where serial = 590`, faults: ['hashes'] },
  'another label': { sql: `update receipts set label = 'another' where serial = 591`, faults: ['hashes'] },
  'a label where there was none': {
    sql: `update receipts set label = '' where label is null and serial > 590`,
    faults: ['hashes'],
  },
  'another requester': { sql: `update receipts set requested_by = 'else' where serial = 599`, faults: ['hashes'] },
  'another time': { sql: `update receipts set ts_ms = ts_ms + 1 where serial = 590`, faults: ['hashes', 'times'] },
  'another key': { sql: `update receipts set key_id = 1 where serial = 590`, faults: ['hashes', 'keys'] },
  'a checkpoint key': {
    sql: `update receipts set key_id = (select key_id from signing_keys where use = 'checkpoint') where serial = 590`,
    faults: ['keys'],
  },
  'another link': {
    sql: `update receipts set prev_hash = sha256('x') where serial = 590`,
    faults: ['links', 'hashes'],
  },
  'another hash': {
    sql: `update receipts set receipt_hash = sha256('x') where serial = 590`,
    faults: ['links', 'hashes', 'frontier', 'checkpoint'],
  },
  'another last hash': {
    sql: `update receipts set receipt_hash = sha256('x') where serial = 601`,
    faults: ['hashes', 'head', 'frontier', 'checkpoint'],
  },
  'another last signature': {
    sql: `update receipts set sig_ed25519 = set_byte(sig_ed25519, 40, (get_byte(sig_ed25519, 40) + 1) % 256) where serial = 601`,
    faults: ['signatures'],
  },
  'a receipt gone': {
    sql: `delete from receipts where serial = 590`,
    faults: ['serials', 'links', 'head', 'frontier', 'checkpoint'],
  },
  'the last receipt gone': {
    sql: `delete from receipts where serial = 601`,
    faults: ['head', 'frontier', 'checkpoint'],
  },
  'two receipts exchanged': {
    sql: `update receipts set serial = 10000 where serial = 590; update receipts set serial = 590 where serial = 591;
          update receipts set serial = 591 where serial = 10000`,
    faults: ['links', 'hashes', 'frontier', 'checkpoint'],
  },
  'a head that is behind': {
    sql: `update chain_head set serial = 600, frontier = substring(frontier from 1 for 128)`,
    faults: ['head', 'checkpoint'],
  },
  'another hash of the head': { sql: `update chain_head set receipt_hash = sha256('x')`, faults: ['head'] },
  'another time of the head': { sql: `update chain_head set ts_ms = ts_ms + 1`, faults: ['head'] },
  'another edge': {
    sql: `update chain_head set frontier = set_byte(frontier, 0, (get_byte(frontier, 0) + 1) % 256)`,
    faults: ['frontier'],
  },
  'another checkpoint': {
    sql: `update chain_head set checkpoint = replace(checkpoint, E'\\n601\\n', E'\\n602\\n')`,
    faults: ['checkpoint'],
  },
  'a checkpoint of another log': {
    sql: `update chain_head set checkpoint = replace(checkpoint, 'log.test', 'log.else')`,
    faults: ['checkpoint'],
  },
  'no checkpoint': { sql: `update chain_head set checkpoint = ''`, faults: ['checkpoint'] },
  'another public key': {
    sql: `update signing_keys set pubkey = set_byte(pubkey, 0, (get_byte(pubkey, 0) + 1) % 256) where use = 'receipt' and status = 'active'`,
    faults: ['hashes', 'introductions', 'signatures'],
  },
  'a range that is longer': {
    sql: `update signing_keys set first_serial = 303 where use = 'receipt' and status = 'active'`,
    faults: ['keys', 'introductions'],
  },
  'a node of the tree': { sql: `update tree_nodes set hash = sha256('x') where index = 1`, faults: ['tree'] },
  'a node of the tree gone': { sql: `delete from tree_nodes where index = 1`, faults: ['tree'] },
  'a node too many': { sql: `insert into tree_nodes values (8, 2, sha256('x'))`, faults: ['tree'], early: true },
  'a tile without its row': { sql: `delete from tile_middles where index = 0`, faults: [], early: true },
  'another hash half way up a tile': {
    sql: `update tile_middles set hashes = overlay(hashes placing sha256('x') from 32 * 15 + 1) where index = 1`,
    faults: ['tiles'],
    early: true,
  },
  'a row of a tile that is not full': {
    sql: `insert into tile_middles select level, 2, hashes from tile_middles where index = 1`,
    faults: ['tiles'],
    early: true,
  },
  'a row of a level without full tiles': {
    sql: `insert into tile_middles select 1, 0, hashes from tile_middles where index = 1`,
    faults: ['tiles'],
    early: true,
  },
  'something far back': {
    sql: `update receipts set label = 'another' where serial = 2`,
    faults: ['hashes'],
    early: true,
  },
}

async function openSound(): Promise<TestLog> {
  await using opened = new AsyncDisposableStack()
  const log = opened.use(await openTestLog())
  await log.append(RECEIPTS / 2)
  await log.rotate()
  await log.append(RECEIPTS / 2)
  await fillMiddles(log.db)
  opened.move()
  return log
}

t.test('a sound chain', async (t) => {
  await using log = await openSound()
  const seen: number[] = []
  const every = await auditChain(log.db, { signatures: 'every', onProgress: (serial) => seen.push(serial) })
  t.match(every, { from: 1, to: 601, signatures: 601 })
  t.same([...every.faults], [])
  t.same(seen, [601])
  const ends = await auditChain(log.db, { signatures: 'ends' })
  t.equal(ends.signatures, 2, 'the last of each key')
  t.equal(ends.faults.size, 0)
  await checkTail(log.db)
  await checkTail(log.db, 10)
})

t.test('an empty chain', async (t) => {
  await using log = await openTestLog()
  await checkTail(log.db)
  const { to, signatures, faults } = await auditChain(log.db, { signatures: 'every' })
  t.same({ to, signatures, faults: [...faults] }, { to: 0, signatures: 0, faults: [] })
})

t.test('a wrong signature in the middle is found only when every signature is checked', async (t) => {
  await using log = await openSound()
  await log.damage(`update receipts set sig_ed25519 = decode(repeat('00', 64), 'hex') where serial = 400`)
  t.equal((await auditChain(log.db, { signatures: 'ends' })).faults.size, 0)
  t.match([...(await auditChain(log.db, { signatures: 'every' })).faults], [['signatures', /^serial 400 /]])
})

const TABLES = ['receipts', 'tree_nodes', 'tile_middles', 'chain_head', 'signing_keys']
const keep = TABLES.map((table) => `create table kept_${table} as table ${table}`)
const restore = TABLES.flatMap((table) => [
  `delete from ${table}`,
  `insert into ${table} overriding system value select * from kept_${table}`,
])

t.test('every damage is found and named, and nothing is appended after it', async (t) => {
  await using log = await openSound()
  await log.damage(...keep)
  for (const [what, { sql, faults, early }] of Object.entries(DAMAGE)) {
    await log.damage(sql)
    const audit = await auditChain(log.db, { signatures: 'ends' })
    t.same([...audit.faults.keys()].sort(), faults.toSorted(), what)
    const start = checkTail(log.db, 100).then(
      () => 'starts',
      (error: Error) => error.message,
    )
    t.match(await start, early ? 'starts' : new RegExp(`nothing may be added to it. .*${faults[0]}: `), what)
    await log.damage(...restore)
  }
  t.equal((await auditChain(log.db, { signatures: 'every' })).faults.size, 0, 'all is as it was')
})
