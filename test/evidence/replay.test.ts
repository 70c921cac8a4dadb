// From a purchase to its statement: bought offline, the evidence fetched with the recovery token, replayed by the command line and by the
// auditor that shares no code with it, and told apart from a package that was changed.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { auditPackage, withoutAuditor } from '../auditor.ts'
import { countersign } from '../client/command-line.ts'
import { withLists } from '../client/package-issuer.ts'
import { shareVerifier } from '../client/shared-verifier.ts'
import { zipOf } from '../client/zip.ts'
import { type Sold, startSystem } from '../system.ts'
import { until } from '../until.ts'
import { chunked, FIRST, openOrigin, SECOND } from './origin.ts'
import { askEvidence, type Bought, buyFrom, openPackage } from './purchases.ts'

shareVerifier(t)
const origin = await openOrigin()
const system = await startSystem({
  env: { SOURCE_CAPTURE: 'on', ASSESSMENT: 'local', VERIFIER_THREADS: '1', ...origin.env },
})
t.teardown(async () => {
  await system[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})
// Nothing is sold before the weights are loaded.
await until(async () => ((await fetch(system.url('/readyz'))).status === 200 ? true : undefined))
const folder = t.testdir({})
/** Short, because the verifier reads each sentence of it for each verdict. */
const PAGE = `<!doctype html><title>Harbour</title>
<p>The harbour was opened in 1874. Fishing ended in 1962.</p>`
const CLAIM = 'The harbour was opened in 1874.'

origin.answers.set('/moved', [`HTTP/1.1 302 Found\r\nLocation: https://${SECOND}/page\r\nContent-Length: 0\r\n\r\n`])
origin.answers.set(
  '/page',
  chunked(
    'HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n',
    gzipSync(PAGE),
    40,
  ),
)
origin.answers.set('/plain', ['HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n', PAGE])

interface Key {
  key_id: number
  use: string
  pubkey_hex: string
  vkey: string | null
}

async function keep(name: string, bought: Bought, sold?: Sold) {
  const [packaged, result, keys] = ['wacz', 'json', 'keys'].map((end) => join(folder, `${name}.${end}`)) as [
    string,
    string,
    string,
  ]
  const opened = await openPackage(await askEvidence(system, bought, sold))
  writeFileSync(packaged, opened.whole)
  writeFileSync(result, bought.bytes)
  const listed = (await (await fetch(system.url('/v1/keys'))).json()) as { keys: Key[] }
  writeFileSync(keys, JSON.stringify(listed))
  const [signing] = listed.keys.filter(({ use }) => use === 'receipt')
  const [log] = listed.keys.filter(({ use }) => use === 'checkpoint')
  const pins = ['--pin', `${signing?.key_id}:${signing?.pubkey_hex}`, '--vkey', log?.vkey ?? '']
  return { files: [packaged, result] as const, trust: ['--keys', keys], pins, opened }
}

t.test('a purchase is replayed down to its verdict, and stated', async (t) => {
  const bought = await buyFrom(system, { source_url: `https://${FIRST}/moved`, claim: CLAIM })
  const { files, trust, pins, opened } = await keep('whole', bought)
  const statement = join(folder, 'statement.md')
  const { code, stdout } = await countersign(['replay', ...files, ...trust, '--statement', statement])
  t.equal(code, 0, stdout)
  t.match(stdout, /^ok {3}page_text: these bytes give the text of the result, byte for byte$/m)
  t.match(stdout, /^ok {3}verdict: .*the verifier says the same: supports\)$/m)
  t.match(stdout, /^ok {3}checkpoint: /m)
  t.match(stdout, /\nall hold: 29 of 30 steps; for the other 1 nothing was given\n$/)
  const text = readFileSync(statement, 'utf8')
  t.match(text, /^\*\*Outcome: all 29 steps that apply hold\.\*\*/m)
  t.ok(text.includes(`https://${SECOND}/page`) && text.includes(bought.result.checked_at))

  if (withoutAuditor) t.comment(withoutAuditor)
  else t.match(await auditPackage(...files, ...pins), { code: 0, stdout: /^good: 2 hops, receipts 1 and 2\n$/ })

  await t.test('the command line fetches the same package, and overwrites no file', async (t) => {
    const file = join(folder, 'fetched.wacz')
    const recover = ['recover', system.url('/'), bought.result.request_id, '--token', '-', '--evidence', file]
    const fetched = await countersign(recover, { input: bought.token })
    t.equal(fetched.code, 0, fetched.stderr)
    t.equal(fetched.stdout, bought.bytes)
    t.ok(readFileSync(file).equals(opened.whole))
    const refused = await countersign(recover, { input: bought.token })
    t.equal(refused.code, 2)
    t.match(refused.stderr, /exists/)
  })

  await t.test('and what is changed in it is named', async (t) => {
    const all = new Map(Object.entries(opened.files))
    const manifest = opened.read('evidence/manifest.json').toString()
    all.set('evidence/manifest.json', Buffer.from(manifest.replace('"wire_bytes":', '"wire_bytes":1')))
    for (const name of ['datapackage.json', 'datapackage-digest.json']) all.delete(name)
    writeFileSync(files[0], zipOf(withLists(all)))
    const changed = await countersign(['replay', ...files, ...trust])
    t.equal(changed.code, 1)
    t.match(changed.stdout, /^FAIL manifest_signed: evidence\/manifest\.json: SHA-256 is /m)
    t.match(changed.stdout, /^-- {3}page_text: not checked: /m)
    if (!withoutAuditor) t.match(await auditPackage(...files, ...pins), { code: 1, stderr: /^BAD manifest: SHA-256/ })
  })
})

t.test('several claims, and a later purchase that shares the observation', async (t) => {
  const claims = [CLAIM, 'Fishing ended in 1962.']
  const first = await buyFrom(system, { source_url: `https://${FIRST}/plain`, claims }, 'claims')
  const ofClaims = await keep('claims', first, 'claims')
  const whole = await countersign(['replay', ...ofClaims.files, ...ofClaims.trust])
  t.equal(whole.code, 0, whole.stdout)
  t.match(whole.stdout, /^ok {3}first_result: /m)
  t.match(whole.stdout, /^ok {3}verdict: /m)

  const second = await buyFrom(system, { source_url: `https://${FIRST}/plain`, claim: CLAIM })
  t.equal(second.result.cache.hit, true)
  const later = await keep('later', second)
  const shared = await countersign(['replay', ...later.files, ...later.trust])
  t.equal(shared.code, 0, shared.stdout)
  t.match(shared.stdout, /^-- {3}first_result: not checked: another purchase shares this observation/m)
  if (!withoutAuditor)
    t.match(await auditPackage(...later.files, ...later.pins), {
      code: 0,
      stdout: /the manifest is of another purchase/,
    })

  const withoutWeights = ['--weights', t.testdir({})]
  const crossed = await countersign(['replay', ofClaims.files[0], later.files[1], ...later.trust, ...withoutWeights])
  t.equal(crossed.code, 1)
  t.match(crossed.stdout, /^FAIL result_in_chain: evidence\/receipts\.json has the receipt of serial /m)
})
