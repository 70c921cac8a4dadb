// `countersign replay`: its lines, its JSON, its exit status, and the statement that it writes, with the verifier and its weights.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { countersign } from './command-line.ts'
import { issueResult, KEY_ID, pubkeyHex, sha256 } from './issuer.ts'
import { VKEY } from './log-issuer.ts'
import { type Forgery, issuePackage } from './package-issuer.ts'
import { listedKeys, verdict } from './replayed.ts'
import { shareVerifier } from './shared-verifier.ts'
import { verdictOfVerifier } from './verifier-verdict.ts'

const pin = `${KEY_ID}:${pubkeyHex}`
shareVerifier(t)
const ofVerifier = await verdictOfVerifier()
const ofOther = { ...verdict, methodology_version: 'retrieval-1 literal-11+gate-4' }
const folder = t.testdir({ 'keys.json': JSON.stringify(listedKeys) })
const keys = join(folder, 'keys.json')

/** Writes a package and its result, and answers their paths. */
function files(name: string, of = ofOther, forgery: Forgery = {}): [string, string] {
  const { packaged, result } = issuePackage(of, forgery)
  const paths: [string, string] = [join(folder, `${name}.wacz`), join(folder, `${name}.json`)]
  writeFileSync(paths[0], packaged)
  writeFileSync(paths[1], JSON.stringify(result))
  return paths
}

const replay = (paths: readonly string[], ...args: string[]) => countersign(['replay', ...paths, ...args])

t.test('a package holds, down to the verdict: exit 0', async (t) => {
  const paths = files('honest', ofVerifier)
  const { code, stdout, stderr } = await replay(paths, '--keys', keys)
  t.same([code, stderr], [0, ''], stdout)
  const lines = stdout.trimEnd().split('\n')
  t.match(lines[0], /^ok {3}package: the package is a whole ZIP archive$/)
  t.match(stdout, /^ok {3}checkpoint: the log signed/m)
  t.match(stdout, /^ok {3}page_text: these bytes give the text of the result, byte for byte$/m)
  t.match(stdout, /^ok {3}verdict: .* \(the verifier says the same: contradicts\)$/m)
  t.equal(lines.at(-1), 'all hold: 29 of 30 steps; for the other 1 nothing was given')
})

t.test('the verdict of another assessor is not made again, and that is no fault', async (t) => {
  const paths = files('other')
  const { code, stdout } = await replay(paths, '--pin', pin, '--vkey', VKEY)
  t.match(stdout, /^-- {3}verdict: not checked: another assessor gave the verdict \(retrieval-1 literal-11\+gate-4\)/m)
  t.equal(code, 0)
  const withoutKey = await replay(paths, '--pin', pin)
  t.match(withoutKey.stdout, /^-- {3}checkpoint: not checked: no verifier key of the log was given/m)
  t.equal(withoutKey.code, 0)
})

t.test('what differs is named, and what rests on it is not checked: exit 1', async (t) => {
  const paths = files('forged', ofOther, { records: (all) => (all[4]!.block = all[4]!.block.subarray(0, -1)) })
  const { code, stdout } = await replay(paths, '--keys', keys)
  t.equal(code, 1)
  t.match(stdout, /^FAIL body_of_hop_2: response body of hop 2: SHA-256 differs from the manifest: /m)
  t.match(stdout, /^-- {3}page_bytes: not checked: it rests on body_of_hop_2, which does not hold$/m)
  t.match(stdout, /^-- {3}quotes: not checked: it rests on page_text, which was not checked$/m)
  const asJson = JSON.parse((await replay(paths, '--keys', keys, '--json')).stdout)
  t.equal(asJson.ok, false)
  t.match(
    asJson.steps.find(({ name }: { name: string }) => name === 'page_text'),
    { state: 'not_checked', ok: false, cause: 'blocked' },
  )
})

t.test('text of a package cannot write lines of its own', async (t) => {
  const paths = files('lines', ofOther, { capture: { requested_by: 'a\n\u001b[2Kok   all' } })
  const { stdout } = await replay(paths, '--keys', keys)
  t.notOk(stdout.includes('\u001b'))
  t.match(stdout, /^FAIL manifest_signed: the receipt was made for "a\\n\\u001b\[2Kok {3}all", not by a capture$/m)
})

t.test('weights that are not there leave the verdict unchecked: exit 2', async (t) => {
  const paths = files('weights', ofVerifier)
  const { code, stdout } = await replay(paths, '--keys', keys, '--weights', t.testdir({}))
  t.match(stdout, /^-- {3}verdict: not checked: No usable weights in .*npm install countersign-verifier/m)
  t.match(stdout, /\nincomplete: 28 of 30 steps hold, 2 were not checked, and nothing that differs was found\n$/)
  t.equal(code, 2)
})

t.test('wrong usage: exit 2', async (t) => {
  const paths = files('usage')
  const foreign = join(folder, 'foreign.json')
  const [receiptKey, checkpointKey] = listedKeys.keys
  writeFileSync(foreign, JSON.stringify([receiptKey, { ...checkpointKey, pubkey_hex: pubkeyHex }]))
  const cases: [args: string[], words: RegExp][] = [
    [[...paths], /Without --keys or --pin/],
    [[paths[0], '--pin', pin], /It is: countersign replay PACKAGE RESULT/],
    [[paths[0], join(folder, 'none.json'), '--pin', pin], /Cannot read .*none\.json/],
    [
      [paths[1], paths[0], '--pin', pin],
      /The two are swapped: \S+usage\.wacz is a package, and \S+usage\.json is not\. It is: countersign replay \S+\.wacz \S+\.json\n/,
    ],
    [['-', '-', '--pin', pin], /Standard input is either package or result/],
    [[...paths, '--pin', pin, '--vkey', 'x'], /x is not of the form/],
    [[...paths, '--keys', foreign], /The vkey of key 2 in --keys is of another key/],
    [[...paths, '--pin', pin, '--statement', keys], /Cannot use \S+keys\.json: it exists, and is not replaced\n/],
    [[...paths, '--pin', pin, '--statement', join(folder, 'none/a.md')], /Cannot use .*none\/a\.md: ENOENT/],
    [
      ['no.wacz', 'no.json', '--pin', pin, '--statement', join(folder, 'none/a.md')],
      /Cannot use .*none\/a\.md: ENOENT/,
    ],
  ]
  for (const [args, words] of cases) {
    const { code, stderr, stdout } = await countersign(['replay', ...args])
    t.same([code, stdout], [2, ''], String(words))
    t.match(stderr, words)
  }
})

t.test('the statement says what was captured, by what, the digests, the steps and their limits', async (t) => {
  const paths = files('statement')
  const statement = join(folder, 'statement.md')
  t.equal((await replay(paths, '--keys', keys, '--statement', statement)).code, 0)
  const text = readFileSync(statement, 'utf8')
  t.match(text, /^\*\*Outcome: all 28 steps that apply hold\.\*\* For 2 more nothing was given/m)
  const result = JSON.parse(readFileSync(paths[1], 'utf8'))
  for (const stated of [
    sha256(readFileSync(paths[0])),
    result.source.final_url,
    result.checked_at,
    result.source.content_sha256,
    result.source.text_sha256,
    result.receipt.envelope.result_sha256,
    result.claim,
    result.evidence[0].quote,
    result.receipt.attestation.receipt_hash,
    result.methodology_version,
    'text-4+parse5-8.1.1',
    '`countersign 0.1.0`, Node ',
    'log.test/receipts',
    '902(13)',
    '28 U.S.C. § 1746',
  ])
    t.ok(text.includes(stated), stated)
  for (const part of [
    /^- Name: _+$/m,
    /Signature: _+$/m,
    /No time stamp of another authority was proved/,
    /^- The sender: TLS proves/m,
  ])
    t.match(text, part)
})

t.test('a statement on what does not hold says so first, and states nothing that is not proved', async (t) => {
  const paths = files('unproved', ofOther, {
    files: (all) =>
      all.set('evidence/manifest.json', Buffer.from(String(all.get('evidence/manifest.json')).replace('301', '302'))),
  })
  const statement = join(folder, 'unproved.md')
  t.equal((await replay(paths, '--keys', keys, '--statement', statement)).code, 1)
  const text = readFileSync(statement, 'utf8')
  t.match(text, /^\*\*Outcome: 1 of \d+ steps do not hold \(manifest_signed\)\.\*\*/m)
  t.notMatch(text, /all \d+ steps that apply hold/)
  t.notMatch(text, /kelby\.test/)
  t.match(text, /^\| capture \| not proved \|/m)
  t.match(text, /^\| result \| 4 \|/m)
  t.match(text, /^\| manifest_signed \| .* \| \*\*does not hold\*\*: /m)
})

t.test('a statement repeats nothing of a result that is not signed, nor a proof that leads nowhere', async (t) => {
  const [packaged, signed] = files('unsigned', ofOther, {
    files(all) {
      const receipts = JSON.parse(String(all.get('evidence/receipts.json')))
      receipts.capture.inclusion.hashes[0] = '0'.repeat(64)
      all.set('evidence/receipts.json', Buffer.from(JSON.stringify(receipts)))
    },
  })
  const changed = JSON.parse(readFileSync(signed, 'utf8'))
  changed.claim = 'The harbour of Kelby was opened in 1874.'
  writeFileSync(signed, JSON.stringify(changed))
  const statement = join(folder, 'unsigned.md')
  t.equal((await replay([packaged, signed], '--keys', keys, '--statement', statement)).code, 1)
  const text = readFileSync(statement, 'utf8')
  t.match(text, /^\*\*Outcome: 2 of \d+ steps do not hold \(result_signed, manifest_in_chain\)/m)
  for (const unproved of [changed.claim, changed.methodology_version, changed.receipt.envelope.result_sha256])
    t.notOk(text.replace(/^\| verdict \|.*$/m, '').includes(unproved), unproved)
  t.notMatch(text, /log\.test/)
})

t.test('a package without a result of it', async (t) => {
  const [packaged] = files('alone')
  const other = join(folder, 'another.json')
  writeFileSync(other, JSON.stringify(issueResult()))
  const { code, stdout } = await replay([packaged, other], '--keys', keys)
  t.equal(code, 1)
  t.match(
    stdout,
    /^FAIL result_in_chain: evidence\/receipts\.json has the receipt of serial 4, and the result has serial 42$/m,
  )
})
