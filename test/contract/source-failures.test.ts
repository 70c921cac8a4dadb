// Sources that cannot be observed end as 422 and are never charged.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { FALSE_NAME, type Page } from '../site.ts'
import { openScriptedFacilitator, payingFetch, startSystem } from '../system.ts'

const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())

const to = (location: string, status = 302): Page => ({ status, headers: { location }, body: '' })
const text = '<p>The pier is 80 metres long.</p>'
const pages: Record<string, Page> = {
  '/not-found': { status: 404, body: text },
  '/gone': { status: 410, body: text },
  '/unauthorized': { status: 401, body: text, headers: { 'www-authenticate': 'Basic' } },
  '/broken': { status: 500, body: text },
  '/partial': { status: 206, body: text },
  '/pdf': { type: 'application/pdf', body: '%PDF-1.7' },
  '/json': { type: 'application/json', body: '{}' },
  '/xhtml': { type: 'application/xhtml+xml', body: text },
  '/image': { type: 'image/png', body: 'PNG' },
  '/html-like': { type: 'text/html5', body: text },
  '/empty': { body: '' },
  '/blank': { body: '<!doctype html><title> </title><body> \n<script>document.write("x")</script>' },
  '/comment': { body: '<!-- The pier is 80 metres long. -->' },
  '/false-gzip': { body: text, headers: { 'content-encoding': 'gzip' } },
  '/unknown-coding': { body: text, headers: { 'content-encoding': 'compress' } },
  '/large': { type: 'text/plain', body: 'a'.repeat(8_388_609) },
  '/to-loopback': to('https://127.0.0.1/'),
  '/to-loopback-6': to('https://[::1]/'),
  '/to-private': to('https://10.0.0.1/'),
  '/to-metadata': to('https://169.254.169.254/latest/meta-data/'),
  '/to-localhost': to('https://localhost/'),
  '/to-http': to('http://site.test/fine'),
  '/to-port': to('https://site.test:8443/fine'),
  '/to-file': to('file:///etc/passwd'),
  '/to-nowhere': { status: 302, body: '' },
  '/to-nonsense': to('https://'),
  '/to-itself': to('/to-itself'),
  '/to-private-later': to('/to-private'),
  '/hop-6': to('/hop-5'),
  '/hop-5': to('/hop-4', 301),
  '/hop-4': to('/hop-3', 303),
  '/hop-3': to('/hop-2', 307),
  '/hop-2': to('/hop-1', 308),
  '/hop-1': to('/fine'),
  '/fine': { body: text },
}
const fine = ['/fine', ...[1, 2, 3, 4, 5].map((hop) => `/hop-${hop}`)]

function buy(source_url: string) {
  const body = { source_url, claim: 'The pier is 80 metres long.' }
  return system.ask({ key: randomUUID(), body, fetch: payingFetch(), headers: { prefer: 'wait=20' } })
}

t.test('422 with a code of the source, and nothing is settled', async (t) => {
  for (const [path, page] of Object.entries(pages)) system.site.pages.set(path, page)
  const failing = [
    ...Object.keys(pages)
      .filter((path) => !fine.includes(path))
      .map((path) => system.site.url(path)),
    `https://${FALSE_NAME}/fine`,
  ]
  for (const url of failing) {
    const response = await buy(url)
    const { error, request_id } = await expectNonCompleted(t, response, 422, url)
    t.match(error.code, /^source_[a-z_]+$/, url)
    t.ok(request_id)
  }
  t.equal(till.settled.length, 0, 'nothing was submitted for settlement')
  t.same(await system.sql('select serial from chain_head'), [{ serial: '0' }], 'no receipt was appended')
  t.same(await system.sql('select count(*)::int n from receipts'), [{ n: 0 }])
  t.same(await system.sql('select count(*)::int n from payment_claims'), [{ n: 0 }], 'every authorization is free')
  t.same(await system.sql('select state, count(*)::int n from verification_requests group by state'), [
    { state: 'failed', n: failing.length },
  ])
})

t.test('what tells the caller most', async (t) => {
  const codes: Record<string, string> = {
    '/not-found': 'source_http_status',
    '/pdf': 'source_unsupported_type',
    '/blank': 'source_empty',
    '/large': 'source_too_large',
    '/to-private': 'source_blocked',
    '/to-private-later': 'source_blocked',
    '/hop-6': 'source_too_many_redirects',
  }
  for (const [path, code] of Object.entries(codes)) {
    const { error } = await expectNonCompleted(t, await buy(system.site.url(path)), 422, path)
    t.equal(error.code, code)
  }
  const { error } = await expectNonCompleted(t, await buy(`https://${FALSE_NAME}/fine`), 422)
  t.equal(error.code, 'source_tls_invalid')
})

t.test('the same road with a source that is fine: settled, five redirects and all', async (t) => {
  const { result } = await expectCompleted(t, await buy(system.site.url('/hop-5')))
  t.same(
    (result.source.redirects as { status: number }[]).map(({ status }) => status),
    [301, 303, 307, 308, 302],
  )
  t.equal(result.source.final_url, system.site.url('/fine'))
  t.equal(till.settled.length, 1)
  t.same(await system.sql('select serial from chain_head'), [{ serial: '1' }])
})
