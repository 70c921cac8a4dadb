// The pages that anybody reads: front page, prices, guide. What they say is the configuration's, and what they tell to copy works.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { generatePrivateKey } from 'viem/accounts'
import { LIMITS, TIERS, type TierLimits } from '../../server/accounts/tiers.ts'
import { catalog } from '../../server/catalog.ts'
import { errorTable } from '../../server/errors.ts'
import { readTransitions } from '../../server/pages/diagram.ts'
import { findDocuments } from '../../server/pages/documents.ts'
import { roomsOf } from '../../server/pages/reference-page.ts'
import { inspect, noBrowser, sharedBrowser, visit } from '../browser.ts'
import { startSystem } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const read = async (path: string) => (await fetch(system.url(path), { headers: { accept: BROWSER } })).text()
const run = promisify(execFile)

t.test('programs get the text alone at /, and browsers the page', async (t) => {
  const program = await fetch(system.url('/'))
  t.match(program.headers.get('content-type'), /^text\/html/)
  t.match(program.headers.get('vary'), /accept/)
  t.match(await program.text(), /<pre># Countersign\n/)
  t.match(await read('/'), /<h1>/)
})

t.test('every link of the public pages leads somewhere', async (t) => {
  const documents = await findDocuments()
  t.ok(documents.size > 20)
  const pages = ['/', '/pricing', '/guide', '/verify', '/docs', '/status', '/accuracy', ...documents.keys()]
  const links = new Map<string, string>()
  for (const path of pages) {
    const page = await read(path)
    for (const [, link = ''] of page.matchAll(/ href="([^"]*)"/g)) links.set(new URL(link, system.url(path)).href, path)
  }
  const own = [...links].filter(([link]) => link.startsWith(system.service.address))
  t.ok(own.length > 40)
  const texts = new Map<string, string>()
  for (const [link, from] of own) {
    const { pathname, hash } = new URL(link)
    if (!texts.has(pathname)) {
      const answer = await fetch(link, { headers: { accept: BROWSER } })
      t.equal(answer.status, 200, `${pathname}, linked from ${from}`)
      texts.set(pathname, await answer.text())
    }
    if (hash)
      t.ok(texts.get(pathname)?.includes(` id="${decodeURIComponent(hash.slice(1))}"`), `${link}, linked from ${from}`)
  }
})

t.test('the guide escapes raw HTML, and leads links between documents to their pages', async (t) => {
  const page = await read('/guide/limits')
  t.match(page, '<h1 id="limits">Limits</h1>')
  t.notMatch(page, '<!-- limits -->')
  t.match(page, 'href="/guide/buying#how-much-at-once"')
  t.equal((await fetch(system.url('/guide/../../etc/passwd'))).status, 404)
  t.equal((await fetch(system.url('/guide/nothing'))).status, 404)
})

t.test('diagrams of states are tables of their transitions', async (t) => {
  const source = await readFile(join(import.meta.dirname, '../../docs/architecture.md'), 'utf8')
  const arrows = [...source.matchAll(/^ {2}(\S+) --> (\S+?)(?:: (.*))?$/gm)]
  t.ok(arrows.length > 50, `${arrows.length} transitions`)
  const page = await read('/guide/architecture')
  t.equal(page.match(/<table><thead><tr><th scope="col">From</g)?.length, source.match(/^```mermaid/gm)?.length)
  const tables = page.slice(page.indexOf('From'))
  const rows = tables.match(
    /<tr>(<th scope="rowgroup".*?<\/th>)?<td>(ends|(stays )?<code>\w+<\/code>)<\/td><td>.*?<\/td><\/tr>/g,
  )
  t.equal(rows?.length, arrows.length)
  t.match(page, /<code>settling<\/code><\/th><td><code>settled<\/code><\/td><td>proved paid<\/td>/)
  t.match(page, />begins<\/th><td><code>quoted<\/code><\/td><td>asked without payment</)
  for (const other of ['flowchart TD\n  a --> b', 'stateDiagram-v2\n  a --> b\n  note right of a', 'stateDiagram-v2'])
    t.equal(readTransitions(other), null, 'anything else stays text')
})

t.test('prices and limits are those of the tables', async (t) => {
  const page = await read('/pricing')
  for (const name of Object.keys(LIMITS.free) as (keyof TierLimits)[]) {
    const row = page.match(new RegExp(`${name.replaceAll('_', ' ')}(<br|</th>).*?</tr>`))?.[0] ?? ''
    t.same(
      [...row.matchAll(/<td class="number">([\d,]+)<\/td>/g)].map(([, number = '']) =>
        Number(number.replaceAll(',', '')),
      ),
      TIERS.map((tier) => LIMITS[tier][name]),
      name,
    )
  }
})

/** The text of the piece of code with this label. */
function codeOf(page: string, label: string): string {
  const found =
    page.match(new RegExp(`<figcaption>${label}[^<]*</figcaption><pre[^>]*><code>([^<]*)</code>`))?.[1] ?? ''
  return found
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

t.test('the reference has every operation with a true example, and every error', async (t) => {
  t.notOk(
    roomsOf(catalog).some(([name]) => name === 'Others'),
    'every operation has a room',
  )
  const page = await read('/docs')
  const sections = page.split('<article class="operation"').slice(1)
  t.equal(sections.length, catalog.length)
  for (const { name, method, path } of catalog) {
    const section = sections.find((one) => one.includes(`<h3 id="${name}">`)) ?? ''
    t.ok(section.includes(`>${method}</strong> <code>${path}</code>`), `${method} ${path}`)
    t.match(section, /<summary>Example<\/summary>/, name)
    for (const [, code = ''] of section.matchAll(/#error-(\w+)"/g)) t.ok(page.includes(`id="error-${code}"`), code)
  }
  for (const code of Object.keys(errorTable)) t.ok(page.includes(`id="error-${code}"`), code)
  t.notMatch(page, '{base_url}')
  const purchase = sections.find((one) => one.includes('id="verify_source"')) ?? ''
  t.match(purchase, /<code>options\.max_age_seconds<\/code>.*?0 to 300\. Default 60\./)
  t.match(purchase, /<code>evidence\[\]\.quote<\/code>/)
})

t.test('the lines to copy work against this address', async (t) => {
  const page = await read('/')
  const site = (text: string) => text.replaceAll('https://example.com/', system.site.url('/harbour'))
  const root = join(import.meta.dirname, '../..')

  const { stdout } = await run('sh', ['-c', codeOf(page, 'With curl')])
  t.match(stdout, /^HTTP\/1.1 402 [\s\S]*payment-required: /i)

  const command = codeOf(page, 'With the client').replace('countersign', `"${process.execPath}" client/cli.ts`)
  t.match(JSON.parse((await run('sh', ['-c', command], { cwd: root })).stdout), { price: { usd: '0.03' } })

  // Within the repository, so that it finds the packages that the page names.
  const folder = await mkdtemp(join(root, '.tap/copied-'))
  t.teardown(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'buy.mjs'), site(codeOf(page, 'buy.mjs')))
  const env = { ...process.env, WALLET_KEY: generatePrivateKey() }
  t.match((await run(process.execPath, ['buy.mjs'], { cwd: folder, env })).stdout, /^200 [\s\S]*status: 'completed'/)

  const endpoint = codeOf(page, 'Claude Code').split(' ').at(-1) ?? ''
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  })
  t.match(await answer.json(), { result: { tools: [{}] } })
})

t.test('the front page says what is in force', async (t) => {
  const literal = await read('/')
  t.match(literal, /literal: passages are quoted, no verdict is given/)
  t.match(literal, /offline: signatures are checked, no money moves/)
  t.match(literal, />not_assessed<\/strong>/)
  await using twin = await system.openTwin(
    {},
    { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9', VERIFICATION_ENABLED: 'false' },
  )
  const semantic = await (await fetch(twin.address, { headers: { accept: BROWSER } })).text()
  t.match(semantic, /semantic: a language model gives the verdict/)
  t.match(semantic, />contradicts<\/strong>/)
  t.match(semantic, /switched off here at present/)
})

t.test('in a browser', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  t.match(
    await inspect(t, browser, system.url('/'), 'front'),
    /Does the page say so\?[\s\S]*A result, as an example[\s\S]*Three ways in/,
  )
  t.match(await inspect(t, browser, system.url('/pricing'), 'pricing'), /active leases/)
  t.match(await inspect(t, browser, system.url('/guide'), 'guide'), /Buying/)
  t.match(
    await inspect(t, browser, system.url('/docs'), 'docs', { isLong: true }),
    /Verify one claim against one public HTTPS page/,
  )
  t.match(await inspect(t, browser, system.url('/guide/buying'), 'guide-buying'), /How much at once/)

  await t.test('code is copied, and the keyboard reaches everything', async (t) => {
    await using opened = await visit(browser, system.url('/'), { permissions: ['clipboard-read', 'clipboard-write'] })
    const { page } = opened
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate(() => document.activeElement?.textContent), 'To the content')
    await page.getByRole('button', { name: 'Copy: Claude Code' }).click()
    await page.getByRole('button', { name: 'Copy: Claude Code' }).filter({ hasText: 'Copied' }).waitFor()
    t.equal(
      await page.evaluate(() => navigator.clipboard.readText()),
      `claude mcp add --transport http countersign ${system.service.address}/mcp`,
    )
  })
})
