// Time-stamp authorities and evidence packages: once a head of the log over both receipts is stamped, packages lead to that head and hold
// the replies, and a replay says when the capture existed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openTimestamping } from '../../server/receipts/timestamping.ts'
import { auditPackage, withoutAuditor } from '../auditor.ts'
import { countersign } from '../client/command-line.ts'
import { PAGE, startSystem } from '../system.ts'
import { Certificates, openAuthority, withoutOpenssl as skip } from '../time-stamp-authority.ts'
import { FIRST, openOrigin } from './origin.ts'
import { askEvidence, buyFrom, openPackage } from './purchases.ts'

t.test('a package leads to the stamped head', { skip }, async (t) => {
  using certificates = new Certificates()
  certificates.issue('one')
  certificates.issue('two')
  await using one = await openAuthority(certificates, 'one')
  await using two = await openAuthority(certificates, 'two')
  await using origin = await openOrigin()
  const ca = certificates.path('root.pem')
  const stamping = { TIMESTAMP_URLS: `${one.url}, ${two.url}`, TIMESTAMP_CA_FILE: ca }
  await using system = await startSystem({ env: { SOURCE_CAPTURE: 'on', ...origin.env, ...stamping } })
  const { api } = system.service
  await using asking = openTimestamping(
    { ...api, config: { ...api.config, timestamps: api.config.timestamps! } },
    { lookS: 0 },
  )
  origin.answers.set('/page', ['HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n', PAGE])
  const bought = await buyFrom(system, {
    source_url: `https://${FIRST}/page`,
    claim: 'The harbour was opened in 1874.',
  })
  const unstamped = await openPackage(await askEvidence(system, bought))
  t.notOk(Object.keys(unstamped.files).some((name) => name.startsWith('evidence/timestamps/')))

  const append = (digit: string) =>
    api.chain.append({ subjectSha256: digit.repeat(64), label: null, requestedBy: 'tester' })
  await append('1')
  t.equal(await asking.runOnce(), 2)
  await append('2')

  const stamped = await openPackage(await askEvidence(system, bought))
  t.same(
    Object.keys(stamped.files).filter((name) => name.startsWith('evidence/timestamps/')),
    ['1.tsr', '1.note', '2.tsr', '2.note'].map((name) => `evidence/timestamps/${name}`),
  )
  const { result, capture } = stamped.json('evidence/receipts.json')
  for (const { inclusion, checkpoint } of [result, capture]) {
    t.equal(inclusion.tree_size, 3, 'the head that was stamped, not that of now')
    t.equal(checkpoint, stamped.read('evidence/timestamps/1.note').toString())
  }
  t.ok(stamped.whole.equals((await openPackage(await askEvidence(system, bought))).whole), 'the same bytes again')

  const folder = t.testdir({ 'result.json': bought.bytes })
  const [packaged, keys] = [join(folder, 'package.wacz'), join(folder, 'keys.json')]
  writeFileSync(packaged, stamped.whole)
  writeFileSync(keys, await (await fetch(system.url('/v1/keys'))).text())
  const replay = (...args: string[]) =>
    countersign(['replay', packaged, join(folder, 'result.json'), '--keys', keys, '--weights', folder, ...args])
  const { keys: listed } = (await (await fetch(system.url('/v1/keys'))).json()) as { keys: Record<string, string>[] }
  const [signing] = listed.filter(({ use }) => use === 'receipt')
  if (!withoutAuditor) {
    const pin = ['--pin', `${signing?.key_id}:${signing?.pubkey_hex}`, '--timestamp-ca', ca]
    const audited = await auditPackage(packaged, join(folder, 'result.json'), ...pin)
    t.match(
      audited,
      { code: 0, stdout: /^good: 1 hops, receipts 1 and 2; .*; 2 timestamps by openssl ts\n$/ },
      audited.stderr,
    )
  }
  const { code, stdout } = await replay('--timestamp-ca', ca)
  t.match(
    stdout,
    /^ok {3}timestamps: .* \(the receipt of the manifest existed at 20.*Z, by .*Test (one|two); 1 more replies/m,
  )
  t.match(stdout, /^ok {3}checkpoint: /m)
  t.equal(code, 0, stdout)
  const withoutRoot = await replay()
  t.match(withoutRoot.stdout, /^-- {3}timestamps: not checked: no trusted root leads to .*Test one/m)
  t.equal(withoutRoot.code, 0)
})
