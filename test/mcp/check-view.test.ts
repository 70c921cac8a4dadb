// The page of /mcp/check in chat hosts (MCP Apps): each citation and quote is shown, and proved in the frame from the text that
// the service read.
import { createHash, randomUUID } from 'node:crypto'
import t from 'tap'
import { HEADLINES } from '../../client/page/verify/report-view.ts'
import { noBrowser, overflow, seriousFindings, sharedBrowser, shown } from '../browser.ts'
import { PAGE, payingFetch, startSystem } from '../system.ts'
import { draw, openChatHosts, portray } from './chat-frame.ts'
import { ERAS, openRawClient } from './raw-client.ts'

const URI = 'ui://countersign/report'
const TEXTS = 'service/page-texts'
const TOOLS = ['check_quotes', 'check_report', 'verify_receipt', 'verify_result']

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const { ask, call } = openRawClient(system.url('/mcp/check'))
const read = async (uri: string, era: 'legacy' | 'modern' = 'modern') =>
  (await ask('resources/read', { uri }, { era })).body.result

function newPage(body = PAGE) {
  const path = `/${randomUUID()}`
  system.site.pages.set(path, { body })
  return system.site.url(path)
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

const quotesArgs = {
  source_url: newPage(),
  quotes: [
    'The harbour was opened in 1874',
    'the HARBOUR was opened',
    'The harbour was opened in 1974 by the county engineers',
    'Penguins are birds of the southern hemisphere',
  ],
}
const quotes = await call('check_quotes', quotesArgs)

const long = `${PAGE}${'<p>The council met again, and nothing of note was said about the ferry.</p>'.repeat(1400)}`
const reportArgs = {
  markdown: `# Kelby

The council says that “The harbour was opened in 1874” ([history](${newPage(long)})).

It also says that “The harbour was opened in 1874” ([the same again](${newPage(long.replace('<p>', '<p>Again. </p><p>'))})),
and that “The harbour was closed in 1990 by the navy of Denmark” ([other](${newPage(long.replace('<p>', '<p>Other. </p><p>'))})).

A page about it is gone, “They say so in every book of theirs” ([gone](${system.site.url('/gone')})).
`,
}
const report = await call('check_report', reportArgs)

for (const era of ERAS)
  t.test(`offered in the ${era} era`, async (t) => {
    const { tools } = (await ask('tools/list', {}, { era })).body.result
    t.same(
      tools.map(({ name, _meta }: { name: string; _meta: object }) => [name, _meta]),
      TOOLS.map((name) => [name, { ui: { resourceUri: URI }, 'ui/resourceUri': URI }]),
    )
    const { resources } = (await ask('resources/list', {}, { era })).body.result
    t.same(
      resources.map(({ uri }: { uri: string }) => uri),
      ['service://keys', URI],
    )
    t.match(await read(URI, era), { contents: [{ uri: URI, mimeType: 'text/html;profile=mcp-app' }] })
  })

t.test('the texts are with the answer, or can be read, by whoever has the answer alone', async (t) => {
  const { text_sha256 } = quotes.structuredContent.source
  const [only] = quotes._meta[TEXTS]
  t.equal(only.text_sha256, text_sha256)
  t.equal(sha256(only.text), text_sha256)
  const entries: { text_sha256: string; uri: string; text?: string }[] = report._meta[TEXTS]
  t.equal(entries.length, 3, 'of the three pages that are there')
  t.ok(entries.some(({ text }) => text === undefined) && entries.some(({ text }) => text !== undefined))
  for (const era of ERAS)
    for (const { uri, text_sha256 } of entries) {
      const [content] = (await read(uri, era)).contents
      t.match(content, { uri, mimeType: 'text/plain' })
      t.equal(sha256(content.text), text_sha256)
    }
  for (const uri of [`service://page-texts/${randomUUID()}`, 'service://page-texts/', 'service://page-texts/x'])
    t.match((await ask('resources/read', { uri })).body.error, { code: -32_602 })
  t.notMatch(JSON.stringify([quotes.content, quotes.structuredContent]), /page-texts/, 'no model sees them')
  const [id] = await system.sql('select id::text from quote_checks order by created_at limit 1')
  await system.sql('update quote_checks set expires_at = now() where id = $1', [id?.id])
  t.match((await ask('resources/read', { uri: only.uri })).body.error, { code: -32_602 }, 'as long as the check')
})

t.test('every part of a report says where its page has it', async (t) => {
  const [held] = report.structuredContent.citations
  const { text, start, end, quote_sha256, text_sha256 } = held.parts[0]
  const { uri } = report._meta[TEXTS].find((entry: { text_sha256: string }) => entry.text_sha256 === text_sha256)
  const [page] = (await read(uri)).contents
  t.equal(
    Array.from(page.text as string)
      .slice(start, end)
      .join(''),
    text,
  )
  t.equal(quote_sha256, sha256(text))
})

t.test('in a frame of the stock host', { skip: noBrowser }, async (t) => {
  const html = (await read(URI)).contents[0].text
  await using hosts = await openChatHosts(await sharedBrowser(), read)

  await t.test('quotes: found, and proved', async (t) => {
    await using opened = await hosts.open(html)
    const { page, frame, requests, complaints } = opened
    const said = await draw(opened, quotesArgs, quotes)
    for (const words of [
      'This is a check of quotes.',
      '2 of 4 quotes are on the page',
      'What the check says of all 4 quotes was proved in this frame.',
      quotesArgs.source_url,
      ...quotesArgs.quotes,
      'On the page, typography aside',
    ])
      t.ok(said.includes(words), words)
    t.same(await frame.locator('.passage .tag').allInnerTexts(), [
      'Proved in this frame',
      'Proved in this frame',
      'Absence proved in this frame',
      'Absence proved in this frame',
    ])
    t.match(await frame.locator('mark').allInnerTexts(), [
      'The harbour was opened in 1874',
      'The harbour was opened',
      /opened in 1874/,
    ])
    for (const summary of await frame.locator('.checks > summary').all()) await summary.click()
    const steps = await shown(frame, '.citations')
    t.match(steps, `SHA-256 of the quote, computed here: ${sha256('The harbour was opened in 1874')}`)
    t.match(steps, `SHA-256 of the page's text, computed here: ${quotes.structuredContent.source.text_sha256}`)
    const [{ start, end }] = quotes.structuredContent.quotes
    t.match(steps, `Characters ${start} to ${end} of the text are the quote.`)
    t.match(steps, 'The text does not have the quote word for word.')
    t.same(await seriousFindings(frame), [], 'light')
    await portray(page, frame, 'check-quotes-light', 1440)
    await portray(page, frame, 'check-quotes-light', 360)
    t.equal(await overflow(frame), 0, '360 pixels')
    await page.evaluate(() => window.host.setTheme('dark'))
    await frame.waitForSelector('html[data-theme=dark]')
    t.same(await seriousFindings(frame), [], 'dark')
    await portray(page, frame, 'check-quotes-dark', 360)
    await portray(page, frame, 'check-quotes-dark', 1440)
    await frame.locator('text=Open the quote on the live page').first().click()
    await page.waitForFunction(() => window.host.opened.length > 0)
    t.match(await page.evaluate(() => window.host.opened), [`${quotesArgs.source_url}#:~:text=`])
    t.same(requests, [], 'no request leaves')
    t.same(complaints, [], 'no policy refuses anything')
  })

  await t.test('what a check says wrongly is refuted', async (t) => {
    await using opened = await hosts.open(html)
    const altered = async (change: (answer: typeof quotes) => void) => {
      const answer = structuredClone(quotes)
      change(answer)
      answer.content = []
      return draw(opened, quotesArgs, answer)
    }
    const first = (answer: typeof quotes) => answer.structuredContent.quotes[0]
    const NOT_SO = 'What the check says of 1 of 4 quotes is not so.'
    t.match(await altered((answer) => first(answer).start++), NOT_SO, 'another place')
    t.match(await altered((answer) => (first(answer).quote_sha256 = sha256('x'))), NOT_SO, 'another digest')
    t.match(await altered((answer) => (first(answer).quote = 'The harbour was opened in 1875')), NOT_SO)
    t.match(await altered((answer) => (first(answer).match = 'absent')), NOT_SO, 'a quote that is there')
    t.match(await altered((answer) => (answer.structuredContent.quotes[1].end = 12)), NOT_SO, 'another passage')
    t.match(await altered((answer) => (answer.structuredContent.quotes[2].nearest.text = 'x')), NOT_SO, 'nearest')
    const forged = await altered((answer) => (answer._meta[TEXTS][0].text += ' '))
    t.match(forged, 'What the check says of 4 of 4 quotes is not so.')
    t.equal(await opened.frame.locator('.standing.tone-bad').count(), 1)
    t.same(await seriousFindings(opened.frame), [])
  })

  await t.test('a report: every citation, with texts that the host reads', async (t) => {
    await using opened = await hosts.open(html)
    const { page, frame, requests, complaints } = opened
    const said = await draw(opened, reportArgs, report)
    for (const words of [
      'This is a check of a report.',
      '2 of 4 citations hold',
      'What the check says of all 3 quotes was proved in this frame.',
      'Not on the page',
      'The page is dead',
      'Line 3',
    ])
      t.ok(said.includes(words), words)
    t.equal(await frame.locator('.citations > li').count(), 4)
    t.same(await seriousFindings(frame), [])
    await portray(page, frame, 'check-report-light', 1440)
    await portray(page, frame, 'check-report-light', 360)
    t.equal(await overflow(frame), 0, '360 pixels')
    await page.evaluate(() => window.host.setTheme('dark'))
    await frame.waitForSelector('html[data-theme=dark]')
    await portray(page, frame, 'check-report-dark', 360)
    await portray(page, frame, 'check-report-dark', 1440)
    t.same(requests, [])
    t.same(complaints, [])

    await using alone = await hosts.open(html, { reads: false })
    t.match(
      await draw(alone, reportArgs, report),
      'quotes were proved in this frame: the host brought no text for the others.',
    )
    t.ok((await shown(alone.frame, 'main')).includes('No text to prove it by'))
  })

  await t.test('receipts, results, and answers of which nothing is drawn', async (t) => {
    await using opened = await hosts.open(html)
    const bought = await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=25' } })
    const result_json = await bought.text()
    const result = await draw(opened, { result_json }, await call('verify_result', { result_json }))
    t.match(result, /says: valid\.[\s\S]*The harbour was opened in 1874\./)
    t.ok(result.includes(HEADLINES.published))
    const { attestation, canonical_envelope_base64 } = JSON.parse(result_json).receipt
    const { inclusion, checkpoint } = await (await fetch(system.url(`/v1/receipt/${attestation.serial}`))).json()
    for (const [given, kind] of [
      [{ attestation }, /This is an attestation/],
      [{ attestation, canonical_envelope_base64 }, /This is the receipt of a purchase/],
      [{ attestation, proof: { inclusion, checkpoint } }, /This is a receipt\./],
    ] as const) {
      const words = await draw(opened, given, await call('verify_receipt', given))
      t.match(words, /says: valid\./)
      t.match(words, kind)
      t.ok(words.includes(HEADLINES.published))
    }
    t.match(await draw(opened, {}, await call('check_quotes', {})), /Nothing was checked\. source_url/)
    const pending = { status: 'pending', done: 1, pages: 2, message: '1 of 2 pages are checked.' }
    const content = [{ type: 'text', text: JSON.stringify(pending) }]
    t.match(await draw(opened, {}, { content, structuredContent: pending }), /not finished\. 1 of 2 pages/)
    t.match(await draw(opened, {}, { content: [{ type: 'text', text: 'Hm.' }] }), /no result to draw\. .* Hm\./)
    t.same(opened.complaints, [])
  })
})
