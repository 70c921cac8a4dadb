// Every error that a browser gets on the way through pages and forms is a page, whichever the route; programs get JSON, to the byte.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { load } from 'cheerio'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { noBrowser, sharedBrowser, visit } from '../browser.ts'
import { startSystem } from '../system.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const FORM = 'application/x-www-form-urlencoded'
const TOKEN = 'a-token-for-the-operator'
/** Operations and endpoints of protocols: what is sent there is a call. */
const CALLS = /^\/(api|v1|mcp)(\/|$)/

/** `GET /status` and so on, from the application itself. */
const routes = new Set<string>()
function note(message: unknown) {
  const { fastify } = message as { fastify: FastifyInstance }
  fastify.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) routes.add(`${one} ${url}`)
  })
}
subscribe('fastify.initialization', note)
const system = await startSystem({ env: { OPERATOR_TOKEN: TOKEN } })
unsubscribe('fastify.initialization', note)
t.teardown(() => system[Symbol.asyncDispose]())

/** Its parameters have values that are nothing's. */
const paths = (method: string) =>
  [...routes]
    .filter((route) => route.startsWith(`${method} /`) && !CALLS.test(route.slice(method.length + 1)))
    .map((route) => route.slice(method.length + 1).replaceAll(/:\w+|\*/g, 'x'))

interface Sent {
  method: string
  type?: string
  body?: string
}
const send = (path: string, accept: string, { method, type, body }: Sent) =>
  fetch(`${system.service.address}${path}`, {
    method,
    redirect: 'manual',
    headers: { accept, ...(type && { 'content-type': type }) },
    ...(body && { body }),
  })

/** A browser gets a page with a way out, and a program this body, with the same status. */
async function expectBoth(t: Test, path: string, sent: Sent, json: object) {
  const program = await send(path, '*/*', sent)
  t.equal(await program.text(), JSON.stringify(json), `${sent.method} ${path}: the bytes for programs`)
  t.match(program.headers.get('content-type'), /^application\/json/)
  const browser = await send(path, BROWSER, sent)
  const about = `${sent.method} ${path}`
  t.equal(browser.status, program.status, about)
  t.match(browser.headers.get('content-type'), /^text\/html/, about)
  const page = await browser.text()
  t.match(page, /<h1>[^<]+<\/h1>[\s\S]*<dt>What next<\/dt>[\s\S]*<p class="actions"><a class="button" href/, about)
  return page
}

/** Their readers write programs. */
const FOR_DEVELOPERS = /^\/(docs|guide)(\/|$)/
const UNSEEN = /\bheaders?\b|Authorization|Idempotency-Key|PAYMENT-|X-Service|Bearer|service_key|\bMCP tool/

t.test('no page for people names a header or an argument that they cannot see', async (t) => {
  const all = [...routes]
    .filter((route) => route.startsWith('GET /'))
    .map((route) => route.slice(4).replaceAll(/:\w+|\*/g, 'x'))
    .filter((path) => !FOR_DEVELOPERS.test(path))
  let pages = 0
  for (const path of all) {
    const answer = await send(path, BROWSER, { method: 'GET' })
    if (!answer.headers.get('content-type')?.startsWith('text/html')) {
      await answer.body?.cancel()
      continue
    }
    pages++
    const page = load(await answer.text())
    page('script, style, pre, code').remove()
    t.notMatch(page('body').text(), UNSEEN, path)
  }
  t.ok(pages > 40, `${pages} pages`)
})

const nothing = {
  error: { code: 'not_found', message: 'There is nothing at this address for this method.', retryable: false },
}
const tooLong = (limit: number) => `The request body is larger than ${limit} bytes.`

t.test('what is sent to a page that takes nothing, or to no page, is answered with a page', async (t) => {
  const posts = paths('POST')
  // Everything that is sent below /checkout/ is for the page of a token.
  const pages = paths('GET').filter((path) => !posts.includes(path) && !path.startsWith('/checkout/'))
  t.ok(pages.length > 40, `${pages.length} routes`)
  for (const path of pages) {
    const page = await expectBoth(t, path, { method: 'POST', type: FORM, body: 'a=b' }, nothing)
    if (routes.has(`GET ${path}`)) t.match(page, `<a class="button" href="${path}">Open the page</a>`, path)
  }
  for (const path of ['/nothing', '/%ff', '//other.test/x'])
    for (const method of ['GET', 'POST'])
      t.notMatch(await expectBoth(t, path, { method }, nothing), 'href="//', 'no address leads to another host')
  for (const method of ['PUT', 'DELETE'])
    t.same(await (await send('/status', BROWSER, { method })).json(), nothing, 'no browser navigates so')
})

/** Each address that takes a form: how much, where the form is, and the bodies that programs get. */
const FORMS: Readonly<Record<string, { limit: number; back: string; type?: string; isOfInterface?: true }>> = {
  '/try': { limit: 65_536, back: '', type: 'application/json', isOfInterface: true },
  '/checkout/x': { limit: 1024, back: '' },
  '/operator/sign-in': { limit: 4096, back: '/operator' },
  '/operator/sign-out': { limit: 4096, back: '/operator' },
  '/operator/act': { limit: 4096, back: '/operator' },
}

t.test('a form that is too long, or of another type, is answered with a page', async (t) => {
  t.same(paths('POST').sort(), Object.keys(FORMS).sort(), 'each address that takes something is a form')
  for (const [path, { limit, back, type = FORM, isOfInterface }] of Object.entries(FORMS)) {
    const failed = (code: string, message: string) => {
      const error = { code, message, retryable: false }
      return isOfInterface ? { schema_version: '1.0.0', status: 'failed', error } : { error }
    }
    const way =
      back === ''
        ? '<a class="button" href>Back to the form</a>'
        : `<a class="button" href="${back}">Back to the form</a>`
    const long = { method: 'POST', type: FORM, body: `claim=${'x'.repeat(limit)}` }
    const code = isOfInterface ? 'invalid_request' : 'body_too_large'
    const page = await expectBoth(t, path, long, failed(code, tooLong(limit)))
    t.match(page, /<h1>What you sent is too long<\/h1>[\s\S]*nothing was changed/, path)
    t.match(page, way, path)
    t.notMatch(page, 'xxxx', 'and repeats nothing of it')
    for (const other of ['multipart/form-data; boundary=b', 'text/plain']) {
      const sent = { method: 'POST', type: other, body: '--b\r\n' }
      const unread = await expectBoth(t, path, sent, failed('unsupported_media_type', `Content-Type must be ${type}.`))
      t.match(unread, '<h1>The form cannot be read</h1>', path)
      t.match(unread, way, path)
    }
  }
})

t.test('calls are answered in JSON, whatever they accept', async (t) => {
  for (const route of routes) {
    const path = route.slice('POST '.length).replaceAll(/:\w+/g, 'x')
    if (!route.startsWith('POST ') || !CALLS.test(path)) continue
    const answer = await send(path, BROWSER, { method: 'POST', type: 'text/plain', body: 'x' })
    t.match(answer.headers.get('content-type'), /^application\/json/, route)
  }
  const json = { method: 'POST', type: 'application/json', body: '{' }
  t.match((await send('/try', BROWSER, json)).headers.get('content-type'), /^application\/json/, 'no form is JSON')
})

t.test('an endpoint of MCP says in a browser what it is', async (t) => {
  for (const path of ['/mcp', '/mcp/check']) {
    const browser = await send(path, BROWSER, { method: 'GET' })
    t.equal(browser.status, 405)
    t.match(await browser.text(), /<h1>This address is for programs<\/h1>[\s\S]*<a class="button" href="\/guide\/mcp">/)
    for (const accept of ['*/*', 'text/event-stream']) {
      const program = await send(path, accept, { method: 'GET' })
      t.equal(program.status, 405)
      t.match(await program.json(), { jsonrpc: '2.0', error: { message: 'This endpoint answers POST only.' } })
    }
  }
})

t.test('in a browser, the form has what was written when its sender goes back', { skip: noBrowser }, async (t) => {
  await using opened = await visit(await sharedBrowser(), system.url('/try'), { javaScriptEnabled: false })
  const { page } = opened
  await page.locator('#try-claim').fill('x'.repeat(70_000))
  await page.getByRole('button', { name: 'Check it' }).click()
  await page.getByRole('heading', { name: 'What you sent is too long' }).waitFor()
  await page.goBack()
  t.equal((await page.locator('#try-claim').inputValue()).length, 70_000)
})
