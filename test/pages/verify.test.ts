// The page /verify in a browser: what it says of genuine and of altered things, and what it never does.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { FLAG_WORDS } from '../../client/flag-words.ts'
import { type Passage, passagesOf, type Quoted } from '../../client/page/result/passages.ts'
import { tryLink } from '../../client/page/try/try-link.ts'
import { changedParts } from '../../client/page/verify/changed-parts.ts'
import { wordsOf } from '../../client/page/verify/check-words.ts'
import { HEADLINES } from '../../client/page/verify/report-view.ts'
import { FRESH_VERDICTS, STANCE_WORDS, VERDICT_WORDS } from '../../client/verdict-words.ts'
import { verifyResult } from '../../client/verification.ts'
import { openAssets } from '../../server/pages/assets.ts'
import { explainedFlags } from '../../server/verification/offer/risk-flag-advice.ts'
import { type Browser, noBrowser, overflow, picture, seriousFindings, sharedBrowser, shown, visit } from '../browser.ts'
import { harbourClaim, payingFetch, startSystem } from '../system.ts'
import { faultsOfCard } from './card.ts'
import { give } from './verify-form.ts'

const vectors = (name: string) => JSON.parse(readFileSync(join(import.meta.dirname, `../vectors/${name}.json`), 'utf8'))

async function check(page: Page, text: string): Promise<string> {
  // The last report must not be taken for this one.
  await page.evaluate(() => document.getElementById('standing')?.setAttribute('id', 'before'))
  await give(page, text)
  await page.waitForSelector('#standing')
  return shown(page, '.standing')
}

async function pin(page: Page, keys: unknown) {
  if (!(await page.isVisible('#pins'))) await page.click('.pins > summary')
  await page.fill('#pins', JSON.stringify(keys))
  await page.locator('#pins').blur()
  // With other keys, what was checked before is checked again.
  await page.waitForSelector('.outcome[aria-busy=false]', { state: 'attached' })
}

t.test('every check of the test vectors has words of its own', async (t) => {
  const names = ['result', 'claims', 'receipt', 'attestation', 'chain', 'export'].flatMap((file) =>
    vectors(file).cases.flatMap(({ fails }: { fails: string[] }) => fails),
  )
  t.ok(names.length > 100)
  for (const name of new Set<string>(names)) t.notMatch(wordsOf(name).fails, /^The check “/, name)
})

/** The marked parts, by the name of the vector. A result as it was made has none; a wrong quote is marked by itself. */
const PARTS: Readonly<Record<string, string[]>> = {
  'another claim': ['card'],
  'another claim_support': ['card'],
  'another source.normalized_text': ['text'],
  'another payment.transaction': ['receipt'],
  'another receipt.envelope.issued_at': ['receipt'],
  'another receipt.envelope.result_sha256': ['receipt'],
  'another receipt.attestation.serial': ['receipt'],
  'another receipt.attestation.subject_sha256': ['receipt'],
  'an envelope of another result': ['card'],
  'an attestation of something else': ['receipt'],
  'an envelope that an account invented and had attested': ['receipt'],
  'another claims.1.claim': ['reading 1'],
  'another claims.2.claim_support': ['card'],
  'another context': ['reading 1'],
  'another claims.1.claim_as_read': ['reading 1'],
  'a word that is added, and stands nowhere': ['reading 1'],
  'a claim that is read otherwise without a context': ['reading 1'],
  'a claim that is read as it is, and says so': ['reading 0'],
  'an evidence id twice': ['card'],
  'a verdict of the second claim without its quote': ['verdict 1'],
  'a verdict where only words were compared': ['verdict 2'],
}

t.test('the failed checks of a changed result name its changed parts', async (t) => {
  for (const file of ['result', 'claims']) {
    const { pins, cases } = vectors(file)
    for (const { name, result, fails } of cases) {
      const { checks } = verifyResult(result, { keys: pins })
      const { verdicts, readings, ...others } = changedParts(checks)
      const marked = [...verdicts].map(([claim]) => `verdict ${claim}`)
      for (const [claim] of readings) marked.push(`reading ${claim}`)
      for (const [part, words] of Object.entries(others)) if (words !== undefined) marked.push(part)
      if (fails.includes('evidence_quotes')) {
        const { claims = [result], source } = result
        const passages = claims.flatMap(({ evidence }: Pick<Quoted, 'evidence'>) => passagesOf({ source, evidence }))
        const wrong = passages.filter(({ fault }: Passage) => fault?.kind === 'misquoted')
        if (name !== 'an evidence id twice') t.ok(wrong.length > 0, `${name}: the quote is marked`)
      }
      t.same(marked.sort(), PARTS[name] ?? [], name)
    }
  }
})

t.test('every risk flag of the service has words for readers, and no other', async (t) => {
  t.same(Object.keys(FLAG_WORDS).sort(), [...new Set(explainedFlags.map(({ name }) => name))].sort())
})

t.test('in a browser', { skip: noBrowser }, async (t) => {
  const system = await startSystem()
  t.teardown(() => system[Symbol.asyncDispose]())
  const browser = await sharedBrowser()
  const bought = await system.ask({
    key: 'a-purchase-for-the-page',
    fetch: payingFetch(),
    headers: { prefer: 'wait=20' },
  })
  t.equal(bought.status, 200)
  const result = await bought.text()
  const host = new URL(system.service.address).host

  await t.test('a bought result is genuine, and says what it is', async (t) => {
    await using opened = await visit(browser, system.url('/verify'))
    const { page, requests, complaints, transferred } = opened
    t.match(await check(page, result), /Genuine: signed by this service/)
    const said = await shown(page, '.result-card')
    for (const words of ['The harbour was opened in 1874.', system.site.url('/harbour'), 'no money moved'])
      t.ok(said.includes(words), words)
    t.same(await faultsOfCard(page, JSON.parse(result)), [])
    t.match(await shown(page, 'mark'), /1874/)
    const link = await page.getByRole('link', { name: 'Open the page at this quote' }).first().getAttribute('href')
    t.ok(link?.startsWith(`${system.site.url('/harbour')}#:~:text=`), link ?? '')
    t.match(await shown(page, '.key'), new RegExp(`Published here\\. ${host}`))
    await page.click('.whole-text > summary')
    await page.getByRole('button', { name: 'Next quote' }).click()
    t.equal(await page.locator('mark.current').count(), 1)
    t.match(await shown(page, '.checks > summary'), /^(\d+) of \1 checks passed$/)
    await page.click('.checks > summary')
    await page.locator('.bytes > summary').first().click()
    t.same(await seriousFindings(page), [])
    await picture(page, 'verify-result-1440-light')
    t.ok(transferred() < 100_000, `${transferred()} bytes`)
    t.same(
      requests.map((line) => line.split(' ')[0]).filter((method) => method !== 'GET'),
      [],
      'nothing is sent',
    )
    t.same(
      requests.filter((line) => new URL(line.split(' ')[1] ?? '').host !== host),
      [],
      'no other host is asked',
    )
    const paths = requests.map((line) => new URL(line.split(' ')[1] ?? ''))
    t.same(
      paths
        .map(({ pathname, search }) => pathname + search)
        .filter((path) => !/^\/(verify$|v1\/keys$|assets\/)/.test(path)),
      [],
      'of this one, its files and its keys alone',
    )
    t.same(complaints, [])

    const { keys } = await (await fetch(system.url('/v1/keys'))).json()
    await pin(page, keys)
    await page.waitForSelector('text=Pinned by you.')
    t.equal(await shown(page, '#standing'), HEADLINES.good)
    await pin(page, vectors('result').pins)
    await page.waitForSelector('text=Not one of your pins.')
    t.equal(await shown(page, '#standing'), HEADLINES.stranger)

    await pin(page, [])
    await page.waitForSelector('text=Published here.')
    const altered = await check(page, result.replace('opened in 1874', 'opened in 1875'))
    t.match(altered, /Not genuine/)
    t.ok(altered.includes(wordsOf('result_sha256').fails))
    t.match(
      await shown(page, '.key'),
      'That says nothing for the file',
      'a known key comforts nobody about a changed file',
    )
    t.match(await shown(page, '.checks > summary'), /^\d+ of \d+ checks did not pass$/)
    t.equal(
      await page.locator('.standing.tone-proved, .key .tone-proved').count(),
      0,
      'neither it nor its key looks proved',
    )
    t.equal(await page.locator('.report .limit').count(), 0, 'nor is it said to be what the page says')
    await picture(page, 'verify-altered-1440-light')
  })

  await t.test('the answer stands first, and the form is folded below it', async (t) => {
    await using opened = await visit(browser, system.url('/verify'), { viewport: { width: 360, height: 740 } })
    const { page, requests, complaints } = opened
    const topOf = async (selector: string) => (await page.locator(selector).boundingBox())?.y ?? Number.NaN
    t.equal(await page.getByText('Check another file').count(), 0, 'before anything was checked there is no other file')
    await check(page, result)
    t.ok((await topOf('.report')) < (await topOf('.another')), 'the report is above the form')
    t.notOk(await page.isVisible('#text'), 'which is one line')
    t.same(
      await page.evaluate(() => [document.activeElement?.tagName, document.activeElement?.id]),
      ['H2', 'verdict'],
      'the verdict is read next',
    )
    const { y = 0, height = 0 } = (await page.locator('#verdict').boundingBox()) ?? {}
    t.ok(y >= 0 && y + height <= 740, `and it is in view: ${y}`)
    t.equal(await shown(page, '[role=status].progress'), 'Checked: the pasted text.', 'which screen readers say')
    t.same(await seriousFindings(page), [])
    await page.locator('.another > summary').press('Enter')
    t.equal(await page.inputValue('#text'), '', 'nothing of the last file is in the form')
    await give(page, '99999999')
    await page.waitForSelector('text=This service has no receipt with the serial 99999999')
    t.ok(await page.isVisible('#text'), 'where there is no answer the form stands open')
    t.equal(await page.locator('.report').count(), 0)
    t.equal(await shown(page, '[role=status].progress'), '')
    t.match(await check(page, '1'), /Genuine/)
    t.equal(await shown(page, '[role=status].progress'), 'Checked: receipt 1.')
    t.equal(await page.evaluate(() => document.activeElement?.id), 'standing')
    t.same(
      requests.filter((line) => !line.startsWith(`GET http://${host}/`)),
      [],
      'nothing is sent',
    )
    t.ok(
      complaints.every((line) => line.includes('404')),
      complaints.join(),
    )
  })

  /** For tests that need no window of their own. */
  await using shared = await visit(browser, system.url('/verify'))

  await t.test('a result of a page that was read before says so', async (t) => {
    const again = await system.ask({
      key: 'a-purchase-of-the-same-page',
      fetch: payingFetch(),
      body: { ...harbourClaim(system.site), options: { max_age_seconds: 300 } },
      headers: { prefer: 'wait=20' },
    })
    t.equal(again.status, 200)
    const reused = await again.json()
    t.equal(reused.cache.hit, true)
    await check(shared.page, JSON.stringify(reused))
    t.match(await shown(shared.page, '.reading'), `used again ${reused.cache.age_seconds} second`)
    t.same(await faultsOfCard(shared.page, reused), [])
  })

  await t.test('a card tells the verdict first and the proof last, of a changed file the change first', async (t) => {
    await using opened = await visit(browser, system.url('/verify'))
    const { page, complaints } = opened
    const colourOf = (selector: string) => page.locator(selector).evaluate((one) => getComputedStyle(one).color)
    const { local, literal } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../server/pages/examples/example-results.json'), 'utf8'),
    )
    const { key_id, pubkey_hex } = local.receipt.attestation
    await page.click('.pins > summary')
    await page.fill('#pins', `${key_id}:${pubkey_hex}`)
    await page.locator('#pins').blur()
    await check(page, JSON.stringify(local))
    const parts = [
      VERDICT_WORDS.contradicts,
      local.claim,
      'Genuine: all 23 checks passed.',
      local.explanation.slice(0, 40),
      local.evidence[0].quote.slice(0, 40),
      STANCE_WORDS.contradicts.slice(1),
      'judged by the small model that comes with the service',
      'on public sets that had no part in making it, ' +
        `${FRESH_VERDICTS.contradicts.right} of its ${FRESH_VERDICTS.contradicts.of} verdicts against a claim were right`,
      'The explanation’s higher figure',
      'How often it is right',
      `${HEADLINES.good}\n`,
      'In the chain since',
    ]
    expectOrder(t, await shown(page, '.result-card'), parts)
    t.match(await shown(page, '.report'), /^✕\s+The page says otherwise/, 'nothing stands before the verdict')
    t.same(await faultsOfCard(page, local), [])
    t.equal(
      await page.getByRole('link', { name: 'How often it is right' }).getAttribute('href'),
      system.url('/accuracy'),
    )
    t.equal(await colourOf('.outcome-line'), await colourOf('.claimed'), 'the line has no colour of a verdict')
    t.equal(await page.isVisible('.checks li'), false)
    await page.getByRole('button', { name: 'What was proved' }).click()
    t.equal(await page.locator('.checks li').count(), 23)
    t.equal(await page.isVisible('.checks li'), true, 'the line leads to the checks')
    t.equal(await page.evaluate(() => document.activeElement?.parentElement?.className), 'checks')
    const verdictColour = await colourOf('#verdict')
    t.not(verdictColour, await colourOf('#standing'), 'the proof has another colour than the verdict')
    t.not(verdictColour, await colourOf('.claimed'), 'the verdict has a colour')
    t.same(await seriousFindings(page), [])
    await picture(page, 'verify-contradicts-1440-light')
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize({ width: 360, height: 740 })
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'verify-contradicts-360-dark')
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 1440, height: 900 })

    await check(page, JSON.stringify({ ...local, claim_support: 'supports' }))
    expectOrder(t, await shown(page, '.report'), [
      HEADLINES.bad,
      '2 of 23 checks failed.',
      'The file says, which is not proved:',
      VERDICT_WORDS.supports,
    ])
    t.equal(await colourOf('#verdict'), await colourOf('.claimed'), 'an unproved verdict has no colour')
    t.same(await seriousFindings(page), [])
    await picture(page, 'verify-changed-verdict-1440-light')
    const marks = () => page.locator('.result-card .mark').allInnerTexts()
    t.same(await marks(), [`Not a verdict of this service ${wordsOf('supports_has_support').fails}`])
    t.equal(await page.locator('.claim > header > .mark').count(), 1, 'beside the verdict')
    await check(page, JSON.stringify({ ...local, claim: 'It was opened in 1901.' }))
    t.equal(
      await page.getByRole('link', { name: 'Check the page again' }).getAttribute('href'),
      tryLink(new URL(system.url('/try')), { source_url: local.source.final_url, claim: 'It was opened in 1901.' }),
    )
    t.same(await page.locator('.outcome .actions :is(a, button):not(.quiet)').allInnerTexts(), ['Check the page again'])
    t.match(await marks(), [/^Changed The checks cannot tell which part/])

    await check(
      page,
      JSON.stringify({ ...local, claim_support: 'insufficient_evidence', risk_flags: ['page_checks_claims'] }),
    )
    t.equal(await shown(page, '#verdict'), 'No verdict, because the page checks what others claim')

    const [quote] = local.evidence
    const changed = quote.quote.replace('1874', '1872')
    await check(page, JSON.stringify({ ...local, evidence: [{ ...quote, quote: changed }] }))
    t.same(await marks(), [
      `Not the text that was read The file quotes here “${changed}”, and its text says what is marked above.`,
    ])
    t.equal(await page.locator('.passage .mark').count(), 1, 'beside the quote')
    t.match(await shown(page, '.passage mark'), /1874/)
    t.same(await seriousFindings(page), [])
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize({ width: 360, height: 740 })
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'verify-changed-quote-360-dark')
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 1440, height: 900 })

    const other_text = { ...local.source, normalized_text: `${local.source.normalized_text} It is closed.` }
    await check(page, JSON.stringify({ ...local, source: other_text }))
    await page.click('.whole-text > summary')
    t.same(await marks(), [`Not the text that was read ${wordsOf('text_sha256').fails}`])
    await picture(page, 'verify-changed-text-1440-light')

    await check(page, JSON.stringify({ ...local, receipt: literal.receipt }))
    t.match(await shown(page, '.report'), /^It says that it is a completed result\.\s+Not genuine/)
    await check(page, JSON.stringify(literal))
    for (const flag of literal.risk_flags) t.ok(await page.getByText(FLAG_WORDS[flag] ?? '-').isVisible(), flag)
    t.match(
      await shown(page, '.result-card'),
      /Not judged, quotes only[\s\S]*hares words with the claim; nothing was judged[\s\S]*nothing judged the claim \(literal-\d+\)/,
    )

    const { claim, claim_support, assessment_scope, explanation, evidence, ...page_parts } = local
    const one = { claim, claim_support, assessment_scope, explanation, evidence, risk_flags: ['low_text'] }
    const other = {
      ...one,
      claim: 'It has three piers.',
      claim_as_read: 'The harbour has three piers.',
      claim_support: 'supports',
      risk_flags: ['low_text', 'verdict_doubted'],
    }
    await check(page, JSON.stringify({ ...page_parts, verification_type: 'source_claims', claims: [one, other] }))
    t.equal(await page.locator('.result-card').count(), 1, 'one card for several claims')
    t.match(await shown(page, '.result-card .claim:nth-of-type(2) header'), /as\s+“The harbour has three piers\.”/)
    t.equal(await page.locator('.result-card > .overview').textContent(), '2 claims: 1 contradicted, 1 supported')
    t.same(await page.locator('.result-card .claim h2').allInnerTexts(), [
      VERDICT_WORDS.contradicts,
      VERDICT_WORDS.supports,
    ])
    t.equal(await page.getByText(FLAG_WORDS.low_text ?? '').count(), 1, 'what is about the page is said once')
    t.match(
      await shown(page, '.result-card .claim:nth-of-type(2) header'),
      /which says what the claim refers to, it was read as/,
    )
    t.equal(await page.getByText('This is what the page says.').count(), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'verify-claims-1440-light')
    const { pins, cases } = vectors('claims')
    await pin(page, pins)
    await check(page, JSON.stringify(cases[0].result))
    const overview = await shown(page, '.result-card > .overview')
    t.match(overview, /^3 claims: 2 both supported and contradicted, 1 not judged\n/)
    t.equal(await page.getByText('This is what the page says.').count(), 1, 'said once for all claims')
    t.not(
      await colourOf('.claim:nth-of-type(1) .explanation'),
      await colourOf('.claim:nth-of-type(1) .claimed'),
      'the explanation stands behind claim and quotes',
    )
    t.same(complaints, [])
  })

  await t.test('what is not a result is explained', async (t) => {
    const { page } = shared
    const serial = JSON.parse(result).receipt.attestation.serial
    t.match(
      await check(page, String(serial)),
      /a receipt[\s\S]*Genuine: signed by this service\s+All \d+ checks passed\./,
    )
    const refused = await (await system.ask({ key: 'a-purchase-without-pay' })).text()
    t.match(await check(page, refused), /Nothing to verify/)
    t.match(await shown(page, '.facts'), /asked for a payment\. Nothing was charged/)
    t.equal(await page.getByRole('button', { name: 'Print this report' }).count(), 0, 'there is no report')
    const error = { code: 'source_http_status', message: 'The page answered 404.', retryable: false }
    const failed = { schema_version: '1.0.0', status: 'failed', error, request_id: randomUUID() }
    t.match(await check(page, JSON.stringify(failed)), /Nothing to verify/)
    t.match(
      await shown(page, '.facts'),
      /This check could not be done\. It says nothing about the claim, and nothing was/,
    )
    t.match(await shown(page, '.remedy'), /names neither the page nor the claim/)
    t.equal(await page.getByRole('link', { name: 'Check another page' }).getAttribute('href'), system.url('/try'))
    await check(page, JSON.stringify({ ...failed, error: { ...error, code: 'source_timeout', retryable: true } }))
    t.equal(
      await page.getByRole('link', { name: 'Check it again: enter page and claim' }).getAttribute('href'),
      system.url('/try'),
    )
    t.match(await check(page, JSON.stringify({ ...failed, status: 'pending' })), /Being checked: nothing to verify yet/)
    t.equal(await page.locator('.remedy').count(), 0)
    t.match(await check(page, 'nonsense'), /It cannot be checked[\s\S]*not JSON/)
    await page.evaluate(() => document.getElementById('standing')?.setAttribute('id', 'before'))
    const zip = Buffer.from('PK\u0003\u0004\u0014\u0000 and so on')
    await page.setInputFiles('input[type=file]', { name: 'package.wacz', mimeType: 'application/zip', buffer: zip })
    await page.waitForSelector('#standing')
    t.match(await shown(page, '.standing'), /an evidence package\.\s+Not checked here[\s\S]*the steps are\s+below/)
    const { origin } = new URL(system.service.address)
    t.same(await page.locator('.replay pre').allTextContents(), [
      `countersign recover ${origin} REQUEST_ID --token token.txt --evidence package.wacz > result.json`,
      `curl -s ${origin}/v1/keys > keys.json`,
      'countersign replay package.wacz result.json --keys keys.json',
    ])
    const guide = page.getByRole('link', { name: 'What each step proves' })
    const [path, part] = ((await guide.getAttribute('href')) ?? '').split('#')
    t.match(await (await fetch(path ?? '')).text(), `id="${part}"`, 'the guide has that part')
    t.equal(await page.getByRole('button', { name: 'Print this report' }).count(), 0, 'there is nothing to print')
    t.same(await seriousFindings(page), [])
    await picture(page, 'verify-package-1440-light')
    await page.setViewportSize({ width: 360, height: 740 })
    await page.emulateMedia({ colorScheme: 'dark' })
    t.equal(await overflow(page), 0)
    await picture(page, 'verify-package-360-dark')
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.emulateMedia({ colorScheme: 'light' })
    const lease = vectors('lease')
    await pin(page, lease.keys)
    t.match(await check(page, JSON.stringify(lease.cases[0].answer)), /a lease/)
    t.match(await shown(page, '.facts'), /agent-7[\s\S]*usd<=20/)
    const ended = await shown(page, '.report')
    t.match(ended, 'Genuine, but no longer in force')
    t.notMatch(ended, 'did not pass', 'a lease that has ended is no failure')
    const alert = vectors('alert')
    await pin(page, alert.options.keys)
    const head = Object.entries(alert.cases[0].headers).map(([name, value]) => `${name}: ${value}\n`)
    const message = `${head.join('')}\n${alert.cases[0].body}`
    t.match(await check(page, message), /an alert[\s\S]*Genuine/)
    const whose = await shown(page, '.key')
    t.match(whose, 'Pinned by you.')
    t.ok(
      alert.options.keys.some((key: { key_id: number; pubkey_hex: string }) =>
        whose.includes(`${key.key_id}:${key.pubkey_hex}`),
      ),
      'the key shown as pinned is the one that signed the message, not the one that its receipt names',
    )
    t.match(await shown(page, '.report'), '2 of 3 checks passed', 'the receipt was not checked, so it is not counted')
    t.match(await check(page, message.replace('"down"', '"up"')), /Not genuine/)
    const log = readFileSync(join(import.meta.dirname, '../vectors/log.jsonl'), 'utf8')
    await pin(page, vectors('log').keys.keys)
    t.match(await check(page, log), /an export of the whole chain[\s\S]*Genuine/)
    t.match(await check(page, log.replace('"serial":7,', '"serial":8,')), /Not genuine/)
    await page.fill('#pins', '1:short')
    await page.locator('#pins').blur()
    await page.waitForSelector('text=“1:short” is not KEYID:HEX')
  })

  await t.test('each kind of tampering is named in words', async (t) => {
    const { page } = shared
    for (const kind of ['result', 'receipt']) {
      const { pins, vkey, cases } = vectors(kind)
      const log = vectors('log').keys.keys.filter(({ use }: { use: string }) => use === 'checkpoint')
      await pin(page, vkey ? [...pins, ...log.filter((key: { vkey: string }) => key.vkey === vkey)] : pins)
      // What needs another pin than the file's, the page cannot know.
      const known = cases.filter((one: object) => !('pins' in one) && !('tree' in one))
      const verdicts = await page.evaluate(
        standingsOf,
        known.map((one: Record<string, unknown>) => JSON.stringify(one[kind])),
      )
      t.equal(verdicts.length, known.length)
      for (const [i, verdict] of verdicts.entries()) judgeCase(t, `${kind}: ${known[i].name}`, verdict, known[i].fails)
    }
  })

  await t.test('narrow, dark, printed, without JavaScript', async (t) => {
    const narrow = { viewport: { width: 360, height: 740 }, colorScheme: 'dark' } as const
    await using opened = await visit(browser, system.url('/verify'), narrow)
    const { page } = opened
    t.equal(await overflow(page), 0)
    await picture(page, 'verify-empty-360-dark')
    await check(page, result)
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'verify-result-360-dark')
    const printed = await page.pdf()
    t.match(printed.subarray(0, 5).toString(), '%PDF-')
    await page.emulateMedia({ media: 'print', colorScheme: 'light' })
    t.equal(await page.isVisible('.intake'), false, 'the form is not printed')
    const after = await page
      .locator('.reading a')
      .first()
      .evaluate((one) => getComputedStyle(one, '::after').content)
    t.equal(after, 'none', 'an address is printed once')
    t.notMatch(await shown(page, 'main'), 'under “Pin', 'nor is a part named that is not printed')
    await picture(page, 'verify-result-print')
    await using plain = await visit(browser, system.url('/verify'), { javaScriptEnabled: false })
    t.match(await shown(plain.page, 'main'), /need JavaScript[\s\S]*countersign verify FILE/)
    await picture(plain.page, 'verify-without-javascript')
  })

  await t.test('the single file works from disk, without any request', (t) => testSingleFile(t, browser, result))
})

/** Each part is in the text, after the one before it. */
function expectOrder(t: Test, text: string, parts: readonly string[]) {
  const places = parts.map((part) => text.indexOf(part))
  for (const [i, place] of places.entries()) t.ok(place > (places[i - 1] ?? -1), `${parts[i]}: at ${place}`)
}

/**
 * What the report of each text says first. Runs in the page, and gives it each text: to fill and to press for each takes ten times as long.
 */
async function standingsOf(texts: string[]): Promise<string[]> {
  const found: string[] = []
  for (const text of texts) {
    // The form is made anew for each.
    const field = document.querySelector<HTMLTextAreaElement>('#text')
    // The last report must not be taken for this one.
    document.getElementById('standing')?.setAttribute('id', 'before')
    const { promise, resolve } = Promise.withResolvers<void>()
    const watch = new MutationObserver(() => document.getElementById('standing') && resolve())
    watch.observe(document.body, { subtree: true, childList: true, attributes: true })
    if (field) field.value = text
    field?.dispatchEvent(new Event('input', { bubbles: true }))
    // The form knows the text when it is drawn anew, which is before the next task.
    await new Promise((resolve) => setTimeout(resolve))
    field?.form?.requestSubmit()
    await promise
    watch.disconnect()
    // biome-ignore lint/performance/useDomNodeTextContent: the text as it is seen is what is meant
    found.push(document.querySelector<HTMLElement>('.standing')?.innerText ?? '')
  }
  return found
}

/** The vector's verdict, and the words for each check that could run. */
function judgeCase(t: Test, name: string, verdict: string, fails: string[]) {
  if (fails.length === 0) return void t.match(verdict, /^Genuine$/m, name)
  t.notMatch(verdict, /^Genuine/m, name)
  // With a key that is not trusted, or in a wrong shape, the others cannot run.
  const cause = fails.find((check) => check === 'shape' || check === 'trusted_key')
  if (cause === 'trusted_key' && verdict.includes(HEADLINES.stranger)) return
  for (const check of cause ? [cause] : fails) t.ok(verdict.includes(wordsOf(check).fails), `${name}: ${check}`)
}

async function testSingleFile(t: Test, browser: Browser, result: string) {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-page-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const file = join(folder, 'verify.html')
  await writeFile(file, (await openAssets()).singleFile.body)
  await using opened = await visit(browser, pathToFileURL(file).href)
  const { page, requests, complaints } = opened
  t.match(await check(page, result), /Unchanged, but signed with an unknown key/)
  const { pins, cases } = vectors('result')
  await pin(page, pins)
  t.match(await check(page, JSON.stringify(cases[0].result)), /^Genuine$/m)
  t.match(await check(page, JSON.stringify(cases[3].result)), /Not genuine/)
  t.match(await shown(page, '.remedy'), /^Do not rely on it\. Ask its sender/)
  t.equal(await page.locator('.remedy a').count(), 0, 'no service is known')
  await give(page, '1')
  await page.waitForSelector('text=can only be looked up on the page of a service')
  t.same(requests.slice(1), [], 'nothing but the file itself')
  t.same(complaints, [])
}
