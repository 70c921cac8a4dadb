// The package `countersign-verifier`, packed and installed by npm beside the packed client in an empty folder: on each version of Node
// a verdict is recomputed, and a package of evidence replayed, from the tarballs alone. Needs the registry of packages.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { assessLocally } from '../../workers/assessment/local/assessment.ts'
import { procedureOf } from '../../workers/assessment/local/settings.ts'
import { loadVerifier } from '../../workers/assessment/local/verifier.ts'
import { readVerifierFiles, settings } from '../../workers/assessment/local/weights.ts'
import { countersign } from './command-line.ts'
import { issueResult, KEY_ID, pubkeyHex, sha256 } from './issuer.ts'
import { issuePackage } from './package-issuer.ts'
import { install, installClient, MAJORS, nodeOf, pack, ROOT, run } from './packing.ts'
import { listedKeys } from './replayed.ts'
import { shareVerifier } from './shared-verifier.ts'
import { verdictOfVerifier } from './verifier-verdict.ts'

const PACKAGE = 'workers/assessment/local'
/** What its sources import. */
const SOURCES = ['package.json', PACKAGE, 'workers/text', 'server/interface', 'server/errors.ts']
const TEXT = `The harbour of Kelby \u{1F600}
The harbour of Kelby was opened in 1874 by the county engineer Agnes Moor.`
const pin = `${KEY_ID}:${pubkeyHex}`

shareVerifier(t)
const verifier = await loadVerifier(readVerifierFiles())
t.teardown(() => verifier[Symbol.asyncDispose]())

type Change = NonNullable<NonNullable<Parameters<typeof issueResult>[0]>['result']>

const verdicts = new Map<string, ReturnType<typeof assessLocally>>()

/** The verdict on a claim, which is made once. */
function assess(claim: string) {
  const made = verdicts.get(claim) ?? assessLocally(verifier, TEXT, claim)
  verdicts.set(claim, made)
  return made
}

/** A signed result with the verdict of the local verifier, changed by a dishonest service before it was signed. */
async function issueLocal(claim: string, change: Change = () => {}) {
  const { quotes, claim_support, explanation, risk_flags } = await assess(claim)
  return issueResult({
    result(draft) {
      const { content_sha256 } = draft.source
      const digests = { source_sha256: content_sha256, text_sha256: sha256(TEXT) }
      Object.assign(draft.source, { normalized_text: TEXT, text_sha256: digests.text_sha256 })
      const evidence = quotes.map((quote, i) => ({ evidence_id: `e${i + 1}`, ...quote, ...digests }))
      Object.assign(draft, { claim, claim_support, explanation, evidence })
      draft.risk_flags = [...risk_flags, 'cached_copy']
      draft.methodology_version = `retrieval-1 ${procedureOf(settings)}+gate-3`
      change(draft)
    },
  })
}

const honest = await issueLocal('The harbour of Kelby was opened in 1935.')
const verify = (result: object, ...args: string[]) =>
  countersign(['verify', '-', '--pin', pin, '--recompute', ...args], { input: JSON.stringify(result) })

t.test('the same verdict, explanation, quotes and places: exit 0', async (t) => {
  t.match(await verify(honest), { code: 0, stderr: '', stdout: /ok {3}recomputed: .*contradicts\ngood\n$/ })
  const { stdout } = await verify(honest, '--json')
  t.match(JSON.parse(stdout).checks.at(-1), { name: 'recomputed', ok: true })
})

t.test('what differs is named, although the signature is good: exit 1', async (t) => {
  const changes: [words: RegExp, change: Change][] = [
    [/explanation: /, (draft) => Object.assign(draft, { explanation: 'The page says otherwise.' })],
    [
      /claim_support: the file says insufficient_evidence.*stance of quote 1/,
      (draft) => {
        draft.claim_support = 'insufficient_evidence'
        for (const item of draft.evidence) item.stance = 'mentions'
      },
    ],
    [
      /quote 1: .*place of quote 1: /,
      (draft) => {
        const [item] = draft.evidence
        if (item) Object.assign(item, { quote: item.quote.slice(4), start: item.start + 4 })
      },
    ],
    [
      /risk flags: the file says page_checks_claims, recomputed it is none/,
      (draft) => {
        draft.risk_flags = ['page_checks_claims']
      },
    ],
  ]
  for (const [words, change] of changes) {
    const { code, stdout } = await verify(await issueLocal(honest.claim, change))
    t.equal(code, 1)
    t.match(stdout, new RegExp(`FAIL recomputed: .*${words.source}`))
    t.match(stdout, /ok {3}signature/)
  }
})

t.test('a file that does not prove is recomputed all the same: exit 1', async (t) => {
  const { code, stdout } = await verify({ ...honest, served_at: '2026-11-20T09:00:09.500Z' })
  t.equal(code, 1)
  t.match(stdout, /FAIL result_sha256[\s\S]*ok {3}recomputed[\s\S]*BAD/)
})

t.test('what cannot be recomputed says why in one line: exit 2', async (t) => {
  const empty = t.testdir({})
  const other = (methodology_version: string) => ({ ...honest, methodology_version })
  const cases: [words: RegExp, ran: ReturnType<typeof verify>][] = [
    [/^Another assessor gave this verdict \(test-1\)/, verify(issueResult())],
    [
      /^Other weights gave this verdict: it names local-1\+0{16}/,
      verify(other(`r-1 local-1+${'0'.repeat(16)}+gate-3`)),
    ],
    [/^No usable weights in .*npm install countersign-verifier/, verify(honest, '--weights', empty)],
    [/^Only a completed result can be recomputed/, verify(honest.receipt)],
  ]
  for (const [words, ran] of cases) {
    const { code, stderr } = await ran
    t.equal(code, 2)
    t.match(stderr.replace(/^countersign: /, ''), words)
    t.equal(stderr.trimEnd().split('\n').length, 1, stderr)
  }
})

t.test('the tarballs in an empty folder', async (t) => {
  const { project, bin } = await installClient()
  const { tarball } = await pack(PACKAGE, SOURCES)
  const { code, stderr, isAway } = await install(project, tarball)
  if (!isAway) t.equal(code, 0, stderr)
  writeFileSync(join(project, 'result.json'), JSON.stringify(honest))
  const { packaged, result } = issuePackage(await verdictOfVerifier())
  writeFileSync(join(project, 'package.wacz'), packaged)
  writeFileSync(join(project, 'captured.json'), JSON.stringify(result))
  writeFileSync(join(project, 'keys.json'), JSON.stringify(listedKeys))
  const own = join(project, 'node_modules/countersign-verifier')
  const args = ['verify', 'result.json', '--pin', pin, '--recompute']
  for (const major of MAJORS) {
    const node = isAway ? null : await nodeOf(major)
    const skip = node === null && `Node ${major} is not there, or the registry of packages cannot be reached`
    await t.test(`on Node ${major}`, { skip }, async (t) => {
      const path = { PATH: `${dirname(String(node))}:${process.env.PATH}` }
      t.match(await run(bin, args, project, path), { code: 0, stdout: /ok {3}recomputed: .*contradicts\ngood\n$/ })
      const replaying = ['replay', 'package.wacz', 'captured.json', '--keys', 'keys.json']
      const statement = `statement-${major}.md`
      t.match(await run(bin, [...replaying, '--statement', statement], project, path), {
        code: 0,
        stderr: '',
        stdout: /ok {3}page_text: [\s\S]*ok {3}verdict: .*contradicts[\s\S]*\nall hold: 29 of 30 steps;/,
      })
      t.match(readFileSync(join(project, statement), 'utf8'), /Outcome: all 29 steps/)
      renameSync(own, `${own}-away`)
      const without = await run(bin, args, project, path)
      const replayed = await run(bin, replaying, project, path)
      renameSync(`${own}-away`, own)
      t.match(without, { code: 2, stderr: /npm install countersign-verifier\n$/ })
      t.match(replayed, { code: 2, stdout: /-- {3}page_bytes: not checked: .*npm install countersign-verifier\n/ })
      t.match(replayed.stdout, /\nincomplete: 26 of 30 steps hold, 4 were not checked/)
    })
  }
  // The option names a folder, in which no version of Node has a part.
  const weights = join(own, 'dist/model')
  if (!isAway) t.match(await run(bin, [...args, '--weights', weights], project), { code: 0 })
  t.notOk(existsSync(join(ROOT, PACKAGE, 'dist')), 'packing leaves nothing in the checkout')
})
