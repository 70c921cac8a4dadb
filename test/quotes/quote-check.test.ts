// Quote checks through the whole service: what is answered, and that it costs nothing.
import { createHash } from 'node:crypto'
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { readConfig } from '../../server/config.ts'
import { buildDocument } from '../../server/http/openapi.ts'
import { completedResult } from '../../server/interface/result.ts'
import { pendingQuoteCheck, quoteCheckResult } from '../../server/quotes/quote-check.ts'
import { openSlowPage } from '../api-harness.ts'
import { PAGE, payingFetch, startSystem } from '../system.ts'
import { openQuoteHarness, register } from './harness.ts'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const WAIT = { prefer: 'wait=25' }

t.test('each kind of match, with offsets, digests and links, free of charge', async (t) => {
  await using system = await startSystem({
    pages: { '/old': { status: 301, headers: { location: '/harbour' }, body: '' } },
  })
  const reader = await register(system)
  const quotes = [
    'The harbour was opened in 1874',
    'it has THREE  piers and a lighthouse 21 metres high.',
    'The ferry to Orsay sails on Mondays and Tuesdays.',
    'The moon is made of cheese.',
    '😀\u0000',
  ]
  const answer = await reader.check('/old', quotes, WAIT)
  t.equal(answer.status, 200, answer.text)
  t.equal(answer.headers.get('preference-applied'), 'wait=25')
  t.same(quoteCheckResult.parse(answer.body), answer.body)

  const bought = await system.ask({ key: 'k'.repeat(20), fetch: payingFetch(), headers: WAIT })
  const { source } = completedResult.parse(await bought.json())
  t.match(answer.body.source, {
    requested_url: system.site.url('/old'),
    final_url: system.site.url('/harbour'),
    content_sha256: sha256(PAGE),
    text_sha256: source.text_sha256,
    checked_at: /Z$/,
  })
  const text = [...source.normalized_text]
  const cut = ({ start, end }: { start: number; end: number }) => text.slice(start, end).join('')
  const [exact, typographic, near, absent, strange] = answer.body.quotes
  t.equal(exact.match, 'exact')
  t.equal(cut(exact), quotes[0])
  t.equal(exact.quote_sha256, sha256(quotes[0]!))
  t.equal(exact.fragment_url, `${system.site.url('/harbour')}#:~:text=The%20harbour%20was%20opened%20in%201874`)
  t.equal(typographic.match, 'typographic')
  t.equal(cut(typographic), 'It has three piers and a lighthouse 21 metres high.')
  t.equal(typographic.quote_sha256, sha256(quotes[1]!))
  t.match(near, {
    match: 'near',
    start: null,
    end: null,
    nearest: { text: /Mondays and Thursdays\.$/, similarity: Number },
  })
  t.equal(cut(near.nearest), near.nearest.text)
  t.match(near.fragment_url, /#:~:text=.*Thursdays/)
  t.same(absent, {
    quote: quotes[3],
    match: 'absent',
    start: null,
    end: null,
    quote_sha256: sha256(quotes[3]!),
    fragment_url: null,
    nearest: null,
  })
  t.match(strange, { quote: quotes[4], match: 'absent' })
  t.same(
    await system.sql('select count(*)::int n from receipts'),
    [{ n: 1 }],
    'the only receipt is that of the purchase',
  )
  t.same(await reader.used(), { pages: 1, inFlight: 0 })
})

t.test('202 says where and when to ask again; the same body gets the same answer', async (t) => {
  await using harness = await openQuoteHarness()
  const reader = await harness.register()
  const asked = await reader.check('/harbour', ['three piers'])
  t.equal(asked.status, 202, asked.text)
  t.same(pendingQuoteCheck.parse(asked.body), asked.body)
  t.match(asked.body.message, 'No worker is running')
  t.match(asked.headers.get('retry-after'), /^[1-9]\d*$/)
  const location = new URL(asked.headers.get('location')!)
  t.equal(location.href, harness.front.url(`/v1/quote-check/${asked.body.check_id}`))
  t.equal((await reader.call('GET', location.pathname)).status, 202)
  t.equal((await reader.check('/harbour', ['three piers'])).body.check_id, asked.body.check_id)
  t.same(await reader.used(), { pages: 1, inFlight: 1 })
  await harness.queue.drain()
  const got = await reader.call('GET', location.pathname)
  t.equal(got.status, 200)
  const again = await reader.call('POST', '/v1/quote-check', {
    quotes: ['three piers'],
    source_url: harness.front.site.url('/harbour'),
  })
  t.same([again.status, again.text], [200, got.text], 'the order of members does not matter')
  t.same(await reader.used(), { pages: 1, inFlight: 0 })
  const other = await harness.register()
  t.equal((await other.call('GET', location.pathname)).status, 404, "another account's check")
  t.equal((await other.check('/harbour', ['three piers'])).status, 202, 'has a check of its own')
  await harness.queue.drain()
  t.same(harness.front.site.requests, ['/harbour'], 'the page came from the cache')
})

t.test('a call waits for the end of the work', async (t) => {
  await using system = await startSystem()
  const reader = await register(system)
  const page = openSlowPage(PAGE)
  system.site.pages.set('/slow', page.page)
  const waiting = reader.check('/slow', ['three piers'], WAIT)
  await page.asked
  const pending = await reader.check('/slow', ['three piers'])
  t.equal(pending.status, 202)
  const twin = reader.call('GET', `/v1/quote-check/${pending.body.check_id}`, undefined, WAIT)
  page.serve()
  t.match((await waiting).body, { quotes: [{ match: 'exact' }] })
  t.equal((await twin).text, (await waiting).text)
})

t.test('bodies outside the limits are refused, and store nothing', async (t) => {
  await using harness = await openQuoteHarness()
  const reader = await harness.register()
  const source_url = harness.front.site.url('/harbour')
  const refused = async (body: object, status: number, code: string) =>
    t.match(
      await reader.call('POST', '/v1/quote-check', body),
      { status, body: { error: { code } } },
      JSON.stringify(body).slice(0, 80),
    )
  for (const quotes of [[], Array(21).fill('a'), [''], ['x'.repeat(1001)], ['😀'.repeat(1001)], [1], 'a', undefined])
    await refused({ source_url, quotes }, 400, 'invalid_request')
  for (const url of [
    'http://site.test/',
    'https://site.test/ü',
    'https://host with space/',
    '',
    `https://site.test/${'a'.repeat(2048)}`,
  ])
    await refused({ source_url: url, quotes: ['a'] }, 400, 'invalid_request')
  for (const url of [
    'https://127.0.0.1/',
    'https://10.0.0.1/',
    'https://site.test:444/',
    'https://u@site.test/',
    'https://localhost/',
  ])
    await refused({ source_url: url, quotes: ['a'] }, 422, 'source_blocked')
  await refused({ source_url, quotes: ['a'], claim: 'x' }, 400, 'invalid_request')
  t.equal((await reader.call('POST', '/v1/quote-check', { source_url, quotes: ['\ud800'] })).status, 400)
  t.same(await reader.used(), { pages: 0, inFlight: 0 })
  t.equal((await reader.check('/harbour', ['😀'.repeat(1000), ...Array(19).fill('漢'.repeat(1000))])).status, 202)
  await harness.queue.drain()
  const { body } = await reader.check('/harbour', ['😀'.repeat(1000), ...Array(19).fill('漢'.repeat(1000))])
  t.equal(body.quotes.length, 20)
})

t.test('the document describes both answers', async (t) => {
  const paths = buildDocument({ config: readConfig({}) }, catalog).paths as Record<string, Record<string, never>>
  for (const operation of [paths['/v1/quote-check']?.post, paths['/v1/quote-check/{check_id}']?.get]) {
    const { responses, parameters } = operation as unknown as {
      responses: Record<string, { headers?: object; content: Record<string, { schema: { properties: object } }> }>
      parameters: { name: string }[]
    }
    t.same(Object.keys(responses[202]?.headers ?? {}), ['Retry-After', 'Location', 'Preference-Applied'])
    t.same(Object.keys(responses[202]?.content['application/json']?.schema.properties ?? {}), [
      'check_id',
      'status',
      'message',
    ])
    t.same(Object.keys(responses[200]?.content['application/json']?.schema.properties ?? {}), ['source', 'quotes'])
    t.ok(parameters.some(({ name }) => name === 'Prefer'))
  }
})
