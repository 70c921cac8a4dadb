// The kind of a file is recognized correctly, and never as a kind that has fewer checks.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { UsageError } from '../../client/arguments.ts'
import { type DocumentOptions, verifyDocument } from '../../client/document.ts'
import type { Attestation } from '../../client/verification.ts'
import { referenceTree } from '../receipts/rfc6962.ts'
import { issueResult, keys as resultKeys } from './issuer.ts'
import { CHECKPOINT_KEY, issueCheckpoint, issueExport, issueLog, issuerKey, VKEY } from './log-issuer.ts'
import { byteChanges, change, chunks, drop, leaves, members, openssl, other, RESPELLINGS } from './tampering.ts'

const { chain, keys } = issueLog([4, 3], ['caf\u00e9 \u{1F600}'])
const pins = [...keys.map(({ key_id, pubkey_hex }) => ({ key_id, pubkey_hex })), ...resultKeys]
const tree = referenceTree(chain.map((one) => Buffer.from(one.receipt_hash, 'hex')))

/** As the service answers, at a time when two keys sign its checkpoints. */
const receipt = {
  attestation: chain[2]!,
  inclusion: { leaf_index: 2, tree_size: 8, hashes: tree.path(2, 8).map((hash) => hash.toString('hex')) },
  checkpoint: issueCheckpoint(chain, [CHECKPOINT_KEY, issuerKey(55)]),
}
const page = { from: 1, to: 8, head_serial: 9, attestations: chain }

async function verify(content: unknown, options: Partial<DocumentOptions> = {}, size?: number) {
  const bytes = typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content)
  return verifyDocument(chunks(bytes, size), { keys: pins, signatureCheck: openssl, ...options })
}

async function failed(content: unknown, options: Partial<DocumentOptions> = {}) {
  const { ok, checks } = await verify(content, options)
  const names = checks.filter((check) => !check.ok).map(({ name }) => name)
  if (ok !== (names.length === 0)) throw new Error('the verdict is not that of the checks')
  return names
}

t.test('the output names the kind of file it recognized', async (t) => {
  const kinds: [unknown, string | undefined][] = [
    [issueResult(), 'a completed result'],
    [issueResult().receipt, 'the receipt of a purchase'],
    [receipt, 'a receipt'],
    [chain[0], 'an attestation'],
    [{ attestation: chain[0] }, 'an attestation'],
    [chain, 'consecutive attestations'],
    [page, 'a page of the chain'],
    [issueExport(chain), undefined],
  ]
  for (const [content, kind] of kinds) {
    const { ok, checks } = await verify(content)
    t.equal(ok, true, String(kind))
    t.same(checks[0], kind ? { name: 'json', ok: true, detail: kind } : { name: 'format', ok: true })
  }
})

t.test('the receipt of a purchase is checked without its result', async (t) => {
  const sold = issueResult().receipt
  const { envelope, canonical_envelope_base64, attestation } = sold
  const other = { ...envelope, request_id: 'another' }
  t.same(await failed({ ...sold, envelope: other }), ['canonical_envelope'])
  const encoded = Buffer.from(JSON.stringify(other)).toString('base64')
  t.same(await failed({ ...sold, canonical_envelope_base64: encoded }), ['subject_sha256', 'canonical_envelope'])
  t.match(await failed({ ...sold, attestation: { ...attestation, serial: 3 } }), ['signature', 'receipt_hash'])
  t.match(await failed({ envelope, canonical_envelope_base64, attestation }), ['shape'])
  t.match(await failed({ ...sold, ...receipt }), ['shape'])
  t.match(await failed({ ...sold, attestation: chain[2] }), ['purchase_attestation', 'subject_sha256'])
})

t.test('a file that arrives one byte at a time gives the same result', async (t) => {
  for (const content of [issueExport(chain), receipt, issueResult()]) t.equal((await verify(content, {}, 1)).ok, true)
})

t.test('adding a valid document to an invalid one does not make it valid', async (t) => {
  const forged = { ...issueResult(), claim: 'another' }
  const { receipt: _receipt, ...unsigned } = forged
  const mixtures: unknown[] = [
    { ...forged, attestations: chain },
    { ...forged, attestation: chain[0] },
    { ...forged, ...receipt },
    { ...unsigned, attestations: chain },
    { ...unsigned, ...page },
    { ...unsigned, attestation: chain[0] },
    { ...unsigned, ...receipt },
    { ...unsigned, ...chain[0] },
    { ...receipt, attestations: chain },
  ]
  for (const [index, mixture] of mixtures.entries()) t.not((await failed(mixture)).length, 0, `mixture ${index}`)
})

t.test('only an export may be longer than an answer of the service, and no more of another file is read', async (t) => {
  let given = 0
  async function* endless(begin: string) {
    yield Buffer.from(begin)
    for (;;) {
      given++
      yield Buffer.alloc(1_048_576, ' ')
    }
  }
  const { ok, checks } = await verifyDocument(endless('['), { keys: pins })
  t.same([ok, checks.length, checks[0]?.name], [false, 1, 'json'])
  t.match(checks[0]?.detail, 'it is longer than 16,777,216 bytes, and only an export of the chain may be')
  t.equal(given, 16)
  const longest = Buffer.alloc(16_777_216, ' ')
  longest.write(JSON.stringify(receipt))
  const { checks: found } = await verifyDocument(chunks(longest, 1_048_576), { keys: pins })
  t.same(found[0], { name: 'json', ok: true, detail: 'a receipt' })
})

t.test('a pin that does not apply to such a file is refused, not ignored', async (t) => {
  const point = { serial: 1, receipt_hash: chain[0]!.receipt_hash }
  const options: Record<string, Partial<DocumentOptions>> = {
    from: { from: point },
    through: { through: [point] },
    head: { head: point },
    vkey: { vkey: VKEY },
    tree: { tree: { tree_size: 8, root_hash: tree.root(8).toString('hex') } },
    last: { signatures: 'last' },
  }
  const cases: [unknown, string[]][] = [
    [issueResult(), ['from', 'through', 'head', 'vkey', 'tree', 'last']],
    [chain[0], ['from', 'through', 'head', 'vkey', 'tree', 'last']],
    [{ attestation: chain[0] }, ['from', 'through', 'head', 'vkey', 'tree', 'last']],
    [receipt, ['from', 'through', 'head', 'last']],
    [chain, ['vkey', 'tree']],
    [page, ['vkey', 'tree']],
    [issueExport(chain), ['from', 'tree']],
  ]
  for (const [content, refused] of cases)
    for (const [name, option] of Object.entries(options)) {
      const verdict = await verify(content, option).catch((error) => error)
      t.equal(verdict instanceof UsageError, refused.includes(name), name)
    }
})

t.test('a page of the chain must be the range that it states', async (t) => {
  t.same(await failed({ ...page, head_serial: 8 }), [])
  const changes: object[] = [
    { from: 2 },
    { to: 7 },
    { to: 9 },
    { head_serial: 7 },
    { attestations: chain.slice(1) },
    { attestations: {} },
    { more: 1 },
  ]
  for (const members of changes) t.ok((await failed({ ...page, ...members })).includes('page'), JSON.stringify(members))
  t.ok((await failed({ attestations: chain })).includes('page'), 'nothing but attestations')
})

/** Where a change is not noticed, and why that is acceptable. */
interface Uncovered {
  why: string
  part: string
}

const FILES: { name: string; content: object; options: Partial<DocumentOptions>; uncovered: Uncovered[] }[] = [
  {
    name: 'a receipt',
    content: receipt,
    options: { vkey: VKEY },
    uncovered: [
      {
        why: 'signature lines of keys that are not pinned are passed over: that is how a log changes its key',
        part: receipt.checkpoint.trimEnd().split('\n').at(-1)!,
      },
    ],
  },
  {
    name: 'a completed result',
    content: issueResult(),
    options: {},
    uncovered: [{ why: 'a note for people, signed by nobody', part: issueResult().receipt.verification }],
  },
  {
    name: 'a page of the chain',
    content: { ...page, to: 2, attestations: chain.slice(0, 2) },
    options: {},
    uncovered: [{ why: 'the head of when the page was made; the page cannot prove it', part: '9,"attestations"' }],
  },
]

for (const { name, content, options, uncovered } of FILES) {
  const bytes = Buffer.from(JSON.stringify(content))
  const ranges = uncovered.map(({ part }) => {
    const start = bytes.indexOf(part.replaceAll('\n', '\\n'))
    if (start < 0) throw new Error(`${part} is not in ${name}`)
    return [start, start + Buffer.byteLength(part)] as const
  })

  t.test(`${name}: a change of any byte fails, except those listed`, async (t) => {
    t.same(await failed(bytes, options), [])
    const unseen = new Set<number>()
    let tried = 0
    for (const { at, what, changed } of byteChanges(bytes)) {
      tried++
      const names = await failed(changed, options).catch((error) => {
        // ClaimedAlert for another kind, about which the pin says nothing.
        if (error instanceof UsageError) return ['usage']
        throw error
      })
      const listed = ranges.some(([start, end]) => start <= at && at < end)
      if (names.length === 0 && !listed) t.fail(what)
      if (names.length === 0) unseen.add(at)
    }
    t.ok(tried > 2 * bytes.length, `${tried} changes`)
    for (const [start, end] of ranges)
      t.ok(
        [...unseen].some((at) => start <= at && at < end),
        'the list is not longer than it must be',
      )
  })

  t.test(`${name}: the same value in another JSON notation passes`, async (t) => {
    // Digests and signatures are over the canonical form of values, not over the text: every reader of the file sees the same values.
    for (const [what, respell] of RESPELLINGS) t.same(await failed(respell(bytes.toString()), options), [], what)
    t.same(await failed(`\ufeff${bytes}`, options), ['json'], 'but with a mark before it, it is not JSON')
    t.same(await failed(`${bytes}${bytes}`, options), ['json'])
  })
}

t.test('a receipt: any field that is changed, dropped or added fails', async (t) => {
  const named: Record<string, string> = {
    'attestation.key_id': 'trusted_key',
    'attestation.pubkey_hex': 'trusted_key',
    'attestation.sig_ed25519_hex': 'signature',
    'attestation.v': 'shape',
    'inclusion.leaf_index': 'inclusion',
    'inclusion.tree_size': 'inclusion',
    'inclusion.hashes': 'inclusion',
    checkpoint: 'checkpoint',
  }
  for (const path of leaves(receipt)) {
    const changed = structuredClone(receipt)
    change(changed, path, other)
    const name = path.join('.')
    const expected = Object.entries(named).find(([prefix]) => name.startsWith(prefix))?.[1] ?? 'receipt_hash'
    const found = await failed(changed, { vkey: VKEY })
    t.ok(found.includes(expected) || found.includes('shape'), `${name}: ${expected} among ${found}`)
  }
  for (const path of members(receipt)) {
    const changed = structuredClone(receipt)
    drop(changed, path)
    const names = await failed(changed, { vkey: VKEY }).catch((error) => error)
    t.ok(names instanceof UsageError || names.length > 0, `without ${path.join('.')}`)
  }
  for (const place of [[], ['attestation'], ['inclusion']]) {
    const changed = structuredClone(receipt)
    const at = place.reduce<Record<string, unknown>>((o, name) => o[name] as never, changed as never)
    at.more = 1
    t.ok((await failed(changed, { vkey: VKEY })).includes('shape'), `with more in /${place.join('/')}`)
  }
})

t.test('the command line accepts the pins', async (t) => {
  const cli = async (content: unknown, ...args: string[]) => {
    const child = spawn(process.execPath, [
      `${import.meta.dirname}/../../client/cli.ts`,
      'verify',
      '-',
      ...pins.map(({ key_id, pubkey_hex }) => `--pin=${key_id}:${pubkey_hex}`),
      ...args,
    ])
    child.stdin.end(typeof content === 'string' ? content : JSON.stringify(content))
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { code, stdout, stderr }
  }
  const older = {
    ...receipt,
    inclusion: { leaf_index: 2, tree_size: 5, hashes: tree.path(2, 5).map((hash) => hash.toString('hex')) },
  }
  const at = ({ serial, receipt_hash }: Attestation) => `${serial}:${receipt_hash}`
  const root = (size: number) => `${size}:${tree.root(size).toString('hex')}`
  const [pinned, astray, wrong, through, elsewhere, misfit, nonsense, unsafe] = await Promise.all([
    cli(older, '--vkey', VKEY, '--tree', root(5)),
    cli(older, '--vkey', VKEY),
    cli(receipt, '--vkey', VKEY, '--tree', `8:${'0'.repeat(64)}`),
    cli(issueExport(chain), '--vkey', VKEY, '--through', at(chain[1]!), '--through', at(chain[4]!)),
    cli(issueExport(chain), '--vkey', VKEY, '--through', `2:${'0'.repeat(64)}`),
    cli(chain, '--vkey', VKEY),
    cli(receipt, '--tree', '5'),
    cli(chain, '--head', `9007199254740993:${'0'.repeat(64)}`),
  ])
  t.match(pinned, { code: 0 }, pinned.stdout)
  t.match(astray, { code: 1, stdout: /^FAIL inclusion: the proof leads to the tree of 5/m })
  t.match(wrong, { code: 1, stdout: /^FAIL pinned_tree/m })
  t.match(through, { code: 0 }, through.stdout)
  t.match(elsewhere, { code: 1, stdout: /^FAIL through: serial 2: is another receipt/m })
  t.match(misfit, { code: 2, stdout: '', stderr: /^countersign: --vkey says nothing about consecutive attestations/ })
  t.match(nonsense, { code: 2, stderr: /--tree 5 is not SIZE:ROOT/ })
  t.match(unsafe, { code: 2, stderr: /is not SERIAL:HASH/ })
})
