// What all pages have: the frame, its assets, errors as pages for browsers alone, and plots.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { h } from 'preact'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { buildAssets } from '../../client/page/build.ts'
import { html } from '../../client/page/html.ts'
import { Badge, Code, Facts, Field, Figures, Notice, Table } from '../../client/page/parts.ts'
import { Strip } from '../../client/page/strip.ts'
import { publicError, UnavailableError } from '../../server/errors.ts'
import { errorPage } from '../../server/pages/error-page.ts'
import { inputFaults } from '../../server/pages/input-faults.ts'
import { openSite, renderPage } from '../../server/pages/layout.ts'
import { Plot } from '../../server/pages/plot.ts'
import { type Browser, noBrowser, overflow, picture, seriousFindings, sharedBrowser, shown, visit } from '../browser.ts'
import { LONG } from '../long.ts'
import { startSystem } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const get = (path: string, accept: string) => fetch(system.url(path), { headers: { accept } })

t.test('an error is a page for a browser that navigates, and JSON for everybody else', async (t) => {
  for (const path of ['/nothing', '/v1/usage', '/v1/chain?from=0', '/%ff']) {
    const page = await get(path, BROWSER)
    t.match(page.headers.get('content-type'), /^text\/html/, path)
    t.match(page.headers.get('content-security-policy'), /script-src 'self'; style-src 'self'/)
    t.match(page.headers.get('vary'), /accept/)
    const text = await page.text()
    for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.5', 'text/*', '']) {
      const answer = await get(path, accept)
      t.equal(answer.status, page.status, `${path} for ${accept}`)
      const { error } = (await answer.json()) as { error: { code: string } }
      t.ok(text.includes(error.code), `the page of ${path} names ${error.code}`)
    }
  }
  const refused = await fetch(system.url('/v1/register'), { method: 'POST', headers: { accept: BROWSER } })
  t.match(refused.headers.get('content-type'), /json/, 'a call is no navigation')
  const recovery = await get('/api/agent/v1/requests/1', BROWSER)
  t.equal(recovery.status, 404)
  t.match(await recovery.json(), { status: 'failed' }, 'the interface fixes the bodies of these routes')
})

t.test(
  'an error that passes offers the same address again, and one in the address names what is wrong there',
  async (t) => {
    await using away = await system.openTwin()
    const { db } = away.api
    const failure = new UnavailableError('provider_unavailable', 'The database does not answer.')
    away.api.db = new Proxy(db, { get: () => () => Promise.reject(failure) })
    const broken = await fetch(new URL('/chain?a=b', away.address), { headers: { accept: BROWSER } })
    away.api.db = db
    t.equal(broken.status, 503)
    const passing = await broken.text()
    t.match(passing, /<a class="button" href>Try again<\/a><a class="button quiet" href="\/status">/)
    t.match(passing, /<p>The database does not answer\.<\/p>/, 'without advice for calls that change something')
    t.match(passing, /What next<\/dt><dd><bdi>Try again in a few seconds/)

    const wrong = await (await get('/v1/chain?from=0&to=x', BROWSER)).text()
    t.match(wrong, 'In the address, the value of <code>from</code> is wrong. It must be 1 or more.')
    t.match(wrong, 'In the address, the value of <code>to</code> is wrong. It must be a whole number.')
    t.notMatch(wrong, SCHEMA_WORDS)
    t.match(await (await get('/v1/chain?from=0&to=x', '*/*')).json(), {
      error: {
        message: 'from: Too small: expected number to be >=1; to: Invalid input: expected number, received string',
      },
    })
    t.match(wrong, /What next<\/dt><dd><bdi>Correct the address and open it again/)
    t.match(wrong, /<a class="button" href="\/v1\/chain">Open it without/)
    t.notMatch(wrong, 'Try again')
    for (const path of ['/nothing', '/v1/usage']) t.notMatch(await (await get(path, BROWSER)).text(), 'Try again', path)
    const site = await openSite({ baseUrl: system.service.address })
    const error = { status: 400, code: 'invalid_request', message: 'The request cannot be read.', retryable: false }
    t.notMatch(errorPage(site, '//other.test/?x', error), 'href="//', 'no address leads to another host')
    const limited = { ...error, status: 429, code: 'daily_limit', retryable: true, retryAfter: '18000' }
    t.match(errorPage(site, '/try', limited), 'Try again in 5 hours.')
  },
)

t.test('a full storage is not said to pass in seconds: its operator has to act', async (t) => {
  await using full = await system.openTwin()
  const { db } = full.api
  const failure = Object.assign(new Error('could not extend file'), { code: '53100' })
  full.api.db = new Proxy(db, { get: () => () => Promise.reject(failure) })
  const answer = await fetch(new URL('/chain', full.address), { headers: { accept: BROWSER } })
  full.api.db = db
  t.equal(answer.status, 503)
  t.match(answer.headers.get('retry-after'), /^[1-4]$/)
  const page = await answer.text()
  t.match(page, '<h1>The storage is full</h1>')
  t.match(page, '<p>The storage of this service is full. Nothing was charged.</p>')
  t.match(page, /What next<\/dt><dd><bdi>The operator of the service has to free space/)
  t.match(page, /<p class="actions"><a class="button" href="\/status">What works now<\/a>/)
  t.notMatch(page, 'seconds')

  const site = await openSite({ baseUrl: system.service.address })
  const error = { status: 503, ...publicError(failure).error, retryAfter: '3' }
  const sent = errorPage(site, '/checkout/x', error, { form: '', isPage: true, isTooLong: false })
  t.match(sent, '<p>The storage of this service is full. It is not known whether the form had an effect.</p>')
  t.match(sent, /What next<\/dt><dd><bdi>The operator of the service has to free space/)
  t.match(sent, 'href>Back to the form</a>')
  t.notMatch(sent, 'seconds')
})

/** Words in which the library of schemas speaks to programmers. */
const SCHEMA_WORDS = /\b(Invalid|Too (big|small)|Unrecognized|expected|received|undefined)\b/

t.test('what a schema refuses is said on a page in plain words, of whichever kind it is', async (t) => {
  const words = (schema: z.ZodType, value: unknown) => {
    const { error: cause } = schema.safeParse(value)
    return inputFaults(new Error('refused', { cause }))?.map((fault) => fault.words)
  }
  const cases: [z.ZodType, unknown, string][] = [
    [z.string(), undefined, 'It is missing.'],
    [z.string(), 1, 'It must be text.'],
    [z.boolean(), 1, 'It must be true or false.'],
    [z.int(), 1.5, 'It must be a whole number.'],
    [z.array(z.string()), 1, 'It must be a list.'],
    [z.bigint(), 1, 'It must be of another kind.'],
    [z.enum(['a', 'b']), 'c', 'It must be one of a, b.'],
    [z.literal('a'), 'c', 'It must be a.'],
    [z.string().min(1), '', 'It must not be empty.'],
    [z.string().min(2), '', 'It must have at least 2 characters.'],
    [z.array(z.int()).max(1), [1, 2], 'It must have at most 1 entries.'],
    [z.int().max(9), 10, 'It must be 9 or less.'],
    [z.int().multipleOf(5), 7, 'It must be a multiple of 5.'],
    [z.uuid(), 'x', 'It is not an id.'],
    [z.string().regex(/^a$/), 'x', 'It is not in the form that is needed.'],
    [z.union([z.string(), z.int()]), true, 'It is in none of the forms that are taken.'],
    [z.strictObject({}), { b: 1 }, 'Nothing by this name is taken: b.'],
    [z.record(z.uuid(), z.int()), { b: 1 }, 'It cannot be used.'],
    [z.string().refine(() => false, 'must be in the future'), '', 'It must be in the future.'],
    [z.string().refine(() => false), '', 'It cannot be used.'],
  ]
  for (const [schema, value, expected] of cases) {
    const said = words(schema, value)
    t.same(said, [expected])
    t.notMatch(said?.join(), SCHEMA_WORDS)
  }
  t.equal(inputFaults(new Error('of another kind')), undefined)
  const site = await openSite({ baseUrl: system.service.address })
  const error = {
    status: 400,
    code: 'invalid_request',
    message: 'after: is not a value of this page.',
    retryable: false,
  }
  t.match(errorPage(site, '/x?after=1', error), '<code>after</code> is wrong. It is not a value of this page.</p>')
})

t.test('no notice has a tone that a verdict has', async (t) => {
  const root = join(import.meta.dirname, '../..')
  const tones: string[] = []
  for (const file of globSync('{client,server}/**/*.ts', {
    cwd: root,
    exclude: (name) => name.includes('node_modules'),
  })) {
    const source = readFileSync(join(root, file), 'utf8')
    for (const [, tone = ''] of source.matchAll(/<\$\{Notice\} tone=("\w+"|\$\{[^}]*\})/g)) {
      t.notMatch(tone, /\b(open|supports|contradicts)\b/, file)
      tones.push(tone)
    }
  }
  t.ok(tones.length > 5, `${tones.length} tones`)
  // A mode in which no money moves is no doubt either.
  const style = readFileSync(join(root, 'client/page/parts.css'), 'utf8')
  t.notMatch(/^\.(mode|notice) \{[\s\S]*?\}/gm.exec(style)?.[0], '--open')
})

t.test('the policy of each kind of page, whole', async (t) => {
  const whole = (form: string) =>
    `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; ` +
    `form-action ${form}; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'`
  const forms = ['/', '/try', '/pricing', '/receipts', '/chain']
  for (const path of [...forms, '/guide', '/docs', '/docs/register', '/account', '/status', '/nothing']) {
    const policy = (await get(path, BROWSER)).headers.get('content-security-policy')
    t.equal(policy, whole(forms.includes(path) ? "'self'" : "'none'"), path)
  }
  const recomputes = (await get('/verify', BROWSER)).headers.get('content-security-policy')
  const wider = whole("'none'")
    .replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'")
    .replace("trusted-types 'none'", 'trusted-types recompute')
  t.equal(recomputes, wider, '/verify')
})

t.test('the text of an address is shown, not run', async (t) => {
  const page = await (await get('/<script>alert(1)</script>', BROWSER)).text()
  t.notMatch(page, '<script>alert')
  t.match(page, '%3Cscript%3E')
})

t.test('the list for search engines names the public pages, each of which is there', async (t) => {
  const addressesOf = async (address: string) => {
    const answer = await fetch(new URL('/sitemap.xml', address))
    t.match(answer.headers.get('content-type'), /^application\/xml/)
    const found = [...(await answer.text()).matchAll(/<url><loc>([^<]+)<\/loc><\/url>/g)]
    return found.map(([, url = '']) => new URL(url).pathname)
  }
  const paths = await addressesOf(system.url('/'))
  t.equal(new Set(paths).size, paths.length)
  for (const path of ['/', '/try', '/guide/buying', '/docs/verify_source', '/docs/errors', '/pricing'])
    t.ok(paths.includes(path), path)
  for (const path of paths) {
    const answer = await get(path, BROWSER)
    const page = await answer.text()
    t.equal(answer.status, 200, path)
    t.notMatch(page, '<meta name="robots" content="noindex"', path)
  }
  await using twin = await system.openTwin({}, { TRY_ENABLED: 'false' })
  t.same(
    await addressesOf(twin.address),
    paths.filter((path) => path !== '/try'),
  )
})

t.test('assets are kept for ever, by names that change with them', async (t) => {
  const page = await (await get('/verify', BROWSER)).text()
  const paths = [...page.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
  t.equal(paths.length, 4, paths.join())
  for (const path of paths) {
    const asset = await fetch(system.url(path))
    t.equal(asset.status, 200, path)
    t.match(asset.headers.get('cache-control'), /immutable/)
    t.match(path, /-[\w-]{16}\.(css|js|svg)$/)
  }
  t.equal((await fetch(system.url('/assets/style-of-before.css'))).status, 404)
  t.match((await fetch(system.url('/favicon.ico'))).headers.get('content-type'), 'image/svg+xml')
  t.match(await (await fetch(system.url('/robots.txt'))).text(), /^User-agent: \*\n[\s\S]*Disallow: \/api\//)
})

const isShort = !LONG && 'npm run test:long does it'
t.test('without its native form the bundler makes the same', { skip: isShort }, async (t) => {
  t.same(await buildAssets(import('esbuild-wasm')), await buildAssets(import('esbuild')))
})

t.test('a plot says its numbers, and what nothing is known of has none', async (t) => {
  const { renderToString } = await import('preact-render-to-string')
  const day = 86_400_000
  const points = [1, 2, 3, 4].map((n) => ({ at: n * day, value: n === 3 ? null : n * 1000 }))
  const props = { id: 'p', title: 'Calls', description: 'Calls by day', series: [{ name: 'calls', points }] }
  const drawn = renderToString(h(Plot as never, { ...props, shape: 'line' }))
  t.equal(drawn.match(/d="(M[^"]*)"/)?.[1]?.match(/M/g)?.length, 2, 'a gap where nothing is known')
  t.match(drawn, /4,000<\/td>/)
  t.match(drawn, /–<\/td>/)
  const bars = renderToString(h(Plot as never, { ...props, shape: 'bars' }))
  t.equal(bars.match(/<rect /g)?.length, 3)
  const empty = renderToString(h(Plot as never, { ...props, shape: 'bars', series: [{ name: 'calls', points: [] }] }))
  t.match(empty, /Nothing has been measured yet/)
})

t.test('in a browser', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  await t.test('the parts, light and dark, wide and narrow', (t) => testParts(t, browser))

  await t.test('an error', async (t) => {
    await using opened = await visit(browser, system.url('/v1/usage'))
    const { page, complaints } = opened
    t.match(await shown(page, 'main'), /An API key is needed[\s\S]*unauthenticated/)
    t.same(await seriousFindings(page), [])
    t.same(
      complaints.filter((line) => !/401/.test(line)),
      [],
    )
    await picture(page, 'error-1440-light')
  })
})

t.test('a window that was visited is as a new one for the next visit', { skip: noBrowser }, async (t) => {
  const [first, next] = [await leaveTraces(), await leaveTraces()]
  t.equal(next.page, first.page)
  t.same([first.found, next.found], ['0 0 0 0 0', '0 0 0 0 0'])
  t.ok(first.bytes > 10_000 && next.bytes > 0.95 * first.bytes, `${next.bytes} bytes, and ${first.bytes} before`)
})

/** How many traces of earlier visits there are in a window, in which some of each kind are left. */
async function leaveTraces() {
  await using opened = await visit(await sharedBrowser(), system.url('/pricing'))
  const { page, transferred } = opened
  const found = await page.evaluate(async () => {
    const stores = [document.cookie.length, localStorage.length, sessionStorage.length]
    const counts = [...stores, (await caches.keys()).length, (await indexedDB.databases()).length]
    await cookieStore.set('trace', '1')
    for (const store of [localStorage, sessionStorage]) store.setItem('trace', '1')
    await caches.open('trace')
    await new Promise((resolve) => {
      indexedDB.open('trace').onsuccess = resolve
    })
    return counts.join(' ')
  })
  return { page, found, bytes: transferred() }
}

/** A page with each part, under the policy of all pages. */
async function testParts(t: Test, browser: Browser) {
  const site = await openSite({ baseUrl: system.service.address })
  const text = renderPage(site, { title: 'Parts', path: '/parts', description: 'All parts', body: parts() })
  const policy = (await get('/nothing', BROWSER)).headers.get('content-security-policy') ?? ''
  for (const [width, colorScheme] of [
    [1440, 'light'],
    [360, 'dark'],
  ] as const) {
    await using opened = await visit(browser, system.url('/robots.txt'), {
      viewport: { width, height: 900 },
      colorScheme,
    })
    const { page, complaints, requests } = opened
    await page.route('**/parts', (route) =>
      route.fulfill({ contentType: 'text/html', headers: { 'content-security-policy': policy }, body: text }),
    )
    await page.goto(system.url('/parts'))
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    t.same(complaints, [], 'the policy holds')
    t.ok(requests.every((line) => line.includes(new URL(system.service.address).host)))
    await page.locator('.numbers > summary').first().click()
    await picture(page, `parts-${width}-${colorScheme}`)
    t.equal(await page.getByRole('button', { name: /^Copy/ }).count(), 1)
  }
}

function parts() {
  const day = 86_400_000
  const start = Date.UTC(2026, 7, 1)
  const days = Array.from({ length: 90 }, (_, n) => start + n * day)
  const wave = (n: number, size: number) => Math.round(size * (2 + Math.sin(n / 7) + Math.cos(n / 3)))
  const series = (names: string[]) =>
    names.map((name, k) => ({
      name,
      points: days.map((at, n) => ({ at, value: n > 30 && n < 36 ? null : wave(n + 9 * k, 400 / (k + 1)) })),
    }))
  return html`<h1>Parts</h1><p class="lead">Every part once, so that a change to one is seen.</p>
    <p><${Badge}>not_assessed<//> <${Badge} tone="good">supports<//> <${Badge} tone="open">mixed<//> <${Badge} tone="bad">contradicts<//></p>
    <${Notice} title="Offline mode.">No money moves here.<//>
    <${Notice} tone="bad" title="The chain is broken.">Serial 7 is missing.<//>
    <${Figures} figures=${[['completed', '12,345'], ['p95 in seconds', '1.8'], ['unresolved', '0']]} />
    <${Facts} facts=${[['Page', 'https://site.test/harbour'], ['Digest', html`<code>${'0a'.repeat(32)}</code>`]]} />
    <${Table} caption="Requests" columns=${[{ name: 'Request' }, { name: 'State' }, { name: 'Bytes', number: true }]}
      rows=${[['one', html`<${Badge} tone="good">completed<//>`, '1,234'], ['two', 'failed', '12']]} />
    <${Table} caption="Nothing" columns=${[{ name: 'None' }]} rows=${[]} />
    <${Code} label="With curl" text=${`curl -X POST ${system.url('/v1/register')} -H 'content-type: application/json' -d '{"handle": "me"}'`} />
    <form><${Field} id="key" label="API key" type="password" hint="It begins with ctk_." problem="This is not a key." />
    <p class="actions"><button>Show</button><button class="quiet">Later</button><button class="danger">Revoke</button></p></form>
    <${Plot} id="lines" title="Seconds" description="Seconds by day" shape="line" series=${series(['p50', 'p95'])} />
    <${Plot} id="area" title="Chain" description="Receipts by day" shape="area" series=${series(['receipts'])} />
    <${Plot} id="bars" title="Outcomes" description="Outcomes by day" shape="bars" series=${series(['completed', 'failed', 'refused'])} />
    <${Strip} id="days" title="Last 90 days" description="90 days" from="1 August" to="29 October" states=${days.map(
      (at, n) => ({
        name: new Date(at).toISOString().slice(0, 10),
        tone: n < 20 ? 'plain' : n % 17 === 0 ? 'bad' : n % 11 === 0 ? 'open' : 'good',
        state: n < 20 ? 'no data' : 'up',
      }),
    )} />`
}
