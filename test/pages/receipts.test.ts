// The pages of results and receipts in a browser: a result by its link, every state it can be in, the page of a receipt, the search,
// and the chain.
import { readFile } from 'node:fs/promises'
import type { Page as BrowserPage } from 'playwright-core'
import t from 'tap'
import { tryLink } from '../../client/page/try/try-link.ts'
import { HEADLINES } from '../../client/page/verify/report-view.ts'
import { CAPTURE_REQUESTED_BY } from '../../server/evidence/manifest.ts'
import { madeFor } from '../../server/pages/receipt-page.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { noBrowser, overflow, picture, seriousFindings, sharedBrowser, shown, visit } from '../browser.ts'
import type { Page } from '../site.ts'
import { PAGE, payingFetch, startSystem } from '../system.ts'
import { faultsOfCard } from './card.ts'

const toneOf = (page: BrowserPage) => page.locator('.notice strong').evaluate((one) => getComputedStyle(one).color)
const NARROW_DARK = { viewport: { width: 360, height: 740 }, colorScheme: 'dark' } as const

t.test('a receipt that the service made for itself is never said to be of an account', async (t) => {
  for (const name of [
    'source-verification',
    CAPTURE_REQUESTED_BY,
    'lease',
    'watchdog',
    'citation-watch',
    'key-rotation',
  ])
    t.notMatch(madeFor(name), /^account/, name)
  t.equal(madeFor('kelby'), 'account kelby')
  t.equal(madeFor('constructor'), 'account constructor', 'a handle that is the name of a member')
})

t.test('results and receipts in a browser', { skip: noBrowser }, async (t) => {
  // A page that is not served before a test says so keeps its request pending.
  const slow = Promise.withResolvers<Page>()
  const system = await startSystem({ pages: { '/slow': () => slow.promise } })
  t.teardown(() => system[Symbol.asyncDispose]())
  const browser = await sharedBrowser()
  const { host } = new URL(system.service.address)

  await t.test('an empty house', async (t) => {
    await using opened = await visit(browser, system.url('/chain'))
    t.match(await shown(opened.page, 'main'), /receipts\s+0\s[\s\S]*no receipt yet[\s\S]*No witness is configured/)
    t.same(await seriousFindings(opened.page), [])
    await using missing = await visit(browser, system.url('/receipts/1'))
    t.match(
      await shown(missing.page, 'main'),
      /There is nothing at this address[\s\S]*There is no receipt 1: the chain has no receipts yet\./,
    )
  })

  const paying = payingFetch()
  const bought = await system.ask({ key: 'a-result-by-its-link', fetch: paying, headers: { prefer: 'wait=20' } })
  t.equal(bought.status, 200)
  const bytes = Buffer.from(await bought.arrayBuffer())
  const result = JSON.parse(bytes.toString())
  const token = bought.headers.get('x-service-recovery-token') ?? ''
  const link = (id: string, given: string) => system.url(`/results/${id}#${given}`)

  await t.test('a result by its link: shown, checked, and saved byte for byte', async (t) => {
    await using opened = await visit(browser, link(result.request_id, token))
    const { page, requests, complaints, transferred } = opened
    await page.waitForSelector('#standing')
    t.equal(await shown(page, '#standing'), HEADLINES.published)
    t.match(await shown(page, '.claimed'), /The harbour was opened in 1874/)
    t.same(await faultsOfCard(page, result), [])
    t.match(await shown(page, '.downloads'), /deletes a result 24 hours after/)
    await page.locator('.skip').press('Enter')
    t.equal(await page.evaluate(() => document.activeElement?.id), 'main', 'the keyboard is at the content')
    t.equal(new URL(page.url()).hash, `#${token}`, 'and the token stays in the address')
    t.equal(await shown(page, '#standing'), HEADLINES.published)
    const download = async (kind: string) => {
      const [file] = await Promise.all([page.waitForEvent('download'), page.click(`a[download^="${kind}-"]`)])
      return readFile(await file.path())
    }
    t.ok(bytes.equals(await download('result')), 'the exact bytes')
    t.same(JSON.parse(String(await download('receipt'))), result.receipt)
    t.match(String(await download('citation')), /^@misc\{countersign-/)
    t.match(String(await download('footnotes')), /^\[\^countersign-\d+-e1\]: /)
    t.match(JSON.parse(String(await download('selectors'))), [{ type: 'SpecificResource' }])
    t.same(await seriousFindings(page), [])
    await picture(page, 'result-1440-light')
    t.ok(transferred() < 100_000, `${transferred()} bytes`)
    t.same(complaints, [])
    const named = requests.filter((line) => line.includes(token))
    t.same(
      named,
      [`GET ${link(result.request_id, token)}`].filter((line) => named.includes(line)),
      'no address but that of the page',
    )
    t.same(
      requests.filter((line) => !line.startsWith('GET blob:') && new URL(line.slice(4)).host !== host),
      [],
    )
    t.notOk(JSON.stringify(system.logged).includes(token), 'the token is in no log')
    const served = await fetch(link(result.request_id, token))
    t.match(Object.fromEntries(served.headers), { 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
  })

  await t.test('an answer that was changed on its way is neither kept nor cited', async (t) => {
    await using opened = await visit(browser, 'about:blank')
    const { page, complaints } = opened
    await page.route('**/v1/requests/**', async (route) => {
      const answer = await route.fetch()
      const changed = { ...(await answer.json()), claim: 'The harbour was opened in 1901.' }
      await route.fulfill({ response: answer, json: changed })
    })
    await page.goto(link(result.request_id, token))
    await page.waitForSelector('#standing')
    t.equal(await shown(page, '#standing'), HEADLINES.bad)
    t.equal(await page.locator('.downloads, a[download]').count(), 0)
    t.notMatch(await shown(page, 'main'), /Keep it|of the public chain|cite/i)
    const buttons = await page.locator('.actions :is(a, button):not(.quiet)').allInnerTexts()
    t.same(buttons, ['Load the result again'], 'the main action')
    const anew = await page.getByRole('link', { name: 'Check the page again' }).getAttribute('href')
    const question = { source_url: result.source.final_url, claim: 'The harbour was opened in 1901.' }
    t.equal(anew, tryLink(new URL(system.url('/try')), question))
    t.same(await seriousFindings(page), [])
    await picture(page, 'result-changed-1440-light')
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize(NARROW_DARK.viewport)
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'result-changed-360-dark')
    await page.unroute('**/v1/requests/**')
    await page.getByRole('button', { name: 'Load the result again' }).click()
    await page.getByText('Keep it').waitFor()
    t.equal(await shown(page, '#standing'), HEADLINES.published)
    t.same(complaints, [])
  })

  await t.test('a result whose key is not known is only saved, to be checked later', async (t) => {
    await using opened = await visit(browser, 'about:blank')
    const { page } = opened
    await page.route('**/v1/keys', (route) => route.fulfill({ json: { keys: [] } }))
    await page.goto(link(result.request_id, token))
    await page.waitForSelector('#standing')
    t.equal(await shown(page, '#standing'), HEADLINES.stranger)
    t.match(await shown(page, '.downloads'), /^Save it, to check it later/)
    t.same(await page.locator('a[download]').evaluateAll((links) => links.map((one) => one.getAttribute('download'))), [
      `result-${result.request_id}.json`,
    ])
    t.notMatch(await shown(page, 'main'), 'of the public chain')
  })

  await t.test('pending, then there; wrong token, gone, failed, cut off: each in words', async (t) => {
    await using opened = await visit(browser, 'about:blank')
    const at = async (id: string, given: string) => {
      // Two links to one result differ in what is no part of an address: such a page is not loaded anew.
      await opened.page.goto('about:blank')
      await opened.page.goto(link(id, given))
      await opened.page.waitForSelector('.notice')
      const links = await opened.page
        .locator('.actions a')
        .evaluateAll((all) => all.map((one) => (one as HTMLAnchorElement).href))
      lastLinks = links.map((href) => new URL(href).pathname)
      tone = await toneOf(opened.page)
      lastFindings = await seriousFindings(opened.page)
      await picture(opened.page, `result-without-${id === result.request_id ? 'result' : 'verdict'}-1440-light`)
      return (await shown(opened.page, '#result')).replaceAll(/\s+/g, ' ')
    }
    let lastLinks: string[] = []
    let lastFindings: string[] = []
    let tone = ''
    t.match(await at(result.request_id, `${token.slice(0, -4)}AAAA`), /This token opens no result here/)
    t.same(lastLinks, ['/try', '/verify'])
    t.match(await at(result.request_id, ''), /The link has no token/)
    const other = await system.ask({
      key: 'a-result-that-failed',
      fetch: paying,
      headers: { prefer: 'wait=20' },
      body: { source_url: system.site.url('/missing'), claim: 'It is there.' },
    })
    const failed = await other.json()
    const tokenOf = (id: string) => recoveryToken(system.service.api.secrets.recovery, id)
    const said = await at(failed.request_id, tokenOf(failed.request_id))
    t.match(
      said,
      /^This check could not be done\. It says nothing about the claim, neither for it nor against it\. Nothing was charged\.[\s\S]*source_http_status/,
    )
    t.notMatch(said, /verification failed/i, 'a reader could take it for a verdict')
    t.match(said, /Asked again, this page ends in the same way/)
    t.match(
      said,
      /Page and claim Not in this answer\. The person who gave you the link knows them\. Check another page/,
    )
    t.notMatch(said, /Check it again/, 'its error is not retryable')
    t.same(lastLinks, ['/try', '/verify'])
    t.same(lastFindings, [])
    const failing = tone
    t.notMatch(said, 'Search the receipts', 'it has none')
    await system.sql(
      `update verification_requests set error = jsonb_set(error::jsonb, '{retryable}', 'true') where id = $1`,
      [failed.request_id],
    )
    const passing = await at(failed.request_id, tokenOf(failed.request_id))
    t.match(
      passing,
      /The same may get an answer later\.[\s\S]*Check it again: enter page and claim/,
      'its form is empty',
    )
    t.notMatch(passing, 'Check another page')

    await system.sql(
      `update verification_requests set result = null, state = 'expired', body = null, settlement = null where id = $1`,
      [result.request_id],
    )
    system.service.api.results.clear()
    t.match(
      await at(result.request_id, token),
      /The result is no longer kept[\s\S]*Check it again: enter page and claim[\s\S]*Search the receipts/,
    )
    t.same(lastLinks, ['/try', '/verify', '/chain'])

    const waiting = await system.ask({
      key: 'a-result-that-waits',
      fetch: paying,
      body: { source_url: system.site.url('/slow'), claim: 'The harbour was opened in 1874.' },
    })
    t.equal(waiting.status, 202)
    const { request_id } = await waiting.json()
    await opened.page.goto(link(request_id, tokenOf(request_id)))
    await opened.page.waitForSelector('text=Being checked.')
    t.match(
      await shown(opened.page, '#result'),
      /^Being checked\. The [^.]*\. This page asks again in \d+ s, which costs nothing\.$/,
    )
    t.not(await toneOf(opened.page), failing, 'it has not the colour of a failure')
    await picture(opened.page, 'result-pending-1440-light')
    slow.resolve({ body: PAGE })
    await opened.page.waitForSelector('#standing')
    t.pass('the page asked again')
  })

  await t.test('a receipt says what it is, and links to its neighbours and to its check', async (t) => {
    await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        system.service.api.chain.append({
          subjectSha256: n.toString(16).padStart(64, 'a'),
          label: n === 0 ? 'first' : null,
          requestedBy: 'kelby',
        }),
      ),
    )
    const { attestation } = result.receipt
    const textOf = async (serial: number) =>
      (await (await fetch(system.url(`/receipts/${serial}`))).text()).replaceAll(/<[^>]*>|\s+/g, ' ')
    for (const [requestedBy, thing, unshown] of [
      ['lease', 'a signed lease or revocation', 'whether the lease is in force now'],
      ['watchdog', 'an alert', 'what has happened since'],
      ['kelby', 'a file', 'that what the file says is true'],
    ] as const) {
      const made = await system.service.api.chain.append({ subjectSha256: 'b'.repeat(64), label: null, requestedBy })
      if (!('attestation' in made)) throw new Error('it was refused')
      const said = await textOf(made.attestation.serial)
      t.match(said, `It shows that ${thing} with the digest below`)
      t.match(said, `It does not show ${unshown}.`)
      if (thing !== 'a file') t.notMatch(said, 'a file')
    }
    await using opened = await visit(browser, system.url(`/receipts/${attestation.serial}`))
    const { page, requests, complaints, transferred } = opened
    t.match(
      await shown(page, 'main'),
      /It belongs to a verification that was bought[\s\S]*shows that a result with the digest[\s\S]*(This receipt names|The chain begins here)/,
    )
    t.ok((await shown(page, 'main')).includes(attestation.receipt_hash))
    t.same(await seriousFindings(page), [])
    await picture(page, 'receipt-1440-light')
    t.ok(transferred() < 100_000, `${transferred()} bytes`)
    await page.getByRole('link', { name: 'Verify in your browser' }).click()
    await page.waitForSelector('#standing')
    t.equal(await shown(page, '#standing'), HEADLINES.published)
    await page.goBack()
    await page
      .getByRole('link', { name: /^Receipt / })
      .last()
      .click()
    t.match(page.url(), /\/receipts\/\d+$/)
    t.same(complaints, [])
    t.same(
      requests.filter((line) => new URL(line.slice(4)).host !== host),
      [],
    )
  })

  await t.test('the search finds by serial, hash and digest, without JavaScript', async (t) => {
    await using opened = await visit(browser, system.url('/receipts'), { ...NARROW_DARK, javaScriptEnabled: false })
    const { page } = opened
    const find = async (text: string) => {
      await page.goto(system.url('/receipts'))
      await page.fill('#q', text)
      await page.getByRole('button', { name: 'Find' }).click()
      await page.waitForLoadState()
      return new URL(page.url()).pathname
    }
    const { serial, receipt_hash, subject_sha256 } = result.receipt.attestation
    t.equal(await find(`#${serial}`), `/receipts/${serial}`)
    t.equal(await find(receipt_hash.toUpperCase()), `/receipts/${serial}`)
    t.equal(await find(subject_sha256), `/receipts/${serial}`)
    t.equal(await overflow(page), 0)
    await picture(page, 'receipt-360-dark')
    t.equal(await find('f'.repeat(64)), '/receipts')
    t.match(await shown(page, 'main'), /Nothing found/)
    await find('999999')
    t.match(await shown(page, 'main'), /There is no receipt 999999: the chain has \d+ receipts so far\./)
    await find('nonsense "><script>')
    t.match(await shown(page, 'main'), /neither a serial nor/)
    t.equal(await page.inputValue('#q'), 'nonsense "><script>')
    const digest = 'e'.repeat(64)
    for (let n = 0; n < 2; n++)
      await system.service.api.chain.append({ subjectSha256: digest, label: null, requestedBy: 'kelby' })
    await find(digest)
    t.match(await shown(page, 'main'), /2 receipts are for this digest/)
    t.equal(await overflow(page), 0)
  })

  await t.test('the chain: head, growth and latest receipts', async (t) => {
    await using opened = await visit(browser, system.url('/chain'), NARROW_DARK)
    const { page, complaints, transferred } = opened
    // The figures are kept for five seconds; the empty house was read before them.
    await page.waitForFunction(async () => {
      const answer = await fetch('/chain')
      return !(await answer.text()).includes('no receipt yet')
    })
    await page.reload()
    const [row] = await system.sql('select count(*)::int n from receipts')
    t.match(await shown(page, '.figures'), new RegExp(`receipts\\s+${row?.n}\\s`))
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'chain-360-dark')
    t.ok(transferred() < 100_000, `${transferred()} bytes`)
    t.same(complaints, [])
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.emulateMedia({ colorScheme: 'light' })
    await picture(page, 'chain-1440-light')
  })

  await t.test('without JavaScript a result says what it needs', async (t) => {
    await using opened = await visit(browser, link(result.request_id, token), { javaScriptEnabled: false })
    t.match(await shown(opened.page, 'main'), /needs JavaScript[\s\S]*countersign recover/)
    t.equal((await fetch(system.url('/results/not-an-id'))).status, 404)
  })
})
