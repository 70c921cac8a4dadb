// Replays of evidence packages: an honest one holds step by step, and each class of bytes that is changed, by a holder of the package or
// by the service before it signs, is named by the step that it concerns. What rests on that step is not said to hold.

import { gzipSync } from 'node:zlib'
import t from 'tap'
import { Unchecked } from '../../client/evidence/steps.ts'
import { LITERAL_PROCEDURE } from '../../workers/assessment/procedure.ts'
import { issueResult } from './issuer.ts'
import { issuerKey } from './log-issuer.ts'
import { byHolder, byService } from './package-forgeries.ts'
import { issuePackage, withLists } from './package-issuer.ts'
import { replay, verdict } from './replayed.ts'
import { zipOf } from './zip.ts'

const honest = issuePackage(verdict)

t.test('an honest package holds, step by step', async (t) => {
  const { ok, steps, failed, unchecked } = await replay(honest)
  t.same([ok, failed, unchecked], [true, [], []])
  t.equal(new Set(steps.map(({ name }) => name)).size, steps.length)
  t.same(steps.at(-1), {
    name: 'timestamps',
    proves: 'a time-stamp authority signed when the head of the log existed that the proof leads to',
    state: 'not_checked',
    ok: false,
    detail: 'the package has none: the times are by the clock of the service',
    cause: 'optional',
  })
})

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
      ({ source }) => (source.normalized_text = source.normalized_text.replace('Kelby', 'Selby')),
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
    /^read by text-4.*, and the manifest names retrieval-1\+text-2.*: the text is the same$/,
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
