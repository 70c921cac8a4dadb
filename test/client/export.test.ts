// An export of a small chain, and all kinds of changes to it: each change is made, detected, and named.
import t from 'tap'
import { attestationShape } from '../../client/chain/attestation.ts'
import { verifyDocument } from '../../client/document.ts'
import { type Attestation, type ChainOptions, verifyExport } from '../../client/verification.ts'
import { sha256 } from './issuer.ts'
import { issueCheckpoint, issueExport, issueLog, issueReceipt, issuerKey, VKEY } from './log-issuer.ts'
import { byteChanges, chunks, openssl } from './tampering.ts'

const { chain, keys } = issueLog([2, 1, 1], [null, 'caf\u00e9 "quoted" \\ \u{1F600}\u2028'])
const pins = [{ key_id: keys[0]!.key_id, pubkey_hex: keys[0]!.pubkey_hex }]
const good = issueExport(chain)

async function failed(text: string | Uint8Array, options: Partial<ChainOptions> = {}): Promise<string[]> {
  const { ok, checks } = await verifyExport(chunks(text), {
    keys: pins,
    vkey: VKEY,
    signatureCheck: openssl,
    ...options,
  })
  const names = checks.filter((check) => !check.ok).map(({ name }) => name)
  if (ok !== (names.length === 0)) throw new Error('the verdict is not that of the checks')
  return names
}

const NAMES = [
  'format',
  'plain_json',
  'well_formed_unicode',
  'shape',
  'start',
  'serials',
  'links',
  'times',
  'key_changes',
  'trusted_keys',
  'receipt_hashes',
  'attested_times',
  'signatures',
  'through',
  'head',
  'checkpoint',
]

t.test('a good export, in pieces of any size', async (t) => {
  for (const size of [1, 7, 100, 1e9]) {
    const { ok, checks } = await verifyExport(chunks(good, size), { keys: pins, vkey: VKEY })
    t.same(
      checks.map(({ name, ok, detail }) => [name, ok, detail]),
      NAMES.map((name) => [name, true, undefined]),
    )
    t.equal(ok, true)
  }
})

t.test('the output names what was not checked', async (t) => {
  const { ok, checks } = await verifyExport(chunks(issueExport(chain, null)), { keys: pins, signatures: 'last' })
  t.equal(ok, true)
  const details = Object.fromEntries(checks.map(({ name, detail }) => [name, detail]))
  t.match(details, { signatures: /only the last/, checkpoint: /no checkpoint/ })
  const unpinned = await verifyExport(chunks(good), { keys: pins })
  t.match(unpinned.checks.at(-1), { ok: true, detail: /signature was not checked/ })
})

/** Three receipts with a rotation of the key between them: long enough for every case, and read many thousand times. */
const small = issueLog([1, 1], ['caf\u00e9 "quoted" \\ \u{1F600}\u2028'])
const bytes = Buffer.from(issueExport(small.chain))

/** Which checks may report a change there, beside the check of the spelling of an export. */
function concerned(at: number): string[] {
  const line = bytes.subarray(0, at).filter((byte) => byte === 0x0a).length
  if (line === 0) return ['head', 'checkpoint']
  const start = bytes.lastIndexOf(0x0a, at - 1) + 1
  return at >= bytes.indexOf('"sig_ed25519_hex"', start) ? ['signatures'] : ['receipt_hashes', 'serials']
}

t.test('a change of any byte fails, and the failed checks are named', async (t) => {
  const names = async (changed: Uint8Array, vkey?: string) => {
    const { ok, checks } = await verifyDocument(chunks(changed), { keys: pins, vkey, signatureCheck: openssl })
    return ok ? [] : checks.filter((check) => !check.ok).map(({ name }) => name)
  }
  t.same(await names(bytes, VKEY), [])
  const headerEnds = bytes.indexOf('\n')
  let tried = 0
  for (const { at, what, changed } of byteChanges(bytes)) {
    // The verifier key is for the checkpoint, which stands in the first line.
    const found = await names(changed, at <= headerEnds ? VKEY : undefined)
    const named = ['json', 'format', 'shape', ...concerned(at)].some((name) => found.includes(name))
    if (!named) t.fail(`${what}: ${found}`)
    tried++
  }
  t.ok(tried > 2 * bytes.length, `${tried} changes`)
})

/** Each field's other values, and the checks that must name the change. Those that follow from it are not listed. */
const FIELDS: Record<keyof Attestation, { values: unknown[]; named: string }> = {
  v: { values: [2, 0, '1', null, 1.5], named: 'shape' },
  serial: { values: [0, -1, 1.5, '1', null, 2 ** 53], named: 'shape' },
  subject_sha256: { values: [sha256('x'), '0'.repeat(64)], named: 'receipt_hashes' },
  label: { values: ['x', '', 'receipt-key'], named: 'receipt_hashes' },
  requested_by: { values: ['else', 'key-rotation', 'source-verification'], named: 'receipt_hashes' },
  key_id: { values: [0, 2, 9], named: 'trusted_keys' },
  ts_ms: { values: [0, 1, 1_795_000_000_000], named: 'receipt_hashes' },
  ts_utc: { values: ['2026-11-20T09:00:00Z', '1970-01-01T00:00:00.000Z'], named: 'receipt_hashes' },
  prev_hash: { values: [sha256('x'), '0'.repeat(63), 'A'.repeat(64)], named: 'receipt_hashes' },
  pubkey_hex: { values: [issuerKey(99).pubkey_hex, '0'.repeat(64)], named: 'trusted_keys' },
  receipt_hash: { values: [sha256('x'), '0'.repeat(64)], named: 'receipt_hashes' },
  sig_ed25519_hex: { values: ['0'.repeat(128), chain[0]!.sig_ed25519_hex.replace(/^./, 'f')], named: 'signatures' },
}

/** The check that reports a value of another receipt in this place, if it differs. */
const MOVED: Partial<Record<keyof Attestation, string>> = {
  serial: 'receipt_hashes',
  label: 'receipt_hashes',
  prev_hash: 'receipt_hashes',
  key_id: 'receipt_hashes',
  pubkey_hex: 'receipt_hashes',
  receipt_hash: 'receipt_hashes',
}

t.test('every field of every receipt, replaced by another value, removed, or taken from another receipt', async (t) => {
  const checkpoint = issueCheckpoint(chain)
  const changed = (at: number, receipt: unknown) =>
    failed(issueExport(chain.with(at, receipt as Attestation), checkpoint))
  let tried = 0
  for (const [at, receipt] of chain.entries())
    for (const [field, { values, named }] of Object.entries(FIELDS) as [keyof Attestation, (typeof FIELDS)['v']][]) {
      const others = new Set<unknown>(chain.map((other) => other[field]))
      for (const value of new Set([...values, ...others])) {
        if (value === receipt[field]) continue
        const wrongForm = attestationShape({ ...receipt, [field]: value }, '') !== null
        const expected = wrongForm ? 'shape' : others.has(value) ? (MOVED[field] ?? named) : named
        const found = await changed(at, { ...receipt, [field]: value })
        if (!found.includes(expected)) t.fail(`serial ${at + 1}, ${field} ${value}: ${found}, not ${expected}`)
        tried++
      }
      const { [field]: _gone, ...rest } = receipt
      if (!(await changed(at, rest)).includes('shape')) t.fail(`serial ${at + 1} without ${field}`)
      if (!(await changed(at, { ...receipt, more: 1 })).includes('format')) t.fail(`serial ${at + 1} with more`)
    }
  t.ok(tried > 250, `${tried} changes`)
})

t.test('receipts left out, moved, repeated, added', async (t) => {
  const checkpoint = issueCheckpoint(chain)
  const header = good.slice(0, good.indexOf('\n') + 1)
  const file = (receipts: Attestation[]) => header + receipts.map((one) => `${JSON.stringify(one)}\n`).join('')
  for (const [at, receipt] of chain.entries()) {
    const named = at === 0 || at === chain.length - 1 ? 'head' : 'serials'
    t.ok((await failed(file(chain.toSpliced(at, 1)))).includes(at === 0 ? 'start' : named), `without serial ${at + 1}`)
    t.ok((await failed(file(chain.toSpliced(at, 0, receipt)))).includes('serials'), `serial ${at + 1} twice`)
    for (const other of chain.keys())
      if (other !== at) {
        const swapped = chain.with(at, chain[other]!).with(other, receipt)
        t.ok((await failed(file(swapped))).length > 0, `${at + 1} and ${other + 1} exchanged`)
      }
    t.ok(
      (await failed(issueExport(chain.slice(0, at + 1), checkpoint))).length > 0 || at === chain.length - 1,
      `cut off after ${at + 1}`,
    )
  }
  t.same(await failed(file([])), NAMES.slice(NAMES.indexOf('shape')))
  t.same(
    await failed(header.trimEnd()),
    NAMES.filter((name) => name !== 'plain_json' && name !== 'well_formed_unicode'),
  )
  const next = issueReceipt({ serial: chain.length + 1, prev_hash: chain.at(-1)!.receipt_hash }, keys[2]!)
  t.same(await failed(file([...chain, next])), ['head', 'checkpoint'])
  t.same(
    await failed(issueExport([...chain, next], checkpoint)),
    ['checkpoint'],
    'a head with a tail that no tree covers',
  )
})

t.test('a header that does not agree with the file', async (t) => {
  const body = good.slice(good.indexOf('\n') + 1)
  const { serial, receipt_hash } = chain.at(-1)!
  const given = { countersign_export: 1, head: { serial, receipt_hash }, checkpoint: issueCheckpoint(chain) }
  const headers: [object, string][] = [
    [{ ...given, countersign_export: 2 }, 'format'],
    [{ ...given, head: { serial: serial - 1, receipt_hash } }, 'head'],
    [{ ...given, head: { serial, receipt_hash: sha256('x') } }, 'head'],
    [{ ...given, head: null }, 'format'],
    [{ ...given, checkpoint: issueCheckpoint(chain, undefined, serial - 1) }, 'checkpoint'],
    [{ ...given, checkpoint: issueCheckpoint(chain.toReversed()) }, 'checkpoint'],
    [{ ...given, checkpoint: issueCheckpoint(chain, [issuerKey(77)]) }, 'checkpoint'],
    [{ ...given, checkpoint: '' }, 'format'],
    [{ ...given, checkpoint: 'nonsense' }, 'checkpoint'],
    [{ ...given, more: 1 }, 'format'],
    [{ head: given.head, checkpoint: given.checkpoint }, 'format'],
  ]
  for (const [header, named] of headers)
    t.ok((await failed(`${JSON.stringify(header)}\n${body}`)).includes(named), JSON.stringify(header))
})

t.test('each line has only one valid spelling', async (t) => {
  const lines = good.trimEnd().split('\n')
  const respelt = (spell: (line: string) => string) =>
    Promise.all(lines.map((_, at) => failed(`${lines.with(at, spell(lines[at]!)).join('\n')}\n`)))
  const spellings: [why: string, spell: (line: string) => string][] = [
    ['blanks', (line) => line.replace(',', ', ')],
    ['a blank at the end', (line) => `${line} `],
    ['a carriage return', (line) => `${line}\r`],
    [
      'another order of members',
      (line) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).reverse())),
    ],
    ['an escape where none is needed', (line) => line.replace('"head"', '"\\u0068ead"').replace('"v"', '"\\u0076"')],
    ['a number in another form', (line) => line.replace('":1,', '":1.0,')],
    ['a member twice', (line) => line.replace('{', '{"v":1,')],
  ]
  for (const [why, spell] of spellings)
    for (const names of await respelt(spell)) t.ok(names.includes('format'), `${why}: ${names}`)
  t.same(await failed(`\ufeff${good}`), await failed('\ufeff'), 'a byte order mark')
  t.ok((await failed(`${good}\n`)).includes('format'), 'an empty line at the end')
})

t.test('lines without end and JSON nested too deep are refused', async (t) => {
  const header = `${good.split('\n')[0]}\n`
  const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
  for (const more of ['x'.repeat(70_000), `${deep}\n`, `"${'x'.repeat(70_000)}"\n`, 'null\n', '7\n', '[]\n'])
    t.not((await failed(header + more)).length, 0, more.slice(0, 10))
  async function* endless() {
    yield Buffer.from(header)
    for (;;) yield Buffer.alloc(10_000, 'x')
  }
  const { checks } = await verifyExport(endless(), { keys: pins })
  t.match(checks[0], { name: 'format', ok: false, detail: /longer than 65536 bytes/ })
})

t.test('with the verifier key, a checkpoint that was removed is noticed', async (t) => {
  const bare = issueExport(chain, null)
  t.same(await failed(bare), ['checkpoint'])
  t.same(await failed(bare, { vkey: undefined }), [])
})

t.test('a receipt that was pinned earlier must be in the range', async (t) => {
  const points = chain.map(({ serial, receipt_hash }) => ({ serial, receipt_hash }))
  t.same(await failed(good, { through: points }), [])
  t.same(await failed(good, { through: [{ ...points[2]!, receipt_hash: sha256('x') }] }), ['through'])
  t.same(await failed(good, { through: [{ serial: 99, receipt_hash: sha256('x') }] }), ['through'])
})

t.test('the head that was pinned elsewhere must be the one of the file', async (t) => {
  const { serial, receipt_hash } = chain.at(-1)!
  t.same(await failed(good, { head: { serial, receipt_hash } }), [])
  t.same(await failed(good, { head: { serial, receipt_hash: sha256('x') } }), ['format'])
  t.same(await failed(good, { head: { serial: 1, receipt_hash: chain[0]!.receipt_hash } }), ['format'])
})

t.test('another history under the same keys is another head', async (t) => {
  const forged = chain.slice(0, -1)
  forged.push(issueReceipt({ ...chain.at(-1)!, label: 'another history' }, keys[2]!))
  t.same(await failed(issueExport(forged, issueCheckpoint(chain))), ['checkpoint'])
  const { serial, receipt_hash } = chain.at(-1)!
  t.same(await failed(issueExport(forged), { head: { serial, receipt_hash } }), ['format'])
})
