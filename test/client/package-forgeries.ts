// Changes of evidence packages, by a holder of the package or by the service before it signs: the steps of a replay that then differ, those
// that are not checked because of it, and what is said of the first.
import { X509Certificate } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { makeCertificate } from '../../server/fixture-tls.ts'
import { issueCheckpoint, issuerKey } from './log-issuer.ts'
import { certificatesFor, type Forgery, inChunks, issuePackage } from './package-issuer.ts'
import { verdict } from './replayed.ts'

const honest = issuePackage(verdict)
const OF_TEXT = ['page_text', 'verdict', 'quotes']
const OF_BYTES = ['page_bytes', ...OF_TEXT]

export type Case = [name: string, forgery: Forgery, failed: string[], unchecked: string[], detail: RegExp]

const edit = (file: string, change: (text: string) => string) => (files: Map<string, Buffer>) => {
  const text = files.get(file)!.toString()
  const changed = change(text)
  if (changed === text) throw new Error(`${file} is not changed`)
  files.set(file, Buffer.from(changed))
}

const MANIFEST_RESTS = [
  'manifest_in_chain',
  ...['archive', 'request_of_hop', 'head_of_hop', 'route', 'record_digests', 'lists', 'connections'],
  ...OF_BYTES,
  ...['source', 'first_result'],
].filter((name) => !name.includes('_of_hop'))

export const byHolder: Case[] = [
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

export const byService: Case[] = [
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
    { result: (draft) => (draft.source.normalized_text = draft.source.normalized_text.replace('Kelby', 'Selby')) },
    ['page_text'],
    ['verdict', 'quotes'],
    /^source\.normalized_text of the result differs from the text of the bytes from code point 15 on: "Selby .*", not "Kelby /,
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
