// The pages that anybody reads: front page, prices, guide. What they say is the configuration's, and what they tell to copy works.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { generatePrivateKey } from 'viem/accounts'
import { LIMITS, TIERS, type TierLimits } from '../../server/accounts/tiers.ts'
import { catalog } from '../../server/catalog.ts'
import { errorTable } from '../../server/errors.ts'
import { readTransitions } from '../../server/pages/guide/diagram.ts'
import { findDocuments } from '../../server/pages/guide/documents.ts'
import { roomsOf } from '../../server/pages/reference/reference-page.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import {
  findMisfits,
  inspect,
  noBrowser,
  overflow,
  picture,
  seriousFindings,
  sharedBrowser,
  shown,
  visit,
} from '../browser.ts'
import { openScriptedFacilitator, startSystem } from '../system.ts'
import { faultsOfCard } from './card.ts'
import { findRoom } from './screens.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
/** A page of the guide or the reference is asked for once: nothing that is done here changes it. */
function read(path: string): Promise<string> {
  const ask = async () => (await fetch(system.url(path), { headers: { accept: BROWSER } })).text()
  if (!/^\/(docs|guide)\//.test(path)) return ask()
  const text = asked.get(path) ?? ask()
  asked.set(path, text)
  return text
}
const asked = new Map<string, Promise<string>>()
const run = promisify(execFile)

t.test('programs get the text alone at /, and browsers the page', async (t) => {
  const program = await fetch(system.url('/'))
  t.match(program.headers.get('content-type'), /^text\/html/)
  t.match(program.headers.get('vary'), /accept/)
  t.match(await program.text(), /<pre># Countersign\n/)
  t.match(await read('/'), /<h1>/)
})

t.test('the front page shows a result of the assessment in force, whichever it is', async (t) => {
  for (const ASSESSMENT of ['literal', 'local', 'semantic']) {
    const key = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' }
    await using front = await openAccountHarness({ ASSESSMENT, ...key })
    const answer = await fetch(new URL('/', front.address), { headers: { accept: BROWSER } })
    t.equal(answer.status, 200, ASSESSMENT)
    const page = await answer.text()
    t.match(page, new RegExp(`>${ASSESSMENT}: `), 'and says which it is')
    const [, first = ''] = /<h1>(.*?<p class="lead">.*?)<\/p>/s.exec(page) ?? []
    t.match(first, /AI agent[\s\S]*one page and one claim/, 'its first words say what it does, and for whom')
    t.notMatch(first, /SHA|hash|digest|code points?|Merkle|ed25519|[0-9a-f]{16}/i, 'in words of every day')
  }
})

t.test(
  'while purchases are closed, the front page says so at the commands to buy, and leads to what works',
  async (t) => {
    const usesOf = async (settings: Record<string, string>) => {
      await using front = await openAccountHarness(settings)
      const answer = await fetch(new URL('/', front.address), { headers: { accept: BROWSER } })
      return /<section aria-labelledby="ways">.*?<\/section>/s.exec(await answer.text())?.[0] ?? ''
    }
    const closed = await usesOf({ VERIFICATION_ENABLED: 'false' })
    t.match(
      closed,
      /<h2 id="ways">Use it<\/h2><div class="notice"[^>]*><p><strong>Purchases are closed now\.<\/strong> Each one below is answered with 503, and nothing is charged\. What works: <a href="\/verify">/,
    )
    t.notMatch(closed, 'href="/try"', 'a look is a verification too')
    t.notMatch(await usesOf({}), 'class="notice"')
  },
)

t.test('beside its price the front page says once whether money is taken', async (t) => {
  const priceOf = (page: string) => /<section aria-labelledby="price">.*?<\/section>/s.exec(page)?.[0] ?? ''
  const offline = await read('/')
  t.match(
    priceOf(offline),
    /<\/strong> for one verification\..*?<strong>This copy of the service takes no money\.<\/strong>/s,
  )
  t.equal(offline.match(/takes? no money|no money moves/g)?.length, 1)
  t.notMatch(priceOf(offline), 'Payment here')
})

t.test('every link of the public pages leads somewhere', async (t) => {
  const documents = await findDocuments()
  t.ok(documents.size > 20)
  const pages = ['/', '/try', '/pricing', '/guide', '/verify', '/docs', '/status', '/accuracy', ...documents.keys()]
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
  t.match(page, '<a href="/guide/security">Security</a>', 'a link that names a file names its page')
  const client = await read('/guide/client')
  t.match(client, '<code>--statement FILE</code>')
  t.match(client, /<code class="long">countersign verify result\.json /)
  t.equal((await fetch(system.url('/guide/../../etc/passwd'))).status, 404)
  t.equal((await fetch(system.url('/guide/nothing'))).status, 404)
})

t.test('each page of the guide has a description of its own, which the index shows', async (t) => {
  const documents = await findDocuments()
  const index = await read('/guide')
  const descriptions = new Set<string>()
  for (const path of documents.keys()) {
    const page = await read(path)
    const description = /<meta name="description" content="([^"]*)"/.exec(page)?.[1] ?? ''
    t.match(description, /^\S+ \S+ \S+ .*[.:]/, path)
    t.ok(index.includes(description.slice(0, 20)), `${path} in the index`)
    descriptions.add(description)
  }
  t.equal(descriptions.size, documents.size)
})

t.test('each page of the guide names the next one', async (t) => {
  const documents = await findDocuments()
  const followed = new Set<string>()
  for (const path of documents.keys()) {
    const [, next = ''] = /<nav class="next"[^>]*><p>Next: <a href="([^"]+)">/.exec(await read(path)) ?? []
    t.ok(documents.has(next) || next === '/docs', `${path}: ${next}`)
    followed.add(next)
  }
  t.equal(followed.size, documents.size, 'each page follows one other')
})

t.test('what a list says of a page of the guide does not call it this page', async (t) => {
  for (const { path, summary } of (await findDocuments()).values())
    t.notMatch(summary, /^(This|These|Here)\b/, `${path} begins so where another page leads to it`)
})

t.test('diagrams of states are tables of their transitions', async (t) => {
  const source = await readFile(join(import.meta.dirname, '../../docs/architecture.md'), 'utf8')
  const arrows = [...source.matchAll(/^ {2}(\S+) --> (\S+?)(?:: (.*))?$/gm)]
  t.ok(arrows.length > 50, `${arrows.length} transitions`)
  const page = withoutRoles(await read('/guide/architecture'))
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

/** Of the cells of tables that stack in a narrow window. */
const withoutRoles = (page: string) => page.replaceAll(/ (role|data-column)="[^"]*"/g, '')

t.test('prices and limits are those of the tables', async (t) => {
  const page = withoutRoles(await read('/pricing'))
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

t.test('the calculator of /pricing, one form that works without a script', async (t) => {
  const costOf = async (query: string) => {
    const page = await read(`/pricing?${query}`)
    return (
      page.match(/<output[^>]*><strong>([\d,.]+) USDC<\/strong> a month/)?.[1] ??
      page.match(/class="problem">([^<]*)</)?.[1]
    )
  }
  t.equal(await costOf(''), '9.00', 'one claim on ten pages, every day')
  t.equal(await costOf('claims=1&pages=1&checks=1'), '0.03')
  t.equal(await costOf('claims=10&pages=1&checks=1'), '0.12', 'nine further claims')
  t.equal(await costOf('claims=11&pages=1&checks=1'), '0.15', 'an eleventh claim is another purchase')
  t.equal(await costOf('claims=1&pages=1000000&checks=100000'), '3,000,000,000.00', 'the most of both')
  for (const wrong of ['0', '-1', '1.5', 'many', '', '1e3', '1000001'])
    t.equal(await costOf(`pages=${wrong}`), 'A whole number from 1 to 1,000,000.', wrong)
  t.match(await costOf('claims=2&claims=3'), '9.00', 'a repeated parameter is none')
  t.match(
    await read('/pricing?pages=%22%3E%3Cscript%3E'),
    / value="&quot;&gt;&lt;script&gt;"|value="&quot;>&lt;script>"/,
  )
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
  const index = await read('/docs')
  const errors = await read('/docs/errors')
  for (const { name, method, path } of catalog) {
    t.ok(index.includes(`href="/docs/${name}"`), `the index links ${name}`)
    const page = await read(`/docs/${name}`)
    t.ok(page.includes(`>${method}</strong> <code>${path}</code>`), `${method} ${path}`)
    for (const language of ['curl', 'TypeScript', 'Python'])
      t.ok(codeOf(page, `Call in ${language}`).includes(system.service.address), `${name} in ${language}`)
    for (const [, code = ''] of page.matchAll(/#error-(\w+)"/g)) t.ok(errors.includes(`id="error-${code}"`), code)
    t.notMatch(page, '{base_url}', name)
  }
  for (const code of Object.keys(errorTable)) t.ok(errors.includes(`id="error-${code}"`), code)
  const purchase = await read('/docs/verify_source')
  t.match(purchase, /<code>options\.max_age_seconds<\/code>.*?0 to 300\. Default 60\./)
  t.match(purchase, /<code>evidence\[\]\.quote<\/code>/)
  t.equal((await fetch(system.url('/docs/nothing'))).status, 404)
})

t.test('a call is sent from its page in offline mode alone: elsewhere it would move money', async (t) => {
  const LIVE = {
    PAYMENT_MODE: 'testnet',
    SIGNING_SEED: '5e'.repeat(32),
    PAY_TO_EVM: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    BASE_URL: 'https://verify.example',
  }
  await using live = await startSystem({ env: LIVE, overrides: { facilitator: openScriptedFacilitator() } })
  for (const name of ['register', 'verify_source']) {
    t.match(await read(`/docs/${name}`), /try-call/, name)
    const page = await (
      await fetch(new URL(`/docs/${name}`, live.service.address), { headers: { accept: BROWSER } })
    ).text()
    t.match(page, 'Call in curl')
    t.notMatch(page, /try-call/, `${name} on a service that takes money`)
  }
})

t.test('the calls of the reference work in each language', async (t) => {
  const root = join(import.meta.dirname, '../..')
  const folder = await mkdtemp(join(root, '.tap/called-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const page = async (name: string) => (await read(`/docs/${name}`)).replaceAll('&#x27;', "'")
  const register = await page('register')
  const code = (language: string) =>
    codeOf(register, `Call in ${language}`).replace(/"handle": "[^"]*"/, `"handle": "by-${language.toLowerCase()}"`)
  t.match((await run('sh', ['-c', code('curl')])).stdout, /"handle":"by-curl"/)
  await writeFile(join(folder, 'call.mts'), code('TypeScript'))
  const made = await run(process.execPath, ['call.mts'], { cwd: folder })
  t.match(made.stdout, /^201? ?.*"handle":"by-typescript"|^200 .*"handle":"by-typescript"/)
  const key = /ctk_\w+/.exec(made.stdout)?.[0] ?? ''
  await writeFile(join(folder, 'usage.mts'), codeOf(await page('get_usage'), 'Call in TypeScript'))
  const used = await run(process.execPath, ['usage.mts'], { cwd: folder, env: { ...process.env, KEY: key } })
  t.match(used.stdout, /^200 .*"tier":"free"/)
  const python = await run('python3', ['-c', codeOf(await page('grant_lease'), 'Call in Python')], {
    env: { ...process.env, KEY: key },
  })
  t.match(python.stdout, /^201 .*"lease_id"/)
  const refused = await run('python3', ['-c', codeOf(await page('get_usage'), 'Call in Python')], {
    env: { ...process.env, KEY: 'none' },
  })
  t.match(refused.stdout, /^401 .*unauthenticated/)
})

t.test('search and try-it of the reference', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  await using opened = await visit(browser, system.url('/docs'))
  const { page, requests, complaints } = opened
  await page.fill('#sought', 'idempotency')
  await page.waitForSelector('.found a')
  t.match(await page.locator('.found').textContent(), /idempotency/i)
  await page.fill('#sought', 'grant lease')
  await page.waitForSelector('.found a[href="/docs/grant_lease"]')
  t.equal(requests.filter((line) => line.includes('search.json')).length, 1, 'the index is fetched once')
  // Of a text, in no heading.
  await page.fill('#sought', 'PgBouncer in transaction mode')
  await page.waitForSelector('.found a[href="/guide/configuration"]')
  await page.fill('#sought', 'grace_s')
  await page.waitForSelector('.found a[href="/docs/put_watchdog"]')
  await picture(page, 'docs-search-1440-light', false)
  await page.fill('#sought', 'zzzzzz')
  await page.waitForSelector('text=Nothing found.')
  t.same(complaints, [])
  await page.goto(system.url('/docs/register'))
  await page.fill('#body', '{"handle": "tried-here"}')
  await page.getByRole('button', { name: 'Send POST' }).click()
  await page.waitForSelector('.try-call pre:has-text("tried-here")')
  await page.fill('#path', 'https://example.com/v1/register')
  await page.getByRole('button', { name: 'Send POST' }).click()
  await page.waitForSelector('text=only this service is called')
  t.same(complaints, [])
  t.equal(await page.inputValue('#path'), 'https://example.com/v1/register', 'what was typed stays')
  await page.goto(system.url('/docs/verify_source'))
  const keyOf = async (act: () => Promise<unknown>) => {
    const [asked] = await Promise.all([
      page.waitForRequest((one) => one.method() === 'POST' && one.url().endsWith('/verify-source')),
      act(),
    ])
    return asked.headers()['idempotency-key']
  }
  const send = () => page.getByRole('button', { name: 'Send POST' }).click()
  const fresh = await page.inputValue('#idempotency-key')
  t.match(fresh, /^[0-9a-f-]{36}$/)
  t.equal(await keyOf(send), fresh)
  await page.waitForSelector('.try-call pre:has-text("HTTP 402")')
  await page.getByRole('button', { name: 'Another key' }).click()
  t.not(await page.inputValue('#idempotency-key'), fresh)
  await page.fill('#idempotency-key', 'a-key-of-my-own-1')
  t.equal(await keyOf(send), 'a-key-of-my-own-1')
  t.same(await seriousFindings(page), [])
})

t.test('the index of the search has the words of each section, and is not heavier than a page', async (t) => {
  const answer = await fetch(system.url('/docs/search.json'))
  const entries = (await answer.json()) as [path: string, title: string, words: string][]
  const wordsAt = (path: string) => entries.find(([one]) => one === path)?.[2] ?? ''
  const documents = await findDocuments()
  let count = 0
  for (const { path, markup, sections } of documents.values())
    for (const { id, words } of sections) {
      if (id !== '') t.ok(markup.includes(` id="${id}"`), `${path}#${id}`)
      t.equal(wordsAt(id === '' ? path : `${path}#${id}`), words)
      if (words !== '') count += 1
    }
  t.ok(count > 200, `${count} sections with words`)
  // Of a table, a block of code, and the input of an operation.
  t.match(wordsAt('/guide/configuration'), /\bpgbouncer\b/)
  t.match(wordsAt('/guide/buying#a-page-of-your-own'), /\bfixture_hosts\b/)
  t.match(wordsAt('/docs/put_watchdog'), /remind_every_s Seconds between two reminders/)
  const { promise, resolve } = Promise.withResolvers<number>()
  get(system.url('/docs/search.json'), { agent: false, headers: { 'accept-encoding': 'br' } }, (compressed) => {
    t.equal(compressed.headers['content-encoding'], 'br')
    const { socket } = compressed
    compressed.resume().on('end', () => resolve(socket.bytesRead))
  })
  const bytes = await promise
  t.ok(bytes < 60_000, `${bytes} bytes`)
  t.comment(`the index: ${bytes} bytes`)
})

t.test(
  'no page of the guide or the reference has more than twelve screens, of a desk or of a phone',
  { skip: noBrowser },
  async (t) => {
    const browser = await sharedBrowser()
    const sizes = [
      { width: 1440, height: 900 },
      { width: 360, height: 740 },
    ]
    const documents = await findDocuments()
    const paths = ['/docs', '/docs/errors', ...catalog.map(({ name }) => `/docs/${name}`), ...documents.keys()]
    const [wide = [], narrow = []] = await findRoom(browser, system.service.address, paths, sizes)
    for (const rooms of [wide, narrow]) {
      t.equal(rooms.length, paths.length)
      for (const { path, screens } of rooms) t.ok(screens <= 12, `${path}: ${screens} screens`)
    }
    for (const { path, hidden } of wide)
      t.ok((hidden ?? 0) <= 0, `${path}: ${hidden} pixels of the body are out of view`)
    const forms = wide.filter(({ hidden }) => hidden !== null)
    t.ok(forms.length > 10, `${forms.length} pages with a body to send`)

    for (const [path, { markup }] of documents) {
      const [, links = ''] = /<nav class="tables".*?<ul>(.*?)<\/ul>/s.exec(markup) ?? []
      for (const [, id, text = ''] of markup.matchAll(/<div id="([^"]*)">(.*?)<\/div><\/details>/gs))
        if (text.includes('<table')) {
          const ids = [id, ...[...text.matchAll(/<h[34] id="([^"]*)"/g)].map(([, inner]) => inner)]
          t.ok(
            ids.some((one) => links.includes(`href="#${one}"`)),
            `${path}: a link to the tables of ${id}`,
          )
        }
    }
    await using opened = await visit(browser, system.url('/guide/accuracy'), { viewport: { width: 360, height: 740 } })
    const { page } = opened
    t.match(await shown(page, 'summary:has-text("Verdicts, local")'), /^Verdicts, local \d+ tables$/)
    t.equal(await page.locator('.document table:visible').count(), 0, 'every chapter is folded')
    await page.getByRole('navigation', { name: 'Tables on this page' }).getByRole('link', { name: 'The sets' }).click()
    // It scrolls smoothly.
    const isInView = () => {
      const { top = -1 } = document.querySelector('#the-sets + .table')?.getBoundingClientRect() ?? {}
      return top > 0 && top < innerHeight
    }
    await page.waitForFunction(isInView)
    t.ok(await page.evaluate(isInView), 'the table that a link names is in view')
    t.same(await seriousFindings(page), [])
    t.equal(await overflow(page), 0)

    await page.goto(system.url('/guide/buying#how-much-at-once'))
    const chapter = page.locator('details.chapter:has(> #how-much-at-once)')
    t.equal(await chapter.getAttribute('open'), '', 'a link to a chapter opens it')
    t.equal(await page.locator('details.chapter[open]').count(), 1)
    await picture(page, 'guide-folded-360-light', false)
    await page.emulateMedia({ media: 'print' })
    const heights = await page
      .locator('details.chapter > div')
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height))
    t.ok(heights.length > 3 && heights.every((height) => height > 20), `paper has all chapters: ${heights}`)
  },
)

t.test('every public page fits where it is zoomed to 200 %, and in 320 pixels', { skip: noBrowser }, async (t) => {
  const listed = [...(await read('/sitemap.xml')).matchAll(/<loc>([^<]+)<\/loc>/g)]
  const paths = listed.map(([, url = '']) => new URL(url).pathname)
  t.ok(paths.length > catalog.length + 30, `${paths.length} pages`)
  t.same(await findMisfits(await sharedBrowser(), system.service.address, paths), [])
})

t.test('the lines to copy work against this address', async (t) => {
  const page = await read('/')
  const site = (text: string) => text.replaceAll('https://example.com/', system.site.url('/harbour'))
  const root = join(import.meta.dirname, '../..')

  const { stdout } = await run('sh', ['-c', codeOf(page, 'With curl')])
  t.match(stdout, /^HTTP\/1.1 402 [\s\S]*payment-required: /i)

  // Within the repository, so that it finds the packages that the page names.
  const folder = await mkdtemp(join(root, '.tap/copied-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const program = codeOf(page, 'The program buy.mjs')
  const wide = program.split('\n').filter((line) => line.length > 54 && !line.includes(system.service.address))
  t.same(wide, [], 'no line wraps beside the other ways')
  await writeFile(join(folder, 'buy.mjs'), site(program))
  const [, command = ''] = /<code>WALLET_KEY=0x... (node [^<]+)</.exec(page) ?? []
  const env = { ...process.env, WALLET_KEY: generatePrivateKey() }
  const printed = await run('sh', ['-c', command.replace('node', `"${process.execPath}"`)], { cwd: folder, env })
  t.match(printed.stdout, /^(not_assessed|insufficient_evidence)\n$/)

  const client = `"${process.execPath}" "${join(root, 'client/cli.ts')}"`
  await run('sh', ['-c', `${client} wallet new wallet.key`], { cwd: folder })
  const buying = site(codeOf(page, 'Buy one')).replace('npx -y countersign', client)
  const bought = await run('sh', ['-c', `${buying} --yes --expect insufficient_evidence --json`], { cwd: folder })
  t.match(JSON.parse(bought.stdout), { verified: true, cost_usd: '0.03' })
  const server = codeOf(page, 'Claude Code').split(' -- ')[1]?.replace('npx -y countersign', client) ?? ''
  const helped = await run('sh', ['-c', `${server.replace('~/', '')} < /dev/null`], { cwd: folder })
  t.equal(helped.stdout, '', 'it starts, and ends with its host')

  const endpoint = codeOf(page, 'Over HTTP').split(' ').at(-1) ?? ''
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  })
  t.match(await answer.json(), { result: { tools: [{}] } })
})

t.test('the reference says of each member of a request what it means', async (t) => {
  const found = new Set<string>()
  for (const { name } of catalog) {
    const [told = ''] = /<div class="told">.*?<details>|<div class="told">.*$/s.exec(await read(`/docs/${name}`)) ?? []
    for (const [, member = '', about = ''] of told.matchAll(/<dt><code>([^<]*)<\/code>.*?<dd>(.*?)<\/dd>/gs)) {
      found.add(`${name} ${member}`)
      // Without where it stands, its form and its bounds.
      const meaning = about
        .replace(/In (a header|the path|the query, after <code>\?<\/code>)\./, '')
        .replace(/(At most |At least )?-?[\d.]+( to [\d.]+)?( characters| items)?\./g, '')
        .replace(/(Matches the pattern <code>.*?<\/code>|Default \S+|Format [\w-]+|RFC 3339, UTC|Not blank)\./g, '')
      t.match(meaning, /[A-Za-z_]+ [a-z_]+/, `${name}: ${member}`)
    }
  }
  t.ok(found.has('put_watchdog interval_s') && found.has('verify_source options.max_price_usd'))
  t.ok(found.size > 100, `${found.size} members`)
})

t.test('the front page says what is in force', async (t) => {
  const literal = await read('/')
  t.match(literal, /literal: passages are quoted, no verdict is given/)
  t.match(
    literal,
    /This copy of the service takes no money\.<\/strong> It runs in offline mode, to try out: the signature of a\s+payment is checked, and nothing is charged\./,
  )
  t.match(literal, /Not judged, quotes only/)
  await using twin = await system.openTwin(
    {},
    { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9', VERIFICATION_ENABLED: 'false' },
  )
  const semantic = await (await fetch(twin.address, { headers: { accept: BROWSER } })).text()
  t.match(semantic, /semantic: a language model gives the verdict/)
  t.match(semantic, /The page says otherwise/)
  t.match(semantic, /switched off here at present/)
})

t.test('in a browser', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  t.match(
    await inspect(t, browser, system.url('/'), 'front'),
    /Check the sources that your AI agent cites[\s\S]*A result looks like this[\s\S]*As an agent[\s\S]*What it costs[\s\S]*Proof/,
  )
  t.match(
    await inspect(t, browser, system.url('/pricing'), 'pricing'),
    /Free[\s\S]*1 active lease[\s\S]*on Base Sepolia \(test money\)|on Base Sepolia \(test money\)[\s\S]*1 active lease/,
  )
  t.match(await inspect(t, browser, system.url('/guide'), 'guide'), /Buying/)
  t.match(
    await inspect(t, browser, system.url('/docs'), 'docs', { isLong: true }),
    /Verify one claim against one public HTTPS page/,
  )
  t.match(
    await inspect(t, browser, system.url('/docs/errors'), 'docs-errors', { isLong: true }),
    /idempotency_conflict/,
  )
  await using operation = await visit(browser, system.url('/docs/verify_source'))
  t.same(await seriousFindings(operation.page), [])
  await picture(operation.page, 'docs-operation-1440-light')
  await operation.page.setViewportSize({ width: 360, height: 740 })
  await operation.page.emulateMedia({ colorScheme: 'dark' })
  t.equal(await overflow(operation.page), 0)
  t.same(await seriousFindings(operation.page), [])
  await picture(operation.page, 'docs-operation-360-dark')
  t.match(await inspect(t, browser, system.url('/guide/buying'), 'guide-buying'), /How much at once/)

  await t.test('the card of the front page, code is copied, and the keyboard reaches everything', async (t) => {
    await using opened = await visit(browser, system.url('/'), { permissions: ['clipboard-read', 'clipboard-write'] })
    const { page } = opened
    const example = await (await fetch(system.url('/example-result.json'))).json()
    t.same(await faultsOfCard(page, example, { isExample: true }), [])
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate(() => document.activeElement?.textContent), 'To the content')
    await page.getByRole('button', { name: 'Copy: Claude Code' }).click()
    await page.getByRole('button', { name: 'Copy: Claude Code' }).filter({ hasText: 'Copied' }).waitFor()
    t.equal(
      await page.evaluate(() => navigator.clipboard.readText()),
      `claude mcp add countersign -- npx -y countersign mcp \\\n  --service ${system.service.address} \\\n  --wallet ~/wallet.key --budget 1.00`,
    )
  })
})
