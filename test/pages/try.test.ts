// Trying a page and a claim: on the front page and at /try, in Chromium and without a script.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { tryLink } from '../../client/page/try/try-link.ts'
import { SAMPLES } from '../../server/looks/samples.ts'
import { inspect, noBrowser, seriousFindings, sharedBrowser, visit } from '../browser.ts'
import { harbourClaim, startSystem } from '../system.ts'
import { faultsOfCard } from './card.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
/** A page that is not sent before a test says so. */
const held = Promise.withResolvers<void>()
const slow = async () => {
  await held.promise
  return { body: '<title>Tides</title><p>The tide turns at noon.</p>' }
}
const system = await startSystem({
  pages: { '/slow': slow, '/gone': { status: 404, body: 'gone' }, '/away': { status: 503, body: 'away' } },
})
t.teardown(() => system[Symbol.asyncDispose]())

const send = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(system.url('/try'), {
    method: 'POST',
    headers: { accept: BROWSER, 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields),
  })

t.test('without a script, the form is answered with a page', async (t) => {
  const { source_url, claim } = harbourClaim(system.site)
  const answer = await send({ source_url, claim })
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('cache-control'), 'no-store')
  const page = await answer.text()
  t.match(page, /Not judged, quotes only/)
  t.match(page, /The harbour was opened in 1874/)
  t.match(page, /Nothing was signed/)

  const sample = await (await send({ source_url: '', claim: '', example: 'museum-hours' })).text()
  t.match(sample, SAMPLES.find(({ name }) => name === 'museum-hours')?.claim ?? '?')
  t.match(sample, /samples\/museum-hours#:~:text=/)

  const empty = await send({ source_url: 'example.com', claim: ' ' })
  t.equal(empty.status, 400)
  const text = await empty.text()
  t.match(text, /id="try-source_url-problem" class="problem">Name one page/)
  t.match(text, /id="try-claim-problem" class="problem">Say in one sentence/)

  const blocked = await send({ source_url: 'https://127.0.0.1/', claim: '<b>x</b>' })
  t.equal(blocked.status, 422)
  const said = await blocked.text()
  t.match(said, /There is no answer\./)
  t.notMatch(said, '<b>x</b>')
  t.match(said, 'Name another page.')
  const offerOf = async (path: string) => (await send({ source_url: system.site.url(path), claim })).text()
  t.match(await offerOf('/gone'), /404[\s\S]*Asked again, this page ends in the same way\. Name another page\./)
  t.match(await offerOf('/away'), /503[\s\S]*The same may get an answer a little later: press “Check it” again\./)

  t.equal((await send({ source_url, claim }, { 'sec-fetch-site': 'cross-site' })).status, 400, 'from another site')
})

t.test('switched off, no page has the form', async (t) => {
  await using off = await system.openTwin({}, { TRY_ENABLED: 'false' })
  const read = (path: string) => fetch(new URL(path, off.address), { headers: { accept: BROWSER } })
  for (const path of ['/try', '/samples/museum-hours']) t.equal((await read(path)).status, 404, path)
  const page = await (await read('/try')).text()
  t.match(page, 'This service does not offer free checks. A verification costs')
  t.match(page, '<a class="button" href="/guide/buying">Buy a verification</a>')
  t.match(page, 'Run a service of your own')
  t.notMatch(page, 'TRY_ENABLED', 'a visitor sets nothing')
  const posted = await fetch(new URL('/try', off.address), {
    method: 'POST',
    headers: { accept: BROWSER, 'content-type': 'application/x-www-form-urlencoded' },
    body: 'claim=x',
  })
  t.equal(posted.status, 404)
  t.match(await posted.text(), 'This service does not offer free checks.')
  const message = 'Nothing can be tried here: TRY_ENABLED is false.'
  const error = { error: { code: 'not_found', message, retryable: false } }
  t.equal(await (await fetch(new URL('/try', off.address))).text(), JSON.stringify(error), 'programs get the setting')
  await using closed = await system.openTwin({}, { TRY_ENABLED: 'false', VERIFICATION_ENABLED: 'false' })
  const neither = await (await fetch(new URL('/try', closed.address), { headers: { accept: BROWSER } })).text()
  t.match(neither, 'does not offer free checks. Verifications are not sold at present either.')
  t.notMatch(neither, 'Buy a verification')
  for (const path of ['/verify', `/results/${randomUUID()}`])
    t.notMatch(await (await read(path)).text(), 'data-can-try', `${path} leads nobody there`)
  const front = await (await read('/')).text()
  t.notMatch(front, '<form')
  t.notMatch(front, 'assets/try-')
  t.notMatch(front, 'href="/try"')
  t.match(await (await fetch(system.url('/verify'))).text(), / data-can-try/)
  const there = await (await fetch(system.url('/pricing'), { headers: { accept: BROWSER } })).text()
  t.match(there, '<a href="/try">Try it</a>', 'the navigation names it where it is')
})

t.test('while nothing is sold, the page says so in place of its form', async (t) => {
  await using closed = await system.openTwin({}, { VERIFICATION_ENABLED: 'false' })
  const answer = await fetch(new URL('/try', closed.address), { headers: { accept: BROWSER } })
  t.equal(answer.status, 200)
  const page = await answer.text()
  t.match(page, /Closed\.<[\s\S]*Until they are switched on, nothing can be tried either\./)
  t.match(page, 'href="/verify">Verify a result</a>')
  t.notMatch(page, '<form')
  t.notMatch(page, 'assets/try-')
})

t.test('in a browser', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  await inspect(t, browser, system.url('/try'), 'try')

  await t.test('a page, a claim, the answer, and the quote on its page', async (t) => {
    await using opened = await visit(browser, system.url('/'))
    const { page, complaints, requests } = opened
    await page.getByRole('button', { name: 'Check it' }).click()
    await page.getByText('Name one page: its address begins with https://.').waitFor()
    t.equal(await page.evaluate(() => document.activeElement?.id), 'try-source_url')
    t.notOk(
      requests.some((request) => request.startsWith('POST')),
      'nothing is asked for',
    )

    await page.getByRole('button', { name: 'Opening hours that were got wrong' }).click()
    const verdict = page.locator('#answer #verdict')
    await verdict.waitFor()
    t.equal(await verdict.textContent(), '“Not judged, quotes only')
    t.equal(await page.evaluate(() => document.activeElement?.id), 'verdict', 'the keyboard is at the answer')
    t.equal(
      await page.getByLabel('What it is said to say').inputValue(),
      'The Orle Museum of Clocks is open on Mondays.',
    )
    t.same(await seriousFindings(page), [])
    const link = page.getByRole('link', { name: 'Open the page at this quote' }).first()
    t.match(await link.getAttribute('href'), /\/samples\/museum-hours#:~:text=/)
    const [sample] = await Promise.all([page.context().waitForEvent('page'), link.click()])
    await sample.waitForLoadState()
    t.equal(new URL(sample.url()).pathname, '/samples/museum-hours')
    t.match(await sample.locator('main').textContent(), /It is closed on Mondays\./)

    // A page of the site, by the keyboard.
    const { source_url, claim } = harbourClaim(system.site)
    await page.getByLabel('Page', { exact: true }).fill(source_url)
    await page.getByLabel('What it is said to say').fill(claim)
    await page.getByLabel('Page', { exact: true }).press('Enter')
    await page.locator('#answer').getByText(`“${claim}”`).waitFor()
    const known = await fetch(system.url('/try'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ source_url, claim }),
    })
    const { methodology_version } = await (await fetch(system.url('/api/agent/v1/capabilities'))).json()
    t.same(await faultsOfCard(page, { ...(await known.json()), claim, methodology_version }), [])
    // What is refused at once is said in the page, and is no error on the console.
    await page.getByLabel('Page', { exact: true }).fill('https://127.0.0.1/')
    await page.getByRole('button', { name: 'Check it' }).click()
    await page.locator('#answer').getByText('There is no answer.').waitFor()
    t.same(complaints, [])
    t.same(await system.sql('select count(*)::int n from receipts'), [{ n: 0 }])
  })

  await t.test('while it is read, the stage is in the place of the answer', async (t) => {
    await using opened = await visit(browser, system.url('/try'))
    const { page, complaints } = opened
    await page.getByLabel('Page', { exact: true }).fill(system.site.url('/slow'))
    await page.getByLabel('What it is said to say').fill('The tide turns at noon.')
    await page.getByRole('button', { name: 'Check it' }).click()
    await page.waitForSelector('#answer li.now:text-is("Reading the page")')
    t.equal(await page.locator('#answer [role=status]').textContent(), 'Reading the page')
    t.same(await seriousFindings(page), [])
    held.resolve()
    await page.locator('#answer #verdict').waitFor()
    t.equal(await page.locator('#answer li.now').count(), 0)
    t.same(complaints, [])
  })

  await t.test('a link fills the form, and asks nothing by itself', async (t) => {
    const { source_url, claim } = harbourClaim(system.site)
    const question = { source_url: `${source_url}?a=1&b=ü`, claim: `${claim} 100 % + “more” & #more` }
    const link = tryLink(new URL(system.url('/try')), question)
    await using opened = await visit(browser, link)
    const { page, complaints, requests } = opened
    const filled = async () => ({
      source_url: await page.inputValue('#try-source_url'),
      claim: await page.inputValue('#try-claim'),
    })
    t.same(await filled(), question)
    t.notOk(
      requests.some((request) => request.startsWith('POST') || /more|b=/.test(request.replace(/#.*$/, ''))),
      'nothing of it is sent',
    )
    await page.goto(tryLink(new URL(system.url('/try')), { source_url, claim }))
    t.same(await filled(), { source_url, claim }, 'another link on the same page')
    await page.locator('.skip').press('Enter')
    t.same(await filled(), { source_url, claim }, 'what is no such link changes nothing')
    await page.getByRole('button', { name: 'Check it' }).click()
    await page.locator('#answer #verdict').waitFor()
    t.same(complaints, [])
  })

  await t.test('without JavaScript', async (t) => {
    await using opened = await visit(browser, system.url('/'), { javaScriptEnabled: false })
    const { page } = opened
    await page.getByRole('button', { name: 'A figure in an article' }).click()
    await page.locator('#answer #verdict').waitFor()
    t.equal(new URL(page.url()).pathname, '/try')
    t.same(opened.complaints, [])
  })
})
