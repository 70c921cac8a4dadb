// The evidence package of a purchase: the bytes on the wire of every hop, who answered, and two receipts of one batch.
import { X509Certificate } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { WARCParser } from 'warcio'
import { verifyResult } from '../../client/verification.ts'
import { canonicalJson, sha256 } from '../../server/receipts/format.ts'
import { PAGE, startSystem } from '../system.ts'
import { chunked, FIRST, openOrigin, SECOND, STAPLE } from './origin.ts'
import { askEvidence, buyFrom, openPackage } from './purchases.ts'

const origin = await openOrigin()
const system = await startSystem({ env: { SOURCE_CAPTURE: 'on', CAPTURE_RETENTION_SECONDS: '80000', ...origin.env } })
t.teardown(async () => {
  await system[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

const CLAIM = 'The harbour was opened in 1874.'
/** Long enough for several reads. */
const LONG = Buffer.from(`${PAGE}${'<p>The ferry sails again. '.repeat(4000)}`)

origin.answers.set('/moved', [
  `HTTP/1.1 302 Found\r\nSet-Cookie: theirs=kept\r\nLocation: https://${SECOND}/page\r\nContent-Length: 400\r\n\r\nnot all of it`,
])
origin.answers.set('/page', [
  'HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n',
  ...chunked(
    'HTTP/1.1 200 OK\r\nDate: Thu, 26 Nov 2026 22:00:00 GMT\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n',
    gzipSync(LONG),
    700,
  ),
])
origin.answers.set('/plain', [`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n`, LONG])

/** Type, URL and status line of every record, as a reader that knows nothing of this service sees them. */
async function readArchive(archive: Buffer): Promise<[string | null, string | null, string | undefined][]> {
  const records: [string | null, string | null, string | undefined][] = []
  for await (const record of new WARCParser([archive])) {
    await record.readFully(false)
    const isResponse = record.warcType === 'response'
    const status = isResponse ? record.httpHeaders?.statusline : undefined
    records.push([record.warcType ?? null, record.warcTargetURI ?? null, status])
  }
  return records
}

/** The records of an archive of gzip members, by the rule of WARC: header, blank line, Content-Length octets, two line ends. */
function blocksOf(archive: Buffer) {
  const text = gunzipSync(archive)
  const blocks: { type: string; block: Buffer }[] = []
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\r\n\r\n', at) + 4
    const head = text.toString('latin1', at, end)
    const length = Number(/^Content-Length: (\d+)\r$/m.exec(head)?.[1])
    blocks.push({ type: /^WARC-Type: (\w+)\r$/m.exec(head)?.[1] ?? '', block: text.subarray(end, end + length) })
    at = end + length + 4
  }
  return blocks
}

t.test('the archive holds every hop as it crossed the connection, and both receipts are of one batch', async (t) => {
  origin.exchanges.length = 0
  const bought = await buyFrom(system, { source_url: `https://${FIRST}/moved`, claim: CLAIM })
  const answer = await askEvidence(system, bought)
  t.equal(answer.headers.get('content-type'), 'application/wacz')
  t.equal(answer.headers.get('cache-control'), 'private, no-store')
  t.match(answer.headers.get('content-disposition'), /^attachment; filename="evidence-[0-9a-f-]{36}\.wacz"$/)
  const { read, json, files, whole } = await openPackage(answer)

  await t.test('the bytes are those of the sockets', async (t) => {
    const [moved, page] = origin.exchanges
    const [info, ...hops] = blocksOf(read('archive/data.warc.gz'))
    t.match(info, { type: 'warcinfo' })
    t.same(
      hops.map(({ type }) => type),
      ['request', 'response', 'request', 'response'],
    )
    t.ok(moved && page && origin.exchanges.length === 2)
    t.equal(hops[0]?.block.equals(moved!.received), true, 'the request of the redirect')
    t.equal(hops[1]?.block.equals(moved!.sent), true, 'the redirect, with its unfinished body')
    t.equal(hops[2]?.block.equals(page!.received), true, 'the request of the page')
    t.equal(hops[3]?.block.equals(page!.sent), true, 'the page: early hints, chunks, their extensions and the trailer')
  })

  await t.test('a stock reader opens the archive', async (t) => {
    t.same(await readArchive(read('archive/data.warc.gz')), [
      ['warcinfo', null, undefined],
      ['request', `https://${FIRST}/moved`, undefined],
      ['response', `https://${FIRST}/moved`, 'HTTP/1.1 302 Found'],
      ['request', `https://${SECOND}/page`, undefined],
      ['response', `https://${SECOND}/page`, 'HTTP/1.1 103 Early Hints'],
    ])
  })

  await t.test('the manifest has the digests of everything, and its receipt', async (t) => {
    const manifest = json('evidence/manifest.json')
    const receipts = json('evidence/receipts.json')
    const { receipt, ...unsigned } = bought.result
    const { requested_url, ...source } = unsigned.source
    const digests = origin.exchanges.map(({ received, sent }, n) => {
      const blank = n === 0 ? sent.indexOf('\r\n\r\n') : sent.indexOf('\r\n\r\n', sent.indexOf('HTTP/1.1 200'))
      return {
        request_sha256: sha256(received),
        response_head_sha256: sha256(sent.subarray(0, blank + 4)),
        response_body_sha256: sha256(sent.subarray(blank + 4)),
      }
    })
    t.equal(canonicalJson(manifest), read('evidence/manifest.json').toString('utf8'), 'RFC 8785')
    t.same(manifest, {
      type: 'countersign.source-capture',
      version: 1,
      requested_url,
      final_url: source.final_url,
      checked_at: unsigned.checked_at,
      extraction: unsigned.methodology_version.split(' ')[0],
      hops: [
        { url: `https://${FIRST}/moved`, status: 302, ...digests[0], body_complete: false },
        { url: `https://${SECOND}/page`, status: 200, ...digests[1], body_complete: true },
      ],
      connections_sha256: sha256(read('evidence/connections.json')),
      certificates_sha256: json('evidence/connections.json').connections.map(
        ({ tls }: { tls: { certificates: string[] } }) =>
          tls.certificates.map((der) => sha256(Buffer.from(der, 'base64'))),
      ),
      content_sha256: source.content_sha256,
      text_sha256: source.text_sha256,
      wire_bytes: source.wire_bytes,
      decoded_bytes: source.decoded_bytes,
      observation_sha256: sha256(
        canonicalJson({
          source,
          source_identity: unsigned.source_identity,
          limits: unsigned.limits,
          checked_at: unsigned.checked_at,
        }),
      ),
      result_sha256: receipt.envelope.result_sha256,
    })
    t.equal(receipts.capture.attestation.subject_sha256, sha256(read('evidence/manifest.json')))
    t.match(receipts.capture.attestation, { requested_by: 'source-capture', label: null })
    t.same(receipts.result.attestation, receipt.attestation)
    t.equal(receipts.capture.attestation.serial, receipt.attestation.serial + 1, 'the same batch')
    t.equal(receipts.capture.attestation.ts_ms, receipt.attestation.ts_ms)
    for (const one of [receipts.result, receipts.capture])
      t.same(await (await fetch(system.url(`/v1/receipt/${one.attestation.serial}`))).json(), one)
    const { keys } = (await (await fetch(system.url('/v1/keys'))).json()) as Parameters<typeof verifyResult>[1]
    t.equal(verifyResult(bought.result, { keys }).ok, true)
  })

  await t.test('the connections say who answered', async (t) => {
    const { connections } = json('evidence/connections.json')
    t.equal(canonicalJson({ connections }), read('evidence/connections.json').toString('utf8'))
    for (const [n, hostname] of [FIRST, SECOND].entries()) {
      const { tls, ...at } = connections[n]
      t.match(at, { hostname, address: '127.0.0.1', port: origin.port, started_at: /Z$/, finished_at: /Z$/ })
      t.match(tls, { protocol: 'TLSv1.3', server_name: hostname, ocsp_response: STAPLE.toString('base64') })
      const [leaf, issuer] = tls.certificates.map((der: string) => new X509Certificate(Buffer.from(der, 'base64')))
      t.ok(leaf.checkHost(hostname))
      t.ok(leaf.verify(issuer.publicKey), 'the chain as the server sent it')
    }
  })

  await t.test('the package is a WACZ whose parts have their digests', async (t) => {
    const { resources, ...about } = json('datapackage.json')
    t.match(about, { profile: 'data-package', wacz_version: '1.1.1', created: bought.result.checked_at, software: /./ })
    t.same(json('datapackage-digest.json'), {
      path: 'datapackage.json',
      hash: `sha256:${sha256(read('datapackage.json'))}`,
    })
    t.same(
      [...resources.map(({ path }: { path: string }) => path), 'datapackage.json', 'datapackage-digest.json'].sort(),
      Object.keys(files).sort(),
    )
    for (const { path, hash, bytes } of resources) {
      t.equal(hash, `sha256:${sha256(read(path))}`, path)
      t.equal(bytes, read(path).length)
    }
    const lines = read('indexes/index.cdx').toString('utf8').trim().split('\n')
    t.same(lines, lines.toSorted())
    const archive = read('archive/data.warc.gz')
    for (const [n, line] of lines.entries()) {
      const at = JSON.parse(line.replace(/^\S+ \S+ /, ''))
      const member = archive.subarray(Number(at.offset), Number(at.offset) + Number(at.length))
      t.match(gunzipSync(member).toString('latin1'), `WARC-Target-URI: ${at.url}\r\n`)
      t.match(line, n === 0 ? /^test,first\)\/moved \d{14} / : /^test,second\)\/page \d{14} /)
    }
    const [header, page] = read('pages/pages.jsonl')
      .toString('utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    t.match(header, { format: 'json-pages-1.0' })
    t.match(page, { url: `https://${SECOND}/page`, ts: bought.result.checked_at })
    t.same(
      Buffer.from(await (await askEvidence(system, bought)).arrayBuffer()).equals(whole),
      true,
      'the same bytes again',
    )
  })

  await t.test('nothing of ours or of the buyer is in it', async (t) => {
    const everything = [...Object.values(files), gunzipSync(read('archive/data.warc.gz'))]
      .map((bytes) => bytes.toString('latin1'))
      .join('\n')
    const rows = await system.sql(`select payment #>> '{identity,payer}' payer from verification_requests`)
    for (const secret of [bought.token, bought.result.request_id, CLAIM, String(rows[0]?.payer)])
      t.notMatch(everything, secret)
    t.notMatch(everything, /payment-signature|idempotency-key|authorization:|\ncookie:/i)
    t.match(everything, 'Set-Cookie: theirs=kept', "the page's own cookie is part of its answer")
  })
})

t.test('a body without a declared length is kept to its end, and a later purchase shares the capture', async (t) => {
  origin.exchanges.length = 0
  const claims = [CLAIM, 'Fishing ended in 1962.']
  const first = await buyFrom(system, { source_url: `https://${FIRST}/plain`, claims }, 'claims')
  const second = await buyFrom(system, { source_url: `https://${FIRST}/plain`, claim: CLAIM })
  t.equal(second.result.cache.hit, true)
  t.equal(origin.exchanges.length, 1)
  const packages = [
    await openPackage(await askEvidence(system, first, 'claims')),
    await openPackage(await askEvidence(system, second)),
  ]
  const [one, other] = packages
  t.equal(blocksOf(one!.read('archive/data.warc.gz'))[2]?.block.equals(origin.exchanges[0]!.sent), true)
  t.equal(one!.read('evidence/manifest.json').equals(other!.read('evidence/manifest.json')), true)
  t.equal(one!.json('evidence/manifest.json').result_sha256, first.result.receipt.envelope.result_sha256)
  const serials = packages.map(({ json }) => {
    const { result, capture } = json('evidence/receipts.json')
    return [result.attestation.serial, capture.attestation.serial]
  })
  const { serial } = first.result.receipt.attestation
  t.same(serials, [
    [serial, serial + 1],
    [serial + 2, serial + 1],
  ])
  const [count] = await system.sql('select count(*)::int n from receipts')
  t.equal(count?.n, serial + 2, 'the second purchase added one receipt')
})

t.test('every other call for a package is answered as if there were none', async (t) => {
  const bought = await buyFrom(system, { source_url: `https://${FIRST}/plain`, claim: 'The ferry sails again.' })
  const other = await buyFrom(system, { source_url: `https://${FIRST}/plain`, claim: 'The ferry sails.' })
  const wrong: [string, Promise<Response>][] = [
    ['no token', fetch(system.url(`/api/agent/v1/verify-source/${bought.result.request_id}/evidence`))],
    ["another purchase's token", askEvidence(system, { ...bought, token: other.token })],
    ['the path of the other operation', askEvidence(system, bought, 'claims')],
    ['no id', fetch(system.url('/api/agent/v1/verify-source/x/evidence'))],
  ]
  for (const [name, asked] of wrong) {
    const answer = await asked
    t.equal(answer.status, 404, name)
    t.match(await answer.json(), { error: { code: 'not_found' } })
  }
  t.equal((await askEvidence(system, bought)).status, 200)
  await system.sql('update verification_requests set changed_at = changed_at - $1::interval where id = $2', [
    '1 day',
    bought.result.request_id,
  ])
  t.equal((await askEvidence(system, bought)).status, 404, 'the result is past its time, deleted or not')
  const old = await buyFrom(system, { source_url: `https://${SECOND}/page`, claim: 'The ferry sails again.' })
  t.equal((await askEvidence(system, old)).status, 200)
  await system.sql(
    `update captures set created_at = created_at - $1::interval
     where id = (select capture_id from verification_requests where id = $2)`,
    ['1 day', old.result.request_id],
  )
  t.equal((await askEvidence(system, old)).status, 404, 'the capture is past its time, deleted or not')
  t.equal((await askEvidence(system, other)).status, 200)
  await system.sql('delete from captures')
  t.equal((await askEvidence(system, other)).status, 404, 'the capture is gone')
})
