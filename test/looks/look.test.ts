// Free looks: the answer of a purchase without the purchase.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { completedResult } from '../../server/interface/result.ts'
import { SAMPLES, samplePath } from '../../server/looks/samples.ts'
import { harbourClaim, PAGE, payingFetch, startSystem } from '../system.ts'
import { until } from '../until.ts'
import { linesOf, look, lookToEnd } from './looking.ts'

const MEMBERS = [
  'claim_support',
  'assessment_scope',
  'explanation',
  'evidence',
  'risk_flags',
  'checked_at',
  'source',
] as const

t.test('a look answers what a purchase would, and leaves no receipt', async (t) => {
  await using system = await startSystem()
  const body = harbourClaim(system.site)
  const before = await system.sql('select serial from chain_head')
  const looked = await look(system, body)
  t.equal(looked.status, 200)
  t.equal(looked.headers.get('cache-control'), 'no-store')
  t.same(Object.keys(looked.body), MEMBERS)
  t.same(await system.sql('select serial from chain_head'), before, 'the head of the chain')
  t.same(await system.sql('select count(*)::int n from verification_requests'), [{ n: 0 }])

  const bought = await system.ask({ key: randomUUID(), headers: { prefer: 'wait=25' }, fetch: payingFetch() })
  const result = completedResult.parse(await bought.json())
  for (const name of MEMBERS) t.same(looked.body[name], result[name], name)
  t.same(result.cache.hit, true, 'the purchase meets the observation of the look')
  t.same(system.site.requests, ['/harbour'], 'the page was read once')
  t.equal(result.receipt.attestation.serial, 1)
  const [stored] = await system.sql('select count(*)::int n from receipts')
  t.same(stored, { n: 1 }, 'and makes the receipt of every purchase')
})

t.test('a look meets the observation of a purchase', async (t) => {
  await using system = await startSystem()
  await system.ask({ key: randomUUID(), headers: { prefer: 'wait=25' }, fetch: payingFetch() })
  t.equal((await look(system, harbourClaim(system.site))).status, 200)
  t.same(system.site.requests, ['/harbour'])
})

t.test('as lines: the stages, then the answer', async (t) => {
  await using system = await startSystem()
  const headers = { accept: 'application/x-ndjson' }
  const looked = await look(system, harbourClaim(system.site), headers)
  t.match(looked.headers.get('content-type'), /^application\/x-ndjson/)
  const lines = linesOf(looked)
  const stages = lines.slice(0, -1).map(({ stage }) => stage)
  t.ok(stages.length > 0, 'there are stages')
  t.same(
    stages,
    ['waiting', 'reading', 'assessing'].filter((stage) => stages.includes(stage)),
    'in their order',
  )
  t.same(Object.keys(lines.at(-1)), MEMBERS)

  const again = linesOf(await look(system, harbourClaim(system.site), headers))
  t.same(again, [lines.at(-1)], 'what is known is answered at once')

  system.site.pages.set('/gone', { status: 404, body: '' })
  const gone = { source_url: system.site.url('/gone'), claim: 'x' }
  const failed = linesOf(await look(system, gone, headers))
  t.match(failed.at(-1), { status: 'failed', error: { code: 'source_http_status', retryable: false } })
  const known = await look(system, gone, headers)
  t.equal(known.status, 422, 'a failure that is known has its own status')
  t.match(known.body, { status: 'failed', error: { code: 'source_http_status' } })
  const inLines = { accept: 'application/x-ndjson; failures=lines' }
  for (const [body, code] of [
    [gone, 'source_http_status'],
    [{ source_url: 'https://127.0.0.1/', claim: 'x' }, 'source_blocked'],
  ] as const) {
    const refused = await look(system, body, inLines)
    t.equal(refused.status, 200, `${code}: a browser reports any other status as an error of the page`)
    t.match(linesOf(refused), [{ status: 'failed', error: { code } }])
  }
})

t.test('what a purchase would refuse is refused, with its statuses and bodies', async (t) => {
  await using system = await startSystem()
  const source_url = system.site.url('/harbour')
  const bodies: [unknown, number, string][] = [
    [{ source_url }, 400, 'invalid_request'],
    [{ source_url, claim: '  ' }, 400, 'invalid_request'],
    [{ source_url, claim: 'x'.repeat(2001) }, 400, 'invalid_request'],
    [{ source_url, claim: 'x', options: {} }, 400, 'invalid_request'],
    [{ source_url: 'http://example.com/', claim: 'x' }, 400, 'invalid_request'],
    [{ source_url: 'https://example.com:8443/', claim: 'x' }, 422, 'source_blocked'],
    [{ source_url: 'https://127.0.0.1/', claim: 'x' }, 422, 'source_blocked'],
    [{ source_url: 'https://localhost/', claim: 'x' }, 422, 'source_blocked'],
    [{ source_url: system.url('/samples/unknown'), claim: 'x' }, 400, 'invalid_request'],
    [{ source_url: system.url('/status'), claim: 'x' }, 400, 'invalid_request'],
    ['[]', 400, 'invalid_request'],
    ['{', 400, 'invalid_request'],
    [`{"source_url":"${source_url}","claim":"\\ud800"}`, 400, 'invalid_request'],
    [JSON.stringify({ source_url, claim: 'x', more: 'x'.repeat(70_000) }), 400, 'invalid_request'],
  ]
  for (const [body, status, code] of bodies) {
    const about = JSON.stringify(body).slice(0, 80)
    const looked = await look(system, body)
    t.match(looked, { status, body: { schema_version: '1.0.0', status: 'failed', error: { code } } }, about)
    const bought = await system.ask({ key: randomUUID(), body })
    if (!about.includes('options')) t.match(bought, { status }, `${about}: as a purchase`)
    await bought.body?.cancel()
  }
  t.match(await look(system, 'x', { 'content-type': 'text/plain' }), {
    status: 415,
    body: { status: 'failed', error: { code: 'unsupported_media_type' } },
  })
  for (const method of ['PUT', 'DELETE']) {
    const wrong = await fetch(system.url('/try'), { method })
    t.equal(wrong.status, 404, method)
    t.match(await wrong.json(), { schema_version: '1.0.0', status: 'failed', error: { code: 'not_found' } })
  }
  t.same(await system.sql('select count(*)::int n from looks'), [{ n: 0 }], 'nothing was counted')
})

t.test('pages that cannot be judged fail as for a purchase', async (t) => {
  const pages = {
    '/empty': { body: '<p></p>' },
    '/wall': { body: '<title>Log in</title><p>Please log in to continue.</p><p>Log in</p>' },
    '/busy': { status: 503, body: '' },
  }
  await using system = await startSystem({ pages })
  for (const [path, code, retryable] of [
    ['/empty', 'source_empty', false],
    ['/wall', 'source_login_required', false],
    ['/busy', 'source_http_status', true],
  ] as const) {
    const failed = await look(system, { source_url: system.site.url(path), claim: 'The piers are three.' })
    t.match(failed, { status: 422, body: { status: 'failed', error: { code, retryable } } }, path)
    t.equal(failed.headers.has('retry-after'), retryable)
  }
  system.site.pages.set('/busy', { body: PAGE })
  const busy = { source_url: system.site.url('/busy'), claim: 'The piers are three.' }
  t.equal((await look(system, busy)).status, 422, 'the same failure for a short time')
  await system.sql(`update looks set changed_at = changed_at - interval '31 seconds'`)
  t.equal((await look(system, busy)).status, 200, 'then the page is read again')
  t.match(await system.sql(`select count(*)::int n, max(runs)::int runs from looks`), [{ n: 3, runs: 2 }])
})

t.test('switched off, there is nothing to try; without verification it is refused', async (t) => {
  await using off = await startSystem({ env: { TRY_ENABLED: 'false' } })
  t.match(await look(off, harbourClaim(off.site)), {
    status: 404,
    body: { schema_version: '1.0.0', status: 'failed', error: { code: 'not_found' } },
  })
  const twin = await off.openTwin({}, { TRY_ENABLED: 'true', VERIFICATION_ENABLED: 'false' })
  await using _closing = twin
  const closed = await look({ url: (path) => new URL(path, twin.address).href }, harbourClaim(off.site))
  t.match(closed, { status: 503, body: { error: { code: 'verification_disabled' } } })
})

t.test('the samples go through the assessor, and are not read over the network', async (t) => {
  const expected = {
    'harbour-bridge': 'supports',
    'museum-hours': 'contradicts',
    'library-release': 'insufficient_evidence',
  }
  await using system = await startSystem({
    env: { ASSESSMENT: 'local', VERIFIER_THREADS: '1', TRY_PER_ADDRESS_PER_DAY: '0' },
  })
  await until(async () => (await fetch(system.url('/readyz'))).status === 200)
  for (const sample of SAMPLES) {
    const source_url = system.url(samplePath(sample))
    const { status, body } = await lookToEnd(system, { source_url, claim: sample.claim })
    t.match(
      { status, verdict: body.claim_support },
      { status: 200, verdict: expected[sample.name as keyof typeof expected] },
    )
    t.equal(body.source.final_url, source_url)
    const points = Array.from(body.source.normalized_text)
    for (const { quote, start, end } of body.evidence) t.equal(points.slice(start, end).join(''), quote)
    // Another claim about a sample is a look of its own, which counts.
    t.equal((await look(system, { source_url, claim: `${sample.claim} So.` })).status, 429)
  }
  t.same(system.site.requests, [])
  t.same(await system.sql(`select count(*)::int n from origins`), [{ n: 0 }], 'no host was asked')
})

t.test('without a verdict, the samples are quoted', async (t) => {
  await using system = await startSystem()
  for (const sample of SAMPLES) {
    const { body } = await look(system, { source_url: system.url(samplePath(sample)), claim: sample.claim })
    t.equal(body.assessment_scope, 'literal_quotation_only')
    t.ok(['not_assessed', 'insufficient_evidence'].includes(body.claim_support), body.claim_support)
  }
})
