// The client's verifier and an independent one (test/auditor.py: Python's standard library, OpenSSL) see the same file in the
// same way, good or bad.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { type Attestation, verifyExport } from '../../client/verification.ts'
import { issueCheckpoint, issueExport, issueLog, issueReceipt, issuerKey, VKEY } from './log-issuer.ts'

async function run(command: string, args: string[]) {
  const child = spawn(command, args)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}
const missing = async (command: string, argument: string) =>
  run(command, [argument]).then(
    ({ code }) => code !== 0,
    () => true,
  )
const skip = (await missing('python3', '--version')) || (await missing('openssl', 'version'))

const { chain, keys } = issueLog([9, 12, 8], [null, 'caf\u00e9 "quoted" \\ \u{1F600}\u2028\u007e'])
const pin = { key_id: keys[0]!.key_id, pubkey_hex: keys[0]!.pubkey_hex }
const checkpoint = issueCheckpoint(chain)

type Change = (chain: Attestation[]) => Attestation[]
const at = (serial: number, change: Partial<Attestation>): Change => {
  return (chain) => chain.with(serial - 1, { ...chain[serial - 1]!, ...change })
}
/** Signed anew from there on, so that nothing but the wanted fault is left. */
const resigned = (serial: number, change: Partial<Attestation>, key = keys[0]!): Change => {
  return (chain) => chain.slice(0, serial - 1).concat(issueReceipt({ ...chain[serial - 1]!, ...change }, key))
}

const CHANGES: [named: string, Change][] = [
  ['receipt_hashes', at(15, { label: 'forged' })],
  ['receipt_hashes', at(1, { ts_ms: 1 })],
  ['signatures', at(30, { sig_ed25519_hex: chain[0]!.sig_ed25519_hex })],
  ['trusted_keys', at(3, { key_id: 77 })],
  ['trusted_keys', at(3, { pubkey_hex: issuerKey(77).pubkey_hex })],
  ['serials', (chain) => chain.toSpliced(4, 1)],
  ['serials', (chain) => chain.toSpliced(4, 0, chain[4]!)],
  ['links', at(20, { prev_hash: chain[0]!.receipt_hash })],
  ['times', resigned(5, { ts_ms: 1, ts_utc: '1970-01-01T00:00:00.001Z' })],
  ['attested_times', resigned(5, { ts_utc: '2026-01-01T00:00:00Z' })],
  ['key_changes', resigned(11, { key_id: keys[0]!.key_id, pubkey_hex: keys[0]!.pubkey_hex })],
  ['key_changes', resigned(11, { key_id: 77, pubkey_hex: issuerKey(77).pubkey_hex }, issuerKey(77))],
  ['trusted_keys', resigned(5, { key_id: 77, pubkey_hex: issuerKey(77).pubkey_hex }, issuerKey(77))],
  ['head', (chain) => chain.slice(0, -1)],
]

t.test('the two verifiers agree', { skip }, async (t) => {
  const folder = t.testdir({})
  const header = issueExport(chain).split('\n')[0]
  const both = async (name: string, receipts: Attestation[]) => {
    const file = join(folder, `${name}.jsonl`)
    const content = `${[header, ...receipts.map((one) => JSON.stringify(one))].join('\n')}\n`
    await writeFile(file, content)
    const ours = await verifyExport([Buffer.from(content)] as never, { keys: [pin], vkey: VKEY })
    const script = join(import.meta.dirname, '../auditor.py')
    const theirs = await run('python3', [script, file, '--pin', `${pin.key_id}:${pin.pubkey_hex}`, '--vkey', VKEY])
    return { ours, theirs }
  }
  const { ours, theirs } = await both('good', chain)
  t.equal(ours.ok, true)
  t.match(theirs, { code: 0, stdout: /^good: 31 receipts, 3 keys; / }, theirs.stderr)
  for (const [index, [named, change]] of CHANGES.entries()) {
    const { ours, theirs } = await both(`change-${index}`, change(chain))
    const failed = ours.checks.filter(({ ok }) => !ok).map(({ name }) => name)
    t.ok(failed.includes(named), `client: ${named} among ${failed}`)
    t.match(theirs, { code: 1, stderr: new RegExp(`^BAD .*${named}`) })
  }
})

t.test('and about the checkpoint', { skip }, async (t) => {
  const folder = t.testdir({})
  const script = join(import.meta.dirname, '../auditor.py')
  const notes: [good: boolean, note: string][] = [
    [true, checkpoint],
    [true, issueCheckpoint(chain, [issuerKey(2), issuerKey(55)])],
    [false, issueCheckpoint(chain, [issuerKey(55)])],
    [false, issueCheckpoint(chain.toReversed())],
    [false, issueCheckpoint(chain, undefined, 30)],
  ]
  for (const [index, [good, note]] of notes.entries()) {
    const content = issueExport(chain, note)
    const file = join(folder, `${index}.jsonl`)
    await writeFile(file, content)
    t.equal((await verifyExport([Buffer.from(content)] as never, { keys: [pin], vkey: VKEY })).ok, good)
    const theirs = await run('python3', [script, file, '--pin', `${pin.key_id}:${pin.pubkey_hex}`, '--vkey', VKEY])
    t.equal(theirs.code, good ? 0 : 1, theirs.stderr)
  }
})
