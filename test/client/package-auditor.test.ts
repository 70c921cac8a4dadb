// The independent verifier of evidence packages, test/package_auditor.py, agrees with the client: about an honest package, and about each
// class of bytes that is changed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { auditPackage, withoutAuditor as skip } from '../auditor.ts'
import { KEY_ID, pubkeyHex } from './issuer.ts'
import { VKEY } from './log-issuer.ts'
import { byHolder, byService } from './package-forgeries.ts'
import { type Issued, issuePackage } from './package-issuer.ts'
import { verdict } from './replayed.ts'

const pin = ['--pin', `${KEY_ID}:${pubkeyHex}`]
const folder = t.testdir({})

function audit(name: string, { packaged, result }: Pick<Issued, 'packaged'> & { result: unknown }, ...args: string[]) {
  const [packageFile, resultFile] = [join(folder, `${name}.wacz`), join(folder, `${name}.json`)]
  writeFileSync(packageFile, packaged)
  writeFileSync(resultFile, JSON.stringify(result))
  return auditPackage(packageFile, resultFile, ...(args.length > 0 ? args : [...pin, '--vkey', VKEY]))
}

const honest = issuePackage(verdict)

t.test('an honest package', { skip }, async (t) => {
  t.same(await audit('honest', honest), { code: 0, stdout: 'good: 2 hops, receipts 4 and 5\n', stderr: '' })
  t.match(await audit('pinned', honest, ...pin), { code: 0, stdout: /the signature of the log was not checked\n$/ })
})

const CHANGES: [name: string, bad: RegExp][] = [
  ['a header of a request', /^BAD hop 1: request$/m],
  ['a header of the page', /^BAD hop 2: head$/m],
  ['the body of the page', /^BAD hop 2: body$/m],
  ['only its framing', /^BAD hop 2: body$/m],
  ['a record is left out', /^BAD archive\/data\.warc\.gz: number of records$/m],
  ['a certificate', /^BAD connections: SHA-256$/m],
  ['the manifest', /^BAD manifest: SHA-256 is not the one that its receipt attests$/m],
  ['the signature of the manifest', /^BAD receipt of the capture: signature$/m],
  ['the proof that the manifest is in the log', /^BAD checkpoint: not of this tree$/m],
  ['the receipt of the result is that of the manifest', /^BAD result: its receipt is not in the package$/m],
  ['the head of the log, signed by another', /^BAD checkpoint: not signed by the pinned key$/m],
  ['a digest in datapackage.json', /^BAD datapackage\.json: SHA-256$/m],
  ['a file that is not listed', /^BAD datapackage\.json: lists other files than there are$/m],
  ['a certificate of another host', /^BAD certificates of hop 2: for another host$/m],
  ['a certificate that had ended', /^BAD certificates of hop 2: .*expired/ms],
  ['a certificate that the next one did not sign', /^BAD certificates of hop 2: /m],
  ['bytes that are not those of the text', /^BAD body: wire_bytes$/m],
  ['a text that the bytes do not give', /^BAD result: text_sha256$/m],
  ['another observation', /^BAD result: observation_sha256$/m],
  ['a receipt of an account', /^BAD manifest: its receipt is not of a capture$/m],
]

for (const [name, bad] of CHANGES)
  t.test(`changed: ${name}`, { skip }, async (t) => {
    const forgery = [...byHolder, ...byService].find(([one]) => one === name)?.[1]
    if (!forgery) throw new Error(`there is no change ${name}`)
    const { code, stderr } = await audit(name.replaceAll(' ', '-'), issuePackage(verdict, forgery))
    t.equal(code, 1)
    t.match(stderr, bad)
  })

t.test('a changed result', { skip }, async (t) => {
  const changes: [name: string, change: (result: Issued['result']) => void, bad: RegExp][] = [
    ['text', ({ source }) => (source.normalized_text += '.'), /^BAD result: result_sha256$/m],
    ['quote', ({ evidence }) => (evidence[0]!.quote += '.'), /^BAD result: result_sha256$/m],
    ['verdict', (result) => (result.claim_support = 'supports'), /^BAD result: result_sha256$/m],
    ['envelope', ({ receipt }) => (receipt.envelope.issued_at = '2026-11-20T09:00:04Z'), /^BAD result: canonical_env/m],
  ]
  for (const [name, change, bad] of changes) {
    const result = structuredClone(honest.result)
    change(result)
    t.match((await audit(name, { packaged: honest.packaged, result })).stderr, bad, name)
  }
})

t.test('what is no package', { skip }, async (t) => {
  for (const [name, packaged] of [
    ['cut', honest.packaged.subarray(0, -30)],
    ['none', Buffer.from('x')],
  ] as const)
    t.match(await audit(name, { packaged, result: honest.result }), { code: 1, stderr: /^BAD / })
})
