// An audit from outside: the command line exports the whole chain of a service with rotations over HTTP, and the client and a
// script of Python's standard library and OpenSSL, which shares no code with this project, verify it.
import { randomBytes } from 'node:crypto'
import { readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { rotateKey } from '../../server/receipts/rotation.ts'
import { audit, withoutAuditor } from '../auditor.ts'
import { countersign } from '../client/command-line.ts'
import { LONG } from '../long.ts'
import { type System, startSystem } from '../system.ts'
import { entry } from './log.ts'

const RECEIPTS = LONG ? 10_000 : 2400
const ROTATED_AT = [500, 1700]
/** The receipt whose signature is changed. */
const CHANGED = 2000

async function fill(system: System, seed: Buffer, count: number) {
  const { chain, db } = system.service.api
  let made = 0
  for (const until of [...ROTATED_AT, count]) {
    while (made < until) {
      const group = Array.from({ length: Math.min(500, until - made) }, (_, n) => chain.append(entry(made + n)))
      made += (await Promise.all(group)).length
    }
    if (made < count) await rotateKey(db, seed, 'receipt', { origin: chain.origin, now: Date.now })
  }
}

t.test(`an export of ${RECEIPTS} receipts with two rotations`, async (t) => {
  const seed = randomBytes(32)
  await using system = await startSystem({ env: { SIGNING_SEED: seed.toString('hex') } })
  await fill(system, seed, RECEIPTS - ROTATED_AT.length)
  const { keys } = (await (await fetch(system.url('/v1/keys'))).json()) as {
    keys: { key_id: number; use: string; pubkey_hex: string; vkey: string | null }[]
  }
  const first = keys.find((key) => key.use === 'receipt')!
  const pin = `${first.key_id}:${first.pubkey_hex}`
  const vkey = keys.find((key) => key.vkey)!.vkey!
  const folder = t.testdir({})
  const file = join(folder, 'chain.jsonl')

  const exported = await countersign(['export', system.service.address, file])
  t.match(exported, { code: 0, stderr: '' })
  const whole = await readFile(file)

  await t.test('an export that was cut off continues, with the same bytes', async (t) => {
    // In the middle of a line, at the end of one, and in the header.
    const lineEnd = whole.indexOf('\n', whole.length / 2) + 1
    for (const size of [lineEnd + 1234, lineEnd, 50]) {
      const part = join(folder, `part-${size}.jsonl`)
      await writeFile(part, whole)
      await truncate(part, size)
      t.match(await countersign(['export', system.service.address, part]), { code: 0, stdout: exported.stdout })
      t.ok((await readFile(part)).equals(whole), `cut off at ${size}`)
    }
    t.match(
      await countersign(['export', system.service.address, file]),
      { code: 0, stdout: exported.stdout },
      'and when it is complete',
    )
    t.equal((await stat(file)).size, whole.length)
    const older = join(folder, 'older.jsonl')
    const third = `3:${JSON.parse(whole.toString().split('\n')[3]!).receipt_hash}`
    await countersign(['export', system.service.address, older, '--head', third])
    const again = await countersign(['export', system.service.address, older])
    t.match(again, { code: 0, stdout: `${third}\n`, stderr: `The chain has ${RECEIPTS - 3} more by now.` })
  })

  await t.test('is verified by the client, with the first key alone', async (t) => {
    const head = exported.stdout.trim()
    const every = await countersign(['verify', file, '--pin', pin, '--vkey', vkey, '--head', head])
    t.match(every, { code: 0, stdout: /good\n$/ }, every.stdout)
    const last = await countersign(['verify', file, '--pin', pin, '--last-signature'])
    t.match(last, { code: 0, stdout: /ok {3}signatures: only the last/ })
  })

  await t.test('is verified by Python and OpenSSL', { skip: withoutAuditor }, async (t) => {
    const listed = join(folder, 'keys.json')
    await writeFile(listed, JSON.stringify({ keys }))
    const good = await audit(file, '--pin', pin, '--vkey', vkey, '--keys', listed, '--head', exported.stdout.trim())
    t.match(
      good,
      { code: 0, stdout: new RegExp(`^good: ${RECEIPTS} receipts, 3 keys; ${RECEIPTS} signatures by `) },
      good.stdout + good.stderr,
    )
  })

  await t.test('both verifiers find one changed byte', { skip: withoutAuditor }, async (t) => {
    const at = whole.indexOf('"sig_ed25519_hex":"', whole.indexOf(`{"v":1,"serial":${CHANGED},`)) + 20
    const changed = Buffer.from(whole)
    changed[at] = changed[at] === 0x31 ? 0x32 : 0x31
    const part = join(folder, 'changed.jsonl')
    await writeFile(part, changed)
    const [ours, theirs] = await Promise.all([
      countersign(['verify', part, '--pin', pin, '--vkey', vkey]),
      audit(part, '--pin', pin, '--vkey', vkey),
    ])
    t.match(ours, { code: 1, stdout: new RegExp(`^FAIL signatures: serial ${CHANGED}: `, 'm') }, ours.stdout)
    t.match(theirs, { code: 1, stderr: `BAD serial ${CHANGED}: signatures\n` }, theirs.stderr)
  })

  await t.test('does not overwrite a file that is no export', async (t) => {
    const other = join(folder, 'other.txt')
    await writeFile(other, 'precious\n')
    t.match(await countersign(['export', system.service.address, other]), { code: 2, stderr: /Cannot use / })
    t.equal(await readFile(other, 'utf8'), 'precious\n')
    const pinned = await countersign(['export', system.service.address, file, '--head', `1:${'0'.repeat(64)}`])
    t.match(pinned, { code: 2, stderr: /another head/ })
  })

  await t.test('ends at the given head, or fails', async (t) => {
    const third = JSON.parse(whole.toString().split('\n')[3]!)
    const part = join(folder, 'three.jsonl')
    const head = `3:${third.receipt_hash}`
    t.match(await countersign(['export', system.service.address, part, '--head', head]), {
      code: 0,
      stdout: `${head}\n`,
    })
    t.match(await countersign(['verify', part, '--pin', pin, '--head', head]), { code: 0 })
    const elsewhere = join(folder, 'elsewhere.jsonl')
    const wrong = await countersign(['export', system.service.address, elsewhere, '--head', `3:${'0'.repeat(64)}`])
    t.match(wrong, { code: 1, stderr: /does not lead to the pinned head/ })
  })
})
