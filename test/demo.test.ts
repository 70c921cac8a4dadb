// The demo does what README says, and the shell lines of docs/guide/auditing.md check its receipt with openssl alone.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { modelEnv, openMessagesServer, SILENT, verdictOn } from './assessment/semantic/messages-server.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..')

t.test('a whole purchase, printed step by step, and its receipt checked by openssl', async (t) => {
  const data = await mkdtemp(join(tmpdir(), 'countersign-demo-test-'))
  t.teardown(() => rm(data, { recursive: true, force: true }))
  const { stdout } = await run(process.execPath, ['server/demo.ts'], {
    cwd: root,
    env: { ...process.env, DATA_DIR: data, ASSESSMENT: 'local', VERIFIER_THREADS: '1' },
  })
  for (const line of [
    /^Claim {3}The harbour was opened in 1874\.\nPage {4}https:\/\/harbour\.test\/$/m,
    /402 +0\.03 USDC on eip155:84532/,
    /202 +Retry-After/,
    /verdict {2}supports\n +The claim is .*small model/,
    /\| «The harbour was opened in 1874 [^»]*»/,
    /claim {4}The lighthouse is 35 metres high\.\n +verdict {2}contradicts\n +contradicts: ".*21 metres/,
    /claim {4}The harbour was the largest in the county\.\n +verdict {2}insufficient_evidence\n/,
    /claim {4}The water at the beach is clean enough to drink\.\n +verdict {2}insufficient_evidence\n/,
    /ok +recomputed: the verifier says the same: supports\n/,
    /\n {2}npx node client\/cli\.ts buy .*\n {2}npx node client\/cli\.ts mcp .*\n {2}open http:\/\/127\.0\.0\.1:\d+\/verify\n$/,
  ])
    t.match(stdout, line)
  t.match(stdout, /e1 +\[\d+, \d+\) supports: "The harbour was opened in 1874/)
  t.notMatch(stdout, '\u001b', 'no colours in a pipe')
  t.match(stdout, /replay: true, settlement success: true/)
  t.notMatch(stdout, /FAIL/)
  for (const check of ['signature', 'receipt_hash', 'canonical_envelope', 'result_sha256', 'evidence_quotes'])
    t.match(stdout, new RegExp(`ok +${check}\\n`))

  const next = /^ {2}npx (node client\/cli\.ts verify .*)$/m.exec(stdout)?.[1] ?? 'exit 1'
  const again = await run('bash', ['-c', next], { cwd: root })
  t.match(again.stdout, /^Claim: +The harbour was opened in 1874\.\n[\s\S]*\ngood\n$/)

  const folder = await mkdtemp(join(tmpdir(), 'countersign-openssl-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const attestation = stdout.match(/^\{"v":1.*\}$/m)?.[0] ?? ''
  const guide = await readFile(join(root, 'docs/guide/auditing.md'), 'utf8')
  const script = guide.match(/```sh\n(A=attestation\.json[\s\S]*?)```/)?.[1] ?? 'exit 1'
  const check = async (text: string) => {
    await writeFile(join(folder, 'attestation.json'), `${text}\n`)
    return run('bash', ['-c', script], { cwd: folder }).catch((error: { stdout: string }) => error)
  }
  const good = await check(attestation)
  t.match(good.stdout, 'Signature Verified Successfully')
  t.match(good.stdout, JSON.parse(attestation).receipt_hash)
  t.notMatch((await check(attestation.replace('"serial":1', '"serial":2'))).stdout, 'Signature Verified Successfully')
})

t.test('a model of the environment gives the verdicts', async (t) => {
  const server = await openMessagesServer((asked) =>
    asked.claim.includes('1874') ? verdictOn(asked, 'opened in 1874', 'supports') : SILENT,
  )
  t.teardown(() => server[Symbol.asyncDispose]())
  const data = await mkdtemp(join(tmpdir(), 'countersign-demo-test-'))
  t.teardown(() => rm(data, { recursive: true, force: true }))
  const { stdout } = await run(process.execPath, ['server/demo.ts'], {
    cwd: root,
    env: { ...process.env, ...modelEnv(server), DATA_DIR: data },
  })
  t.match(stdout, / by {4}semantic: /)
  t.match(stdout, /verdict {2}supports\n/)
  t.notMatch(stdout, 'recomputed', 'only the local verifier can be recomputed')
})
