// The page with which chat hosts show answers (MCP Apps): how it is offered, and what it shows in a frame of the stock
// host.
import { gzipSync } from 'node:zlib'
import { RESOURCE_MIME_TYPE } from '@modelcontextprotocol/ext-apps'
import t from 'tap'
import { wordsOf } from '../../client/page/verify/check-words.ts'
import { HEADLINES } from '../../client/page/verify/report-view.ts'
import { noBrowser, overflow, seriousFindings, sharedBrowser, shown } from '../browser.ts'
import type { Result } from '../interface.schema.ts'
import { faultsOfCard } from '../pages/card.ts'
import { harbourClaim, startSystem } from '../system.ts'
import { draw, fits, openChatHosts, portray } from './chat-frame.ts'
import type { HostOptions } from './chat-host.ts'
import { callTool, expectCompleted, KEY, PAYMENT, post, readAnswer, sign, TOOL, type ToolResult } from './paid-tool.ts'

const URI = 'ui://countersign/report'
const CHECK = 'service_receipt_verify'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const address = system.url('/')
const ask = async (method: string, params: Record<string, unknown> = {}, modern = true) =>
  (await readAnswer(await post(address, method, params, { modern }))).result as unknown as Record<string, never[]>

const args = harbourClaim(system.site)
const { asked, payment } = await sign(address, { args, meta: { [KEY]: 'a-purchase-in-a-chat-0' } })
const bought = await callTool(address, { args, meta: { [KEY]: 'a-purchase-in-a-chat-0', [PAYMENT]: payment } })
const bytes = JSON.stringify(bought.structuredContent)
const result: Result = JSON.parse(bytes)

async function checkReceipt(receipt: object): Promise<ToolResult> {
  const { result } = await readAnswer(await post(address, 'tools/call', { name: CHECK, arguments: { ...receipt } }))
  return result as ToolResult
}

const [resource] = (await ask('resources/read', { uri: URI })).contents as unknown as { text: string }[]
const html = resource?.text ?? ''

for (const modern of [true, false])
  t.test(`offered in the ${modern ? 'modern' : 'legacy'} era`, async (t) => {
    const tools = (await ask('tools/list', {}, modern)).tools as { name: string; _meta?: Record<string, unknown> }[]
    const drawn = tools.filter(({ _meta }) => _meta?.ui !== undefined)
    t.same(drawn.map(({ name }) => name).sort(), [CHECK, TOOL].sort())
    for (const { _meta } of drawn) t.match(_meta, { ui: { resourceUri: URI }, 'ui/resourceUri': URI })
    const expected = { uri: URI, mimeType: RESOURCE_MIME_TYPE, _meta: { ui: { csp: { connectDomains: [] } } } }
    t.match((await ask('resources/list', {}, modern)).resources?.at(-1), expected)
    const { contents } = await ask('resources/read', { uri: URI }, modern)
    t.match(contents, [expected])
  })

t.test('the page is one file, and an answer is what it is without it', async (t) => {
  t.match(
    html,
    /^<!doctype html>[\s\S]*<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-/,
  )
  t.notMatch(html, /unsafe-|<link|<script src|@import|url\(["']?http/)
  const weight = { bytes: Buffer.byteLength(html), zipped: gzipSync(html).length }
  t.comment(`${weight.bytes} bytes, ${weight.zipped} with gzip`)
  // Two thirds of it are the stock package.
  t.ok(weight.zipped < 165_000, `${weight.zipped} bytes with gzip`)
  expectCompleted(t, bought)
  for (const answer of [asked, bought, await checkReceipt(result.receipt)]) {
    t.equal(answer.content.length, 1)
    t.notMatch(JSON.stringify(answer), /ui:\/\//)
  }
})

t.test('in a frame of the stock host', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  await using hosts = await openChatHosts(browser, (uri) => ask('resources/read', { uri }))
  const openHost = (options: Partial<HostOptions> = {}, text = html) => hosts.open(text, options)

  await t.test('a purchase, from the wait to the report', async (t) => {
    await using opened = await openHost()
    const { page, frame, requests, complaints } = opened
    await page.evaluate((args) => window.host.call(args), args)
    await frame.waitForSelector('text=No result yet.')
    await frame.waitForSelector('.facts')
    t.match(await shown(frame, 'main'), /waits for the chat host[\s\S]*opened in 1874/)
    const said = await draw(opened, args, bought)
    const { host } = new URL(system.service.address)
    for (const words of [
      HEADLINES.published,
      `a key that ${host} publishes`,
      args.claim,
      args.source_url,
      'no money moved',
      'Published here.',
      'The checks were made in this frame.',
    ])
      t.ok(said.includes(words), words)
    t.same(await faultsOfCard(frame, JSON.parse(bytes)), [])
    t.match(await shown(frame, 'mark'), /1874/)
    t.match(await shown(frame, '.checks > summary'), /^(\d+) of \1 checks passed$/)
    t.same(await seriousFindings(frame), [], 'light')
    t.equal(await frame.evaluate(() => getComputedStyle(document.body).colorScheme), 'light', "not the system's theme")
    await frame.click('text=Open the page at this quote')
    await page.waitForFunction(() => window.host.opened.length > 0)
    const [link] = await page.evaluate(() => window.host.opened)
    t.ok(link?.startsWith(`${args.source_url}#:~:text=`), String(link))
    // The host gives the frame the height that the page asks for, also after it shrank.
    await frame.click('.checks > summary')
    await fits(frame)
    await frame.click('.checks > summary')
    await fits(frame)
    await portray(page, frame, 'result-light', 1440)
    await portray(page, frame, 'result-light', 360)
    t.equal(await overflow(frame), 0, '360 pixels')
    await page.evaluate(() => window.host.setTheme('dark'))
    await frame.waitForSelector('html[data-theme=dark]')
    t.same(await seriousFindings(frame), [], 'dark')
    await portray(page, frame, 'result-dark', 360)
    await portray(page, frame, 'result-dark', 1440)
    t.same(requests, [], 'no request leaves')
    t.same(complaints, [], 'the policy refuses nothing')
  })

  await t.test('altered, judged, refused', async (t) => {
    // This host reads no resources for the page, so the page takes the keys that came with it.
    await using opened = await openHost({ reads: false })
    const { page, frame, requests, complaints } = opened
    const altered = { ...bought, content: [{ type: 'text', text: bytes.replace('opened in 1874', 'opened in 1875') }] }
    const bad = await draw(opened, args, altered)
    t.ok(bad.includes(HEADLINES.bad))
    t.ok(bad.includes(wordsOf('result_sha256').fails))
    t.same(await seriousFindings(frame), [])
    await portray(page, frame, 'altered-light', 1440)
    const { content: _, ...structured } = bought
    t.ok((await draw(opened, args, { ...structured, content: [] })).includes(HEADLINES.published), 'without its text')

    const { receipt } = result
    const good = await draw(opened, { ...receipt }, await checkReceipt(receipt))
    t.match(good, /says: valid\.[\s\S]*(\d) of \1 checks of the service passed[\s\S]*This is the receipt of a purchase/)
    t.ok(good.includes(HEADLINES.published))
    await portray(page, frame, 'receipt-light', 1440)
    const { serial } = receipt.attestation
    const proved = await (await fetch(system.url(`/v1/receipt/${serial}`))).json()
    t.match(await draw(opened, proved, await checkReceipt(proved)), /says: valid\.[\s\S]*This is a receipt\./)
    const { attestation } = proved
    t.match(await draw(opened, { attestation }, await checkReceipt({ attestation })), /This is an attestation\./)
    const forged = { ...receipt, envelope: { ...receipt.envelope, request_id: 'another' } }
    const judged = await draw(opened, forged, await checkReceipt(forged))
    t.match(judged, /says: not valid\./)
    t.ok(judged.includes(HEADLINES.bad) && judged.includes(wordsOf('canonical_envelope').fails))
    t.same(await seriousFindings(frame), [])
    await portray(page, frame, 'receipt-altered-light', 1440)

    t.match(
      await draw(opened, args, asked),
      /This is terms of payment; there is no receipt\.[\s\S]*Nothing to verify[\s\S]*asked for a payment\. Nothing was charged/,
    )
    const refused = await callTool(address, { args: { ...args, source_url: 'http://example.com/' } })
    t.match(await draw(opened, args, refused), /This is a failed request[\s\S]*Nothing to verify[\s\S]*not charged/)
    const pending = { status: 'pending', error: { code: 'in_progress', message: 'At work.', retryable: true } }
    const reported = { content: [{ type: 'text', text: JSON.stringify(pending) }], structuredContent: pending }
    t.match(await draw(opened, args, reported), /This is a request that is not completed[\s\S]*Do not pay again/)
    const task = { content: [{ type: 'text', text: 'The page is being read.' }] }
    t.match(await draw(opened, args, task), /There is no result to draw\. The host handed on: The page is being read/)
    await page.evaluate(() => window.host.cancel('The user stopped it.'))
    await frame.waitForSelector('text=The call was cancelled. The user stopped it.')
    t.same(requests, [], 'no request leaves')
    t.same(complaints, [], 'the policy refuses nothing')
  })

  await t.test('a key that nothing vouches for, and none to ask', async (t) => {
    const unknown = html.replace(/data-keys="[^"]*"/, 'data-keys="[]"')
    await using opened = await openHost({ reads: false }, unknown)
    t.ok((await draw(opened, args, bought)).includes(HEADLINES.stranger))
    await opened.frame.click('.pins > summary')
    const { keys } = await (await fetch(system.url('/v1/keys'))).json()
    await opened.frame.fill('#pins', JSON.stringify(keys))
    await opened.frame.locator('#pins').blur()
    await opened.frame.waitForSelector('text=Pinned by you.')
    t.equal(await shown(opened.frame, '#standing'), HEADLINES.good)
  })
})
