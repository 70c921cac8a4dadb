// Replays of evidence packages: an honest one holds step by step, and each class of bytes that is changed, by a holder of the package or
// by the service before it signs, is named by the step that it concerns. What rests on that step is not said to hold.

import { X509Certificate } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { Unchecked } from '../../client/evidence/steps.ts'
import { makeCertificate } from '../../server/fixture-tls.ts'
import { LITERAL_PROCEDURE } from '../../workers/assessment/procedure.ts'
import { issueResult } from './issuer.ts'
import { issueCheckpoint, issuerKey } from './log-issuer.ts'
import { certificatesFor, type Forgery, inChunks, issuePackage, withLists } from './package-issuer.ts'
import { replay, verdict } from './replayed.ts'
import { zipOf } from './zip.ts'

const honest = issuePackage(verdict)
const OF_TEXT = ['page_text', 'verdict', 'quotes']
const OF_BYTES = ['page_bytes', ...OF_TEXT]

t.test('an honest package holds, step by step', async (t) => {
  const { ok, steps, failed, unchecked } = await replay(honest)
  t.same([ok, failed, unchecked], [true, [], []])
  t.equal(new Set(steps.map(({ name }) => name)).size, steps.length)
  t.same(steps.at(-1), {
    name: 'timestamps',
    proves: 'a time stamping authority stamped a head of the log',
    state: 'not_checked',
    ok: false,
    detail: 'the package has none: the times are by the clock of the service',
    cause: 'optional',
  })
})

type Case = [name: string, forgery: Forgery, failed: string[], unchecked: string[], detail: RegExp]

const edit = (file: string, change: (text: string) => string) => (files: Map<string, Buffer>) => {
  const text = files.get(file)!.toString()
  const changed = change(text)
  t.not(changed, text, `${file} is changed`)
  files.set(file, Buffer.from(changed))
}

const MANIFEST_RESTS = [
  'manifest_in_chain',
  ...['archive', 'request_of_hop', 'head_of_hop', 'route', 'record_digests', 'lists', 'connections'],
  ...OF_BYTES,
  ...['source', 'first_result'],
].filter((name) => !name.includes('_of_hop'))

const byHolder: Case[] = [
  [
    'a header of a request',
    { records: ([, request]) => (request!.block = Buffer.concat([request!.block, Buffer.from('x')])) },
    ['request_of_hop_1'],
    [],
    /^request of hop 1: SHA-256 differs from the manifest: [0-9a-f]{64} of its 90 bytes, not [0-9a-f]{64}$/,
  ],
  [
    'a header of the page',
    { records: (all) => (all[4]!.block = swap(all[4]!.block, 'utf-8', 'UTF-8')) },
    ['head_of_hop_2'],
    ['route', ...OF_BYTES, 'source'],
    /^response head of hop 2: SHA-256 differs/,
  ],
  [
    'where a redirect leads',
    { records: (all) => (all[2]!.block = swap(all[2]!.block, '//www.', '//ww2.')) },
    ['head_of_hop_1'],
    ['route'],
    /^response head of hop 1/,
  ],
  [
    'a response before the final one',
    { records: (all) => (all[4]!.block = swap(all[4]!.block, '/a.css', '/b.css')) },
    ['head_of_hop_2'],
    ['route', ...OF_BYTES, 'source'],
    /^response head of hop 2/,
  ],
  [
    'a head that has no end',
    { records: (all) => (all[4]!.block = all[4]!.block.subarray(0, 60)) },
    ['head_of_hop_2'],
    ['body_of_hop_2', 'route', ...OF_BYTES, 'source'],
    /has no blank line/,
  ],
  [
    'the body of the page',
    { records: (all) => (all[4]!.block = withBody(all[4]!.block, inChunks(gzipSync('<p>Another page')))) },
    ['body_of_hop_2'],
    OF_BYTES,
    /^response body of hop 2: SHA-256 differs from the manifest/,
  ],
  [
    'only its framing',
    { records: (all) => (all[4]!.block = swap(all[4]!.block, ';x=y', ';x=z')) },
    ['body_of_hop_2'],
    OF_BYTES,
    /^response body of hop 2/,
  ],
  [
    'the body of a redirect',
    { records: (all) => (all[2]!.block = swap(all[2]!.block, '<a href', '<b href')) },
    ['body_of_hop_1'],
    [],
    /^response body of hop 1/,
  ],
  [
    'that the body of a redirect was not awaited',
    { records: (all) => delete all[2]!.fields['WARC-Truncated'] },
    ['body_of_hop_1'],
    [],
    /WARC-Truncated/,
  ],
  [
    'a record is left out',
    { records: (all) => all.splice(3, 1) },
    ['archive'],
    [
      ...['request_of_hop_1', 'head_of_hop_1', 'body_of_hop_1', 'request_of_hop_2', 'head_of_hop_2', 'body_of_hop_2'],
      ...['route', 'record_digests', 'lists', ...OF_BYTES, 'source'],
    ],
    /has 3 records for 2 hops/,
  ],
  [
    'a digest in a record',
    { records: (all) => (all[4]!.fields['WARC-Payload-Digest'] = `sha256:${'0'.repeat(64)}`) },
    ['record_digests'],
    [],
    /^record 5 \(response\): its bytes differ from its warc-payload-digest$/,
  ],
  [
    'an address in a record',
    { records: (all) => (all[4]!.fields['WARC-IP-Address'] = '192.0.2.8') },
    ['connections'],
    ['certificates_of_hop_1', 'certificates_of_hop_2'],
    /went to 192\.0\.2\.7, and its record .* says 192\.0\.2\.8/,
  ],
  [
    'a certificate',
    { files: edit('evidence/connections.json', (text) => text.replace('MII', 'MIJ')) },
    ['connections'],
    ['certificates_of_hop_1', 'certificates_of_hop_2'],
    /^evidence\/connections\.json: SHA-256 differs/,
  ],
  [
    'the manifest',
    { files: edit('evidence/manifest.json', (text) => text.replace('"status":301', '"status":302')) },
    ['manifest_signed'],
    MANIFEST_RESTS,
    /^evidence\/manifest\.json: SHA-256 is [0-9a-f]{64}, and its receipt attests/,
  ],
  [
    'the signature of the manifest',
    { files: receipts(({ capture }) => (capture.attestation.sig_ed25519_hex = '0'.repeat(128))) },
    ['manifest_signed'],
    MANIFEST_RESTS,
    /^signature: /,
  ],
  [
    'the proof that the manifest is in the log',
    { files: receipts(({ capture }) => (capture.inclusion.hashes[0] = '0'.repeat(64))) },
    ['manifest_in_chain'],
    [],
    /^inclusion: /,
  ],
  [
    'the receipt of the result is that of the manifest',
    { files: receipts((both) => (both.result = both.capture)) },
    ['result_in_chain'],
    [],
    /has the receipt of serial 5, and the result has serial 4/,
  ],
  [
    'the head of the log, signed by another',
    {
      files: receipts((both) => {
        const head = issueCheckpoint(honest.chain, [issuerKey(9)])
        for (const one of [both.result, both.capture])
          one.checkpoint = head.replace(/^.*\n.*\n.*\n/, lines(one.checkpoint))
      }),
    },
    ['checkpoint'],
    [],
    /^checkpoint: it /,
  ],
  [
    'a file of receipts without one of them',
    { files: edit('evidence/receipts.json', (text) => text.replace('"capture"', '"captured"')) },
    ['receipts'],
    ['manifest_signed', ...MANIFEST_RESTS, 'result_in_chain', 'checkpoint'],
    /^evidence\/receipts\.json: \/capture is missing$/,
  ],
  [
    'a place in the index',
    { files: edit('indexes/index.cdx', (text) => text.replace(/"offset":"(\d+)"/, '"offset":"1"')) },
    ['lists'],
    [],
    /^indexes\/index\.cdx: line 1 leads to no record/,
  ],
  [
    'a line of the index is left out',
    { files: edit('indexes/index.cdx', (text) => text.replace(/^.*\n/, '')) },
    ['lists'],
    [],
    /no line leads to the response of https:\/\/kelby\.test\/harbour/,
  ],
  [
    'the address of the page in the list of pages',
    { files: edit('pages/pages.jsonl', (text) => text.replace('www.kelby', 'other')) },
    ['lists'],
    [],
    /^pages\/pages\.jsonl: /,
  ],
  [
    'a digest in datapackage.json',
    { afterwards: edit('datapackage.json', (text) => text.replace(/sha256:./, 'sha256:x')) },
    ['files'],
    [],
    /^datapackage\.json: /,
  ],
  [
    'the digest of datapackage.json',
    { afterwards: edit('datapackage.json', (text) => `${text} `) },
    ['files'],
    [],
    /^datapackage\.json: its SHA-256 differs from datapackage-digest\.json$/,
  ],
  [
    'a file that is not listed',
    { afterwards: (files) => files.set('note.txt', Buffer.from('x')) },
    ['files'],
    [],
    /^note\.txt: datapackage\.json does not list it$/,
  ],
  [
    'a file of which the list is not written again',
    { afterwards: edit('pages/pages.jsonl', (text) => text.replace('www.kelby', 'ww2.kelby')) },
    ['files', 'lists'],
    [],
    /^pages\/pages\.jsonl: its SHA-256 differs from datapackage\.json$/,
  ],
  [
    'an archive that is no gzip',
    { files: (files) => files.set('archive/data.warc.gz', Buffer.from('WARC/1.1')) },
    ['archive'],
    [
      ...['request_of_hop_1', 'head_of_hop_1', 'body_of_hop_1', 'request_of_hop_2', 'head_of_hop_2', 'body_of_hop_2'],
      ...['route', 'record_digests', 'lists', ...OF_BYTES, 'source'],
    ],
    /^archive\/data\.warc\.gz: it is not made of whole gzip members$/,
  ],
]

const byService: Case[] = [
  [
    'a certificate of another host',
    { hops: ([, page]) => (page!.certificates = otherHost) },
    ['certificates_of_hop_2'],
    [],
    /^certificate 1 is for DNS:other\.test, not for www\.kelby\.test$/,
  ],
  [
    'a certificate that had ended',
    { hops: ([, page]) => page!.certificates.splice(0, 2, ended) },
    ['certificates_of_hop_2'],
    [],
    /^certificate 1 is valid from .* to .*, and the connection was made at /,
  ],
  [
    'a certificate that the next one did not sign',
    { hops: ([first, page]) => page!.certificates.splice(1, 1, first!.certificates[0]!) },
    ['certificates_of_hop_2'],
    [],
    /^certificate 1 is not signed by certificate 2$/,
  ],
  [
    'what is no certificate',
    { hops: ([, page]) => page!.certificates.splice(0, 1, Buffer.from('none')) },
    ['certificates_of_hop_2'],
    [],
    /^certificate 1 cannot be read$/,
  ],
  [
    'a connection to another host',
    { connections: ([, page]) => (page!.hostname = 'other.test') },
    ['connections'],
    ['certificates_of_hop_1', 'certificates_of_hop_2'],
    /names the host other\.test/,
  ],
  [
    'a redirect that leads elsewhere',
    { hops: ([first]) => (first!.head = swap(first!.head, '//www.', '//ww2.')) },
    ['route'],
    [],
    /^hop 1 redirects to https:\/\/ww2\.kelby\.test\/harbour/,
  ],
  [
    'a request for another page',
    { hops: ([, page]) => (page!.request = swap(page!.request, '/harbour', '/harbours')) },
    ['route'],
    [],
    /^the request of hop 2 asks for https:\/\/www\.kelby\.test\/harbours$/,
  ],
  [
    'bytes that are not those of the text',
    { hops: ([, page]) => (page!.body = inChunks(gzipSync('<p>Another page'))) },
    ['page_bytes'],
    OF_TEXT,
    /^the body has \d+ bytes without framing, and the manifest says \d+$/,
  ],
  [
    'a digest of the bytes',
    { manifest: (manifest) => (manifest.content_sha256 = '0'.repeat(64)) },
    ['page_bytes', 'source'],
    OF_TEXT,
    /^decoded body: SHA-256 is [0-9a-f]{64}, and the manifest says 0{64}$/,
  ],
  [
    'a text that the bytes do not give',
    { result: (draft) => (draft.source.normalized_text = draft.source.normalized_text.replace('three', 'seven')) },
    ['page_text'],
    ['verdict', 'quotes'],
    /^source\.normalized_text of the result differs from the text of the bytes from code point 105 on: "seven piers, .*", not "three piers, /,
  ],
  [
    'a digest of the text',
    { manifest: (manifest) => (manifest.text_sha256 = '0'.repeat(64)) },
    ['page_text', 'source'],
    ['verdict', 'quotes'],
    /^text made from the bytes: SHA-256 is/,
  ],
  [
    'another observation',
    { manifest: (manifest) => (manifest.observation_sha256 = '0'.repeat(64)) },
    ['source'],
    [],
    /^source, source_identity, limits or checked_at of the result differ/,
  ],
  [
    'a type of content that was not sent',
    { result: (draft) => (draft.source.content_type = 'text/html') },
    ['source'],
    [],
    /^content_type of the result is not that of the response$/,
  ],
  [
    'a verdict that the verifier does not give',
    { result: (draft) => (draft.explanation = 'The page says so.') },
    ['verdict'],
    [],
    /^explanation: the file says "The page says so\."/,
  ],
  [
    'a receipt of an account',
    { capture: { requested_by: 'acme' } },
    ['manifest_signed'],
    MANIFEST_RESTS,
    /^the receipt was made for "acme", not by a capture$/,
  ],
]

const otherHost = await certificatesFor('other.test')
const past = { notBefore: new Date('2024-01-01'), notAfter: new Date('2024-02-01') }
const ended = new X509Certificate((await makeCertificate(undefined, ['www.kelby.test'], past)).cert).raw

for (const [who, cases] of [
  ['by a holder of the package', byHolder],
  ['by the service, before it signs', byService],
] as const)
  for (const [name, forgery, failed, unchecked, detail] of cases)
    t.test(`changed ${who}: ${name}`, async (t) => {
      const found = await replay(issuePackage(verdict, forgery))
      t.same(found.failed, failed)
      // Without a manifest there are no hops to name.
      t.same([...found.unchecked].sort(), [...unchecked].sort())
      t.match(found.detail(failed[0]!), detail)
      t.same([found.ok, found.differs], [false, true])
    })

function swap(bytes: Buffer, from: string, to: string): Buffer {
  const text = bytes.toString('latin1')
  if (!text.includes(from)) throw new Error(`there is no ${from}`)
  return Buffer.from(text.replace(from, to), 'latin1')
}

function withBody(block: Buffer, body: Buffer): Buffer {
  return Buffer.concat([block.subarray(0, block.lastIndexOf('\r\n\r\n', block.indexOf(';x=y')) + 4), body])
}

interface Receipts {
  capture: { attestation: { sig_ed25519_hex: string }; inclusion: { hashes: string[] }; checkpoint: string }
  result: Receipts['capture']
}

function receipts(change: (both: Receipts) => void): NonNullable<Forgery['files']> {
  return edit('evidence/receipts.json', (text) => {
    const both = JSON.parse(text) as Receipts
    change(both)
    return JSON.stringify(both)
  })
}

/** The first three lines: name, size and root. */
const lines = (note: string) => note.split('\n').slice(0, 3).join('\n').concat('\n')

t.test('a result that was changed', async (t) => {
  type Draft = typeof honest.result
  const cases: [
    name: string,
    change: (result: Draft) => void,
    failed: string[],
    unchecked: string[],
    detail: RegExp,
  ][] = [
    [
      'its text',
      ({ source }) => (source.normalized_text = source.normalized_text.replace('212', '213')),
      ['result_signed', 'page_text', 'source'],
      ['result_in_chain', 'first_result', 'verdict', 'quotes'],
      /^result_sha256: /,
    ],
    [
      'a quote',
      ({ evidence }) => (evidence[0]!.quote = evidence[0]!.quote.replace('1874', '1935')),
      ['result_signed', 'verdict', 'quotes'],
      ['result_in_chain', 'first_result'],
      /^result_sha256: /,
    ],
    [
      'its verdict',
      (result) => (result.claim_support = 'supports'),
      ['result_signed', 'verdict', 'consistency'],
      ['result_in_chain', 'first_result'],
      /^result_sha256: /,
    ],
    [
      'when the page was read',
      (result) => (result.checked_at = '2026-11-20T09:00:00.250Z'),
      ['result_signed', 'source'],
      ['result_in_chain', 'first_result'],
      /^result_sha256: /,
    ],
  ]
  for (const [name, change, failed, unchecked, detail] of cases) {
    const result = structuredClone(honest.result)
    change(result)
    const found = await replay({ packaged: honest.packaged, result })
    t.same(found.failed, failed, name)
    t.same([...found.unchecked].sort(), [...unchecked].sort(), name)
    t.match(found.detail(failed[0]!), detail, name)
  }
})

t.test('a result that is none, or of another observation', async (t) => {
  for (const result of ['', '{', '{"status":"failed","error":{}}', '{"a":1,"a":2}', '[]']) {
    const { failed, unchecked } = await replay({ packaged: honest.packaged, result })
    t.same(failed, ['result'], result)
    t.same(
      [...unchecked].sort(),
      ['consistency', 'first_result', 'page_text', 'quotes', 'result_in_chain', 'result_signed', 'source', 'verdict'],
      result,
    )
  }
  const { failed } = await replay({ packaged: honest.packaged, result: issueResult() })
  t.same(failed, ['result_in_chain', 'page_text', 'source'])
})

t.test('a key that is not pinned', async (t) => {
  const { failed, detail, unchecked } = await replay(honest, { keys: [{ ...issuerKey(1) }] })
  t.same(failed, ['result_signed', 'manifest_signed'])
  t.match(detail('manifest_signed'), /^trusted_key: key_id 7 is not pinned as a receipt key$/)
  t.ok(unchecked.includes('page_text') && unchecked.includes('result_in_chain'))
})

t.test('what is not given is not said to hold, and is no fault', async (t) => {
  const withoutKey = await replay(honest, { vkey: undefined })
  t.same([withoutKey.ok, withoutKey.failed, withoutKey.unchecked], [true, [], ['checkpoint']])

  const shared = await replay(
    issuePackage(verdict, { manifest: (manifest) => (manifest.result_sha256 = '0'.repeat(64)) }),
  )
  t.same([shared.ok, shared.failed, shared.unchecked], [true, [], ['first_result']])
  t.match(shared.detail('first_result'), /^another purchase shares this observation/)

  const other = new Unchecked(`another assessor: ${LITERAL_PROCEDURE}`)
  const literal = await replay(honest, { verdictCheck: async () => other })
  t.same([literal.ok, literal.unchecked], [true, ['verdict']])
})

t.test('what is missing on this machine leaves the replay incomplete', async (t) => {
  const reader = new Unchecked('npm install it', 'missing')
  const { ok, differs, unchecked, detail } = await replay(honest, { reader })
  t.same([ok, differs, unchecked], [false, false, ['page_bytes', 'page_text', 'verdict']])
  t.match(detail('quotes'), /not made again from the bytes/)
})

t.test('another version of the extraction is said, and is no forgery', async (t) => {
  const older = (manifest: Record<string, unknown>) => (manifest.extraction = 'retrieval-1+text-2+parse5-8.1.1')
  const same = await replay(issuePackage(verdict, { manifest: older }))
  t.same([same.ok, same.failed, same.unchecked], [true, [], []])
  t.match(
    same.detail('page_text'),
    /^read by text-3.*, and the manifest names retrieval-1\+text-2.*: the text is the same$/,
  )

  const another = await replay(
    issuePackage(verdict, {
      manifest(manifest) {
        older(manifest)
        manifest.text_sha256 = '0'.repeat(64)
      },
    }),
  )
  t.match(another.detail('page_text'), /another version made the text.*no forgery.*countersign-verifier/)
  t.same(another.unchecked, ['page_text', 'verdict'])
})

t.test('archives that are none, or too much', async (t) => {
  const stored = honest.files
  const many = new Map(Array.from({ length: 201 }, (_, i) => [`f${i}`, Buffer.alloc(0)]))
  const deflated = zipOf(new Map([['bomb', Buffer.from(gzipSync(Buffer.alloc(1_000_000)).subarray(10, -8))]]), 8)
  const cases: [packaged: Buffer, why: RegExp][] = [
    [Buffer.alloc(0), /not a whole ZIP/],
    [Buffer.from('PK'), /not a whole ZIP/],
    [Buffer.from('PK\x05\x06').fill(0, 4), /not a whole ZIP/],
    [honest.packaged.subarray(0, -30), /not a whole ZIP/],
    [zipOf(new Map()), /it holds no files/],
    [zipOf(many), /more than 200 files/],
    [deflated, /bomb is compressed/],
    [zipOf(new Map([['../a', Buffer.from('x')]])), /a name that no package has/],
    [zipOf(new Map([['__proto__/..', Buffer.from('x')]])), /a name that no package has/],
    [zipOf(new Map([['/etc/passwd', Buffer.from('x')]])), /a name that no package has/],
    [twice(stored), /it holds datapackage\.json twice/],
    [overlapping(), /is larger than the archive/],
    [Buffer.alloc(64 * 1024 * 1024 + 1), /it is larger than 67108864 bytes/],
  ]
  for (const [packaged, why] of cases) {
    const { failed, unchecked, detail } = await replay({ packaged, result: honest.result })
    t.same(failed, ['package'], String(why))
    t.match(detail('package'), why)
    t.ok(
      ['files', 'manifest_signed', 'archive', 'page_text', 'verdict', 'quotes'].every((name) =>
        unchecked.includes(name),
      ),
    )
  }
  // A comment, or another order of the files, changes nothing.
  t.ok((await replay({ packaged: zipOf(new Map([...stored].reverse())), result: honest.result })).ok)
})

function twice(files: ReadonlyMap<string, Buffer>): Buffer {
  const bytes = zipOf(new Map([...files, ['datapackage.jsox', Buffer.from('x')]]))
  return Buffer.from(bytes.toString('latin1').replaceAll('datapackage.jsox', 'datapackage.json'), 'latin1')
}

/** A hundred files that all lie in the same bytes. */
function overlapping(): Buffer {
  const bytes = zipOf(new Map(Array.from({ length: 100 }, (_, i) => [`f${i}`, Buffer.alloc(i === 0 ? 100_000 : 0)])))
  const at = bytes.indexOf('PK\x01\x02')
  for (let entry = bytes.indexOf('PK\x01\x02', at + 1); entry > 0; entry = bytes.indexOf('PK\x01\x02', entry + 1)) {
    bytes.writeUInt32LE(100_000, entry + 20)
    bytes.writeUInt32LE(100_000, entry + 24)
    bytes.writeUInt32LE(0, entry + 42)
  }
  return bytes
}

t.test('an archive of records that inflates too far', async (t) => {
  const member = gzipSync(Buffer.alloc(8_000_000))
  const tiny = gzipSync('')
  const cases: [archive: Buffer, why: RegExp][] = [
    [Buffer.concat(Array(8).fill(member)), /inflates to more than 33554432 bytes/],
    [Buffer.concat(Array(5000).fill(tiny)), /more than 64 records/],
    [honest.files.get('archive/data.warc.gz')!.subarray(0, -3), /it is not made of whole gzip members/],
    [Buffer.alloc(0), /it is empty/],
    [gzipSync('WARC/1.1\r\n\r\n'), /record 1 is not as long as its Content-Length says/],
    [gzipSync('WARC/1.0\r\nContent-Length: 0\r\n\r\n\r\n\r\n'), /record 1 is not of WARC\/1\.1/],
    [gzipSync('WARC/1.1\r\nA: b\r\na: c\r\n\r\n\r\n\r\n'), /record 1 has a twice/],
  ]
  for (const [archive, why] of cases) {
    const files = new Map(honest.files)
    files.delete('datapackage.json')
    files.delete('datapackage-digest.json')
    files.set('archive/data.warc.gz', archive)
    const { failed, detail } = await replay({ packaged: zipOf(withLists(files)), result: honest.result })
    t.same(failed, ['archive'], String(why))
    t.match(detail('archive'), why)
  }
})
