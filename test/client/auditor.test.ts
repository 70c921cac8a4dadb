// The client's verifier and an independent one (test/auditor.py: Python's standard library, OpenSSL) give the same verdict
// on every file.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { type Attestation, type ChainPoint, trustIntroduced, verifyExport } from '../../client/verification.ts'
import { audit, auditPackage, withoutAuditor } from '../auditor.ts'
import { EXPORT } from '../vectors/generate.ts'
import { logVectors } from '../vectors/log.ts'
import { issueCheckpoint, issueExport, issueLog, issueReceipt, issuerKey, VKEY } from './log-issuer.ts'

const skip = withoutAuditor

const { chain, keys } = issueLog([9, 12, 8], [null, 'caf\u00e9 "quoted" \\ \u{1F600}\u2028\u007e'])
const pin = { key_id: keys[0]!.key_id, pubkey_hex: keys[0]!.pubkey_hex }
const checkpoint = issueCheckpoint(chain)

type Change = (chain: Attestation[]) => Attestation[]
const at = (serial: number, change: Partial<Attestation>): Change => {
  return (chain) => chain.with(serial - 1, { ...chain[serial - 1]!, ...change })
}
/** Signed again from there on, so that the file has only the intended fault. */
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

const PIN = ['--pin', `${pin.key_id}:${pin.pubkey_hex}`]

t.test('the two verifiers agree', { skip }, async (t) => {
  const folder = t.testdir({})
  const header = issueExport(chain).split('\n')[0]
  const both = async (name: string, receipts: Attestation[]) => {
    const file = join(folder, `${name}.jsonl`)
    const content = `${[header, ...receipts.map((one) => JSON.stringify(one))].join('\n')}\n`
    await writeFile(file, content)
    const ours = await verifyExport([Buffer.from(content)] as never, { keys: [pin], vkey: VKEY })
    return { ours, theirs: await audit(file, ...PIN, '--vkey', VKEY) }
  }
  const { ours, theirs } = await both('good', chain)
  t.equal(ours.ok, true)
  const said = /^good: 31 receipts, 3 keys; 31 signatures by libcrypto, 4 by the openssl command; |; 32 by the openssl /
  t.match(theirs, { code: 0, stdout: said }, theirs.stderr)
  const seen = CHANGES.map(async ([named, change], index) => ({
    named,
    ...(await both(`change-${index}`, change(chain))),
  }))
  for (const { named, ours, theirs } of await Promise.all(seen)) {
    const failed = ours.checks.filter(({ ok }) => !ok).map(({ name }) => name)
    t.ok(failed.includes(named), `client: ${named} among ${failed}`)
    t.match(theirs, { code: 1, stderr: new RegExp(`^BAD .*${named}`) })
  }
})

t.test('and about the checkpoint', { skip }, async (t) => {
  const folder = t.testdir({})
  const elsewhere = issueCheckpoint(chain).replaceAll('log.test', 'log.else')
  const notes: [good: boolean, note: string | null][] = [
    [true, checkpoint],
    [true, issueCheckpoint(chain, [issuerKey(2), issuerKey(55)])],
    [false, issueCheckpoint(chain, [issuerKey(55)])],
    [false, issueCheckpoint(chain.toReversed())],
    [false, issueCheckpoint(chain, undefined, 30)],
    [false, checkpoint.replace(/.{6}\n$/, 'AAAA=\n')],
    [false, elsewhere],
    [false, 'nonsense'],
    [false, null],
  ]
  const seen = notes.map(async ([good, note], index) => {
    const content = issueExport(chain, note)
    const file = join(folder, `${index}.jsonl`)
    await writeFile(file, content)
    const ours = await verifyExport([Buffer.from(content)] as never, { keys: [pin], vkey: VKEY })
    return { good, ours, theirs: await audit(file, ...PIN, '--vkey', VKEY) }
  })
  for (const { good, ours, theirs } of await Promise.all(seen)) {
    t.equal(ours.ok, good)
    t.match(theirs, good ? { code: 0 } : { code: 1, stderr: /^BAD checkpoint: / }, theirs.stderr)
  }
})

t.test('what was pinned before, and the list of keys', { skip }, async (t) => {
  const log = logVectors
  const folder = t.testdir({ 'log.jsonl': EXPORT.text, 'keys.json': JSON.stringify(log.keys) })
  const file = join(folder, 'log.jsonl')
  const first = ['--pin', `${log.pin.key_id}:${log.pin.pubkey_hex}`]
  const at = ({ serial, receipt_hash }: ChainPoint) => `${serial}:${receipt_hash}`
  const listed = async (name: string, change: (keys: typeof log.keys.keys) => unknown[]) => {
    await writeFile(join(folder, name), JSON.stringify({ keys: change(structuredClone(log.keys.keys)) }))
    return ['--keys', join(folder, name)]
  }
  const next = log.keys.keys[3]!.vkey!
  const keys = ['--keys', join(folder, 'keys.json')]
  const onlyOld = await listed('old.json', (keys) => keys.slice(0, 3))
  const longer = await listed('longer.json', (keys) => keys.with(0, { ...keys[0]!, last_serial: 9 }))
  const idle = await listed('idle.json', (keys) => [...keys, { ...keys[0]!, key_id: 9 }])
  const cases: [RegExp | null, string[]][] = [
    [null, ['--vkey', log.vkey, '--head', at(log.head), '--through', at(log.attestations[3]!), ...keys]],
    [null, ['--vkey', next, ...keys]],
    [/^BAD head: /, ['--head', at(log.attestations[3]!)]],
    [/^BAD serial 4: through/, ['--through', `4:${'0'.repeat(64)}`]],
    [/^BAD through: /, ['--through', `99:${'0'.repeat(64)}`]],
    [/^BAD keys: key 5, which signed serial 15, is not listed/, onlyOld],
    [/^BAD keys: key 1 is listed up to serial 9, not 6/, longer],
    [/^BAD keys: key 9 is listed and signed nothing/, idle],
  ]
  const seen = cases.map(async ([bad, options]) => ({ bad, ...(await audit(file, ...first, ...options)) }))
  for (const { bad, code, stderr } of await Promise.all(seen)) {
    t.equal(code, bad ? 1 : 0, stderr)
    if (bad) t.match(stderr, bad)
  }
  // A checkpoint that the old key no longer signs verifies with the old verifier key only through the introduction of the
  // new one.
  const content = EXPORT.text.replace(/\\n\u2014 \S+ \S+\\n"}/, '\\n"}')
  t.not(content, EXPORT.text)
  await writeFile(file, content)
  t.match(await audit(file, ...first, '--vkey', log.vkey), { code: 1, stderr: /not signed by the pinned key/ })
  t.match(await audit(file, ...first, '--vkey', log.vkey, ...keys), { code: 0 })
  const trusted = trustIntroduced(log.keys.keys, [log.pin])
  const ours = await verifyExport([Buffer.from(content)] as never, { keys: trusted, vkey: log.vkey })
  t.equal(ours.ok, true, 'and the client does the same')
})

t.test('the openssl command alone', { skip }, async (t) => {
  const folder = t.testdir({})
  const file = join(folder, 'export.jsonl')
  await writeFile(file, issueExport(chain))
  const good = await audit(file, ...PIN, '--vkey', VKEY, '--command-only')
  t.match(good, { code: 0, stdout: /^good: 31 receipts, 3 keys; 32 by the openssl command; / }, good.stderr)
  const changed = at(17, { sig_ed25519_hex: chain[0]!.sig_ed25519_hex })(chain)
  await writeFile(file, issueExport(changed))
  t.match(await audit(file, ...PIN, '--command-only'), { code: 1, stderr: 'BAD serial 17: signatures\n' })
})

t.test('any other file is reported as bad, in one line', { skip }, async (t) => {
  const folder = t.testdir({})
  const lines = issueExport(chain).trimEnd().split('\n')
  const files: (string | Buffer)[] = [
    '',
    '\n',
    'null\n',
    '[]\n',
    '{"countersign_export":1}\n',
    `${lines[0]}\n`,
    `${lines[0]}\nnull\n`,
    `${lines[0]}\n${'['.repeat(100_000)}\n`,
    `${lines[0]}\n${lines[1]!.replace('{', '{"v":1,')}\n`,
    `${lines[0]}\n${lines[1]!.replace(/"label":[^,]+/, '"label":"\\ud800"')}\n`,
    `${lines[0]}\n${lines[1]!.replace(/"ts_utc":"[^"]+"/, '"ts_utc":"2026-13-40T99:00:00Z"')}\n`,
    `${lines[0]}\n${lines[1]!.replace('"serial":1', '"serial":true')}\n`,
    `${lines[0]}\n${lines[1]!.replace('"serial":1', '"serial":1.0')}\n`,
    `${lines[0]}\n${lines[1]!.replace('"ts_ms":', '"ts_ms":NaN,"x":')}\n`,
    lines.join('\n'),
    lines.join('\r\n'),
    Buffer.from([0xff, 0xfe, 0x0a]),
  ]
  const seen = files.map(async (content, index) => {
    const file = join(folder, `${index}.jsonl`)
    await writeFile(file, content)
    return audit(file, ...PIN)
  })
  for (const { code, stdout, stderr } of await Promise.all(seen)) {
    t.match({ code, stdout }, { code: 1, stdout: '' })
    t.match(stderr, /^BAD [^\n]+\n$/)
  }
})

t.test('a file that cannot be read is a wrong call, and not BAD', { skip }, async (t) => {
  const none = join(t.testdir({ 'good.jsonl': issueExport(chain) }), 'none')
  const expected = { code: 2, stdout: '', stderr: `cannot read ${none}: No such file or directory\n` }
  t.same(await audit(none, ...PIN), expected)
  t.same(await audit(join(none, '../good.jsonl'), ...PIN, '--keys', none), expected)
  t.same(await auditPackage(none, none, ...PIN), expected)
})
