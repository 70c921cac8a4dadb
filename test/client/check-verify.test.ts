// `countersign check --verify` against the whole service with a model: what is bought, what it costs, how a verdict changes
// a citation in every format, and that no verdict is bought twice: by a run after a kill, by another run, or for another
// report.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { generatePrivateKey } from 'viem/accounts'
import { VERDICT_WORDS } from '../../client/verdict-words.ts'
import { verifyResult } from '../../client/verification.ts'
import { modelEnv, openMessagesServer, type Script, SILENT, verdictOn } from '../assessment/semantic/messages-server.ts'
import { noBrowser, overflow, picture, shown as seen, seriousFindings, sharedBrowser, visit } from '../browser.ts'
import { faultsOfCard } from '../pages/card.ts'
import { register } from '../quotes/harness.ts'
import { startSystem } from '../system.ts'
import { until } from '../until.ts'
import { linesOf } from './batch-desk.ts'
import { countersign } from './command-line.ts'
import { answerWith, play } from './counterpart.ts'

const right: Script = (asked) => {
  if (asked.claim.includes('1901')) return verdictOn(asked, 'opened in 1874', 'contradicts')
  if (asked.claim.includes('railway')) return SILENT
  return verdictOn(asked, 'three piers', 'supports')
}

const model = await openMessagesServer(right)
t.teardown(() => model[Symbol.asyncDispose]())
const system = await startSystem({ env: modelEnv(model, { RATE_LIMIT_PER_MINUTE: '0' }) })
t.teardown(() => system[Symbol.asyncDispose]())
const reader = await register(system, 'pro')
const page = system.site.url('/harbour')
const folder = await mkdtemp(join(tmpdir(), 'countersign-check-'))
t.teardown(() => rm(folder, { recursive: true }))
const path = (name: string) => join(folder, name)
for (const [name, secret] of Object.entries({ 'key.txt': reader.key, 'wallet.key': generatePrivateKey() }))
  writeFileSync(path(name), secret, { mode: 0o600 })

const SENTENCES = {
  right: `Ships find [three piers](${page}) there.`,
  wrong: `It was [opened in 1901](${page}).`,
  // Shares a word with the page, so that the model is called.
  silent: `A [railway](${page}) led to the harbour.`,
}
const report = (...sentences: string[]) => `${sentences.join('\n\n')}\n`
writeFileSync(
  path('report.md'),
  report(
    `It has "three piers and a lighthouse" [there](${page}).`,
    SENTENCES.right,
    SENTENCES.wrong,
    `${SENTENCES.silent} Nobody knows.`,
    `The [minutes](${system.site.url('/minutes')}) are lost.`,
  ),
)

const env = {
  COUNTERSIGN_SERVICE: system.url('/'),
  COUNTERSIGN_KEY: path('key.txt'),
  COUNTERSIGN_WALLET: path('wallet.key'),
}
const verify = (name: string, options: string[], more: Parameters<typeof countersign>[1] = {}) =>
  countersign(['check', path(name), '--verify', '--verdicts', path('verdicts'), ...options], { env, ...more })
const settled = async () =>
  (await system.sql(`select count(*)::int from payment_ledger where outcome = 'settled'`))[0]?.count as number
interface Shown {
  status: string
  level: string
  verdict: { claim_support: string; receipt_serial: number; bought_now: boolean } | null
}
const shown = (stdout: string) => JSON.parse(stdout) as { ok: boolean; verdicts: object; citations: Shown[] }

t.test('without a terminal no question is asked and nothing is bought', async (t) => {
  for (const [name, options, more] of [
    ['report.md', ['--budget', '1'], {}],
    ['report.md', ['--yes'], {}],
    ['report.md', ['--yes', '--budget', 'much'], {}],
    ['report.md', ['--yes', '--budget', '1', '--wallet', path('none')], {}],
  ] as const)
    t.match(await verify(name, [...options], more), { code: 2, stdout: '' }, options.join(' '))
  const piped = ['check', '-', '--verify', '--budget', '1']
  t.match(await countersign(piped, { env, input: 'x' }), { code: 2, stderr: /no terminal.*give --yes/ })
  t.equal(system.site.requests.length, 0, 'no page was asked for')
  t.notOk(existsSync(path('verdicts')))
})

t.test('the question names the number of verdicts and their price, and "no" buys nothing', async (t) => {
  const { code, stdout, stderr } = await verify('report.md', ['--budget', '0.06'], { typed: 'n\n' })
  t.equal(code, 1, 'a dead page')
  t.match(stderr, 'The quote check cannot settle 3 citations. 3 verdicts at 0.03 USDC: 0.09 USDC.\n')
  t.match(stderr, 'The service is in offline mode: no money moves.\nBudget 0.06 USDC: enough for 2 verdicts.')
  t.match(stderr, /Paid to 0x\w{40} on eip155:84532, from 0x\w{40}\.\nBuy 3 verdicts\? \[y\/N\]/)
  t.match(stdout, '3 verdicts: 0 bought for 0.00 USDC, 3 missing.\n')
  t.match(stdout, '5 citations, 2 pages: 1 ok, 3 unverified, 1 dead.')
  t.equal(await settled(), 0)
})

t.test('a budget that is reached leaves the rest unchecked', async (t) => {
  const { code, stdout } = await verify('report.md', ['--budget', '0.06', '--json'], { typed: 'y\n' })
  t.equal(code, 1)
  const { verdicts, citations } = shown(stdout)
  t.match(verdicts, { wanted: 3, bought: 2, kept: 0, missing: 1, spent_usd: '0.06' })
  t.equal(citations.filter(({ status }) => status === 'unchecked').length, 1)
  t.equal(await settled(), 2)
})

t.test('a run that is killed goes on, and pays for nothing twice', async (t) => {
  const held = Promise.withResolvers<void>()
  model.script = async (...asked) => {
    await held.promise
    return right(...asked)
  }
  const cli = join(import.meta.dirname, '../../client/cli.ts')
  const args = ['check', path('report.md'), '--verify', '--verdicts', path('verdicts'), '--budget', '0.03', '--yes']
  const child = spawn(process.execPath, [cli, ...args], { env: { ...process.env, ...env }, stdio: 'ignore' })
  const ended = once(child, 'close')
  const working = async () =>
    (await system.sql(`select count(*)::int from verification_requests where state in ('accepted', 'observed')`))[0]
      ?.count
  // The model delays its answer, so a purchase that has begun stays in progress; without a purchase the command ends.
  await until(async () => (await working()) !== 0 || child.exitCode !== null)
  child.kill('SIGKILL')
  t.same(await ended, [null, 'SIGKILL'])
  held.resolve()
  model.script = right
  const { code, stdout, stderr } = await verify('report.md', ['--budget', '0.03', '--yes', '--json'])
  t.equal(code, 1, stderr)
  const { verdicts, citations } = shown(stdout)
  t.match(verdicts, { wanted: 3, bought: 1, kept: 2, missing: 0, spent_usd: '0.03' })
  t.same(
    citations.map(({ status, level, verdict }) => [status, level, verdict?.claim_support]),
    [
      ['ok', 'none', undefined],
      ['supported', 'none', 'supports'],
      ['contradicted', 'error', 'contradicts'],
      ['unsupported', 'error', 'insufficient_evidence'],
      ['dead', 'error', undefined],
    ],
  )
  t.equal(await settled(), 3)
})

t.test('known verdicts cost nothing, in every format', async (t) => {
  const text = await verify('report.md', ['--budget', '1', '--yes'])
  t.match(text, { code: 1, stderr: '' })
  t.match(
    text.stdout,
    /contradicted +5:8 [\s\S]*verdict: contradicts “.*opened in 1874.*” \(receipt \d+\)\n +https:.*#:~:text=/,
  )
  t.match(
    text.stdout,
    /3 verdicts: 0 bought for 0\.00 USDC, 3 from earlier runs\. Results and receipts are in .*verdicts/,
  )
  t.match(text.stdout, '1 ok, 1 supported, 1 dead, 1 contradicted, 1 unsupported. some do not hold\n')
  const sarif = JSON.parse((await verify('report.md', ['--budget', '1', '--yes', '--format', 'sarif'])).stdout)
  const { results, tool } = sarif.runs[0]
  t.same(
    results.map(({ ruleId, level }: { ruleId: string; level: string }) => `${ruleId} ${level}`),
    ['contradicted error', 'unsupported error', 'dead error'],
  )
  for (const { ruleId, ruleIndex } of results) t.equal(tool.driver.rules[ruleIndex].id, ruleId)
  t.ok(results[0].properties.receipt_serial >= 1)
  const junit = await verify('report.md', ['--budget', '1', '--yes', '--format', 'junit'])
  t.match(
    junit.stdout,
    /<failure type="contradicted" message="The page says otherwise: [^"]+">[^<]+\nreceipt \d+<\/failure>/,
  )
  t.equal(junit.stdout.match(/<skipped\/>/g), null)
  t.equal(await settled(), 3)
})

t.test(
  'the page of a check: a card for each verdict, from disk, without the network',
  { skip: noBrowser },
  async (t) => {
    const file = path('check.html')
    const known = await verify('report.md', ['--budget', '1', '--yes', '--html', file])
    t.match(known, { code: 1, stderr: '' })
    const narrow = { viewport: { width: 360, height: 740 } } as const
    await using opened = await visit(await sharedBrowser(), pathToFileURL(file).href, narrow)
    const { page: opening, requests, complaints } = opened
    t.equal(await seen(opening, '#standing'), '2 of 5 citations hold')
    const verdicts = await opening.locator('.result-card .claim h2').allTextContents()
    for (const [n, words] of [
      VERDICT_WORDS.supports,
      VERDICT_WORDS.contradicts,
      VERDICT_WORDS.insufficient_evidence,
    ].entries())
      t.ok(verdicts[n]?.endsWith(words), words)
    t.match(
      await opening.locator('.result-card').nth(1).textContent(),
      /opened in 1901[\s\S]*opened in 1874[\s\S]*Its receipt is\s+number \d/,
    )
    t.same(
      await opening
        .locator('.citations > li')
        .evaluateAll((all) => all.map((one) => one.querySelector('.next')?.textContent ?? '')),
      [
        '',
        '',
        'Next: Read the quote on its page, then correct the sentence, or cite another page for it.',
        'Next: Find another source that says it, or take the sentence out.',
        'Next: Open the page yourself. If it is gone, cite another page, or a copy in an archive.',
      ],
      'each finding has a way on of its own',
    )
    const [home = ''] = /Results and receipts are in (.*)\.\n/.exec(known.stdout)?.slice(1) ?? []
    const kept = await linesOf(join(home, readdirSync(home)[0] ?? '', 'results.jsonl'))
    for (const claimed of ['three piers', '1901', 'railway']) {
      const line = kept.find(({ claim }) => String(claim).includes(claimed))
      const result = JSON.parse(Buffer.from(String(line?.result_base64), 'base64').toString())
      const nth = await opening
        .locator('.result-card')
        .evaluateAll(
          (cards, claim) => cards.findIndex((card) => card.textContent?.includes(claim)),
          result.claim as string,
        )
      t.same(await faultsOfCard(opening, result, { nth }), [], claimed)
    }
    t.match(await opening.locator('.looked').allInnerTexts(), [/^Holds three piers/, /The page is dead/])
    t.equal(
      await opening.getByRole('link', { name: 'How often it is right' }).first().getAttribute('href'),
      system.url('/accuracy'),
    )
    t.equal(await overflow(opening), 0)
    t.same(await seriousFindings(opening), [])
    await picture(opening, 'check-page-360-light')
    await opening.setViewportSize({ width: 1440, height: 900 })
    await opening.emulateMedia({ colorScheme: 'dark' })
    t.same(await seriousFindings(opening), [])
    await picture(opening, 'check-page-1440-dark')
    t.same(requests.slice(1), [], 'nothing but the file itself')
    t.same(complaints, [])
    t.equal(await settled(), 3)
  },
)

t.test('another report pays for its new sentences alone, and keeps results that verify', async (t) => {
  writeFileSync(path('small.md'), report(SENTENCES.right, `Its [lighthouse](${page}) is on one of three piers.`))
  const budget = ['--budget', '1', '--budget-file', path('budget.jsonl'), '--yes']
  const { code, stdout } = await verify('small.md', budget)
  t.equal(code, 0, stdout)
  t.match(stdout, /2 verdicts: 1 bought for 0\.03 USDC, 1 from earlier runs\./)
  t.match(stdout, '2 supported. all hold\n')
  t.equal(await settled(), 4)
  const [home = ''] = /Results and receipts are in (.*)\.\n/.exec(stdout)?.slice(1) ?? []
  const { keys } = (await (await fetch(system.url('/v1/keys'))).json()) as { keys: never[] }
  const [terms = ''] = readdirSync(home)
  const results = await linesOf(join(home, terms, 'results.jsonl'))
  t.equal(results.length, 4)
  for (const { result_base64 } of results)
    t.ok(verifyResult(JSON.parse(Buffer.from(String(result_base64), 'base64').toString()), { keys }).ok)

  await t.test('a verdict of last month is bought anew', async (t) => {
    const file = join(home, terms, 'results.jsonl')
    const aged = readFileSync(file, 'utf8').replace(/"result_base64":"([^"]+)"/g, (_, text: string) => {
      const result = JSON.parse(Buffer.from(text, 'base64').toString())
      result.checked_at = new Date(Date.now() - 30 * 86_400_000).toISOString()
      return `"result_base64":"${Buffer.from(JSON.stringify(result)).toString('base64')}"`
    })
    writeFileSync(file, aged)
    t.match((await verify('small.md', budget)).stdout, '2 verdicts: 2 bought for 0.06 USDC.')
    t.match((await verify('small.md', budget)).stdout, '2 verdicts: 0 bought for 0.00 USDC, 2 from earlier runs.')
    t.equal(await settled(), 6)
  })

  await t.test('what was spent before counts in a budget file', async (t) => {
    writeFileSync(path('last.md'), report(`The [third pier](${page}) is one of three piers.`))
    const { code, stdout } = await verify('last.md', budget.with(1, '0.11'))
    t.equal(code, 1)
    t.match(stdout, 'There is no verdict: the budget is reached.')
    t.equal(await settled(), 6)
  })
})

t.test('--group buys the verdicts on one page together, and they are known to every later run', async (t) => {
  const before = await settled()
  const sentences = [
    `Grouped, [three piers](${page}) are there.`,
    `Grouped, it was [opened in 1901](${page}).`,
    `Grouped, a [third pier](${page}) is one of three piers.`,
  ]
  writeFileSync(path('grouped.md'), report(...sentences))
  const asked = await verify('grouped.md', ['--budget', '1'], { typed: 'n\n' })
  t.match(
    asked.stderr,
    '3 verdicts at 0.03 USDC: 0.09 USDC.\n--group buys those of one page together: 1 purchase, 0.05',
  )
  const bought = await verify('grouped.md', ['--budget', '0.05', '--group', '--yes', '--json'])
  t.match(bought.stderr, '3 verdicts in 1 purchase by page: 0.05 USDC, 0.04 less than one by one.\n')
  const { verdicts, citations } = shown(bought.stdout)
  t.match(verdicts, { wanted: 3, bought: 3, kept: 0, missing: 0, spent_usd: '0.05' })
  t.same(
    citations.map(({ status, verdict }) => [status, verdict?.claim_support]),
    [
      ['supported', 'supports'],
      ['contradicted', 'contradicts'],
      ['supported', 'supports'],
    ],
  )
  t.equal(new Set(citations.map(({ verdict }) => verdict?.receipt_serial)).size, 1, 'one receipt')
  t.equal(await settled(), before + 1)
  for (const more of [[], ['--group']])
    t.match(await verify('grouped.md', ['--budget', '1', '--yes', ...more]), {
      stdout: /3 verdicts: 0 bought for 0\.00 USDC, 3 from earlier runs/,
      stderr: '',
    })
  t.equal(await settled(), before + 1)
})

t.test('a service without verdicts sells none', async (t) => {
  const source = { requested_url: page, final_url: page, content_sha256: '', text_sha256: '', checked_at: '' }
  const absent = { match: 'absent', start: null, end: null, quote_sha256: '', fragment_url: null, nearest: null }
  const checked = { source, quotes: [{ quote: 'Ships find three piers there.', ...absent }] }
  const price = { amount_atomic: '30000' }
  const capabilities = { payment_mode: 'offline', methodology_version: 'retrieval-3 literal-2', price }
  const { baseUrl, received } = await play(
    t,
    answerWith(200, JSON.stringify(checked)),
    answerWith(200, JSON.stringify(capabilities)),
  )
  writeFileSync(path('one.md'), report(SENTENCES.right))
  const args = ['--service', baseUrl, '--budget', '1', '--yes', '--verdicts', path('empty')]
  t.match(await verify('one.md', args), { code: 2, stderr: /This service has no model.*gives no verdicts/ })
  t.equal(received.length, 2)
})
