// What /verify says of things that are no results: whether a lease is in force, what a check of each kind does not show, and what
// is not signed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Countersign } from '../../client/client.ts'
import { examine } from '../../client/page/verify/examine.ts'
import { LEASES } from '../../client/page/verify/lease-kinds.ts'
import { HEADLINES } from '../../client/page/verify/report-view.ts'
import { reportAt, span } from '../../client/page/verify/term-view.ts'
import { noBrowser, overflow, seriousFindings, sharedBrowser, shown, visit } from '../browser.ts'
import { startSystem } from '../system.ts'
import { give } from './verify-form.ts'

const vectors = (name: string) => JSON.parse(readFileSync(join(import.meta.dirname, `../vectors/${name}.json`), 'utf8'))
const { keys, cases } = vectors('lease')
const [{ answer }] = cases
const { recheck_by_ms, expires_ms } = answer.lease

async function* bytesOf(value: unknown) {
  yield Buffer.from(JSON.stringify(value))
}
const report = (value: unknown, now: number, pinned = keys) =>
  examine(() => bytesOf(value), { pinned, published: null }, LEASES, now)

const CHECKED = {
  file: 'report.md',
  service: 'https://service.example/',
  checked_at: '2026-01-02T03:04:05Z',
  ok: true,
  pages: 1,
  counts: { supported: 2 },
  verdicts: { folder: '.countersign-verdicts/ab12' },
  citations: [7, 7, 9].map((receipt_serial) => ({ status: 'supported', verdict: { receipt_serial } })),
}

t.test('the report of a lease knows its term, and what it becomes while it is read', async (t) => {
  const inForce = await report(answer, recheck_by_ms - 25_000)
  t.match(inForce, { status: 'good', term: { state: 'in_force', at: recheck_by_ms, ends: expires_ms } })
  t.equal(reportAt(inForce, recheck_by_ms - 1), inForce)
  t.match(reportAt(inForce, recheck_by_ms), { status: 'lapsed', term: { state: 'to_renew', at: recheck_by_ms } })
  t.match(reportAt(inForce, expires_ms), { status: 'lapsed', term: { state: 'ended', at: expires_ms } })
  t.match(await report(answer, recheck_by_ms), { status: 'lapsed', term: { state: 'to_renew' } })
  t.match(await report(answer, expires_ms), { status: 'lapsed', term: { state: 'ended', at: expires_ms } })
})

t.test('a revoked lease is genuine and says so, and one that was changed is neither', async (t) => {
  const revoked = { ...answer, state: 'revoked', revoked_ms: 5 }
  t.match(await report(revoked, recheck_by_ms - 25_000), {
    status: 'lapsed',
    term: { state: 'revoked', at: 5, isSigned: false },
  })
  const changed = { ...revoked, lease: { ...answer.lease, agent: 'another' } }
  t.match(await report(changed, recheck_by_ms - 25_000), { status: 'bad', term: undefined })
})

t.test('of what names no key that is known, nothing is said to be unchanged', async (t) => {
  t.match(await report(answer, recheck_by_ms - 25_000, []), { status: 'keyless', term: undefined })
  t.notMatch(HEADLINES.keyless, /unchanged/i)
})

t.test('the report of a check is nothing that is signed', async (t) => {
  const found = await report(CHECKED, 0)
  t.match(found, { kind: 'the report of a check', status: 'unsigned', checks: [], key: null })
  t.match(await report({ ...CHECKED, receipt: {} }, 0), { status: 'bad' }, 'but a result with its members is one')
})

t.test('a span is counted in a unit of which there are two', async (t) => {
  const spans = [25_999, -90_000, -1000 * 60 * 121, 1000 * 3600 * 47, -1000 * 86_400 * 900].map(span)
  t.same(spans, ['in 25 seconds', '90 seconds ago', '2 hours ago', 'in 47 hours', '900 days ago'])
})

t.test('in a browser', { skip: noBrowser }, async (t) => {
  const system = await startSystem()
  t.teardown(() => system[Symbol.asyncDispose]())
  const baseUrl = system.url('/')
  const { api_key: apiKey } = await new Countersign({ baseUrl }).register({ handle: 'kelby' })
  const client = new Countersign({ baseUrl, apiKey })
  const granted = await client.grantLease({ agent: 'agent-7', action: 'pay', lim: 'usd<=20', ttl_s: 3600 })
  const { lease_id, recheck_by_ms } = granted.lease
  await using opened = await visit(await sharedBrowser(), 'about:blank', { isSpent: true })
  const { page, complaints } = opened
  await page.clock.setFixedTime(recheck_by_ms - 25_000)
  await page.goto(system.url('/verify'))
  const check = async (value: unknown) => {
    await page.evaluate(() => document.getElementById('standing')?.setAttribute('id', 'before'))
    await give(page, typeof value === 'string' ? value : JSON.stringify(value))
    await page.waitForSelector('#standing')
    return (await shown(page, '.report')).replaceAll(/\s+/g, ' ')
  }

  const inForce = await check(granted)
  t.match(
    inForce,
    /Genuine: signed by this service In force until .* \(in 25 seconds\), by the clock of this computer, unless it was revoked: the file cannot show that/,
  )
  t.match(inForce, /Renewed in time, it goes on until .* at the latest/)
  t.match(inForce, /only the service knows, and then refuses to renew it/)
  t.notMatch(inForce, /the claim|the page/)
  t.same(await seriousFindings(page), [])
  await page.clock.setFixedTime(recheck_by_ms + 1000)
  await page.getByRole('heading', { name: HEADLINES.lapsed }).waitFor()
  t.match(await shown(page, '.term'), /^Not in force since .* \(1 second ago\): this file holds no later renewal/)

  const revocation = await client.revokeLease({ lease_id })
  const revoked = await check(await client.getLease({ lease_id }))
  t.match(
    revoked,
    /a lease\. Genuine, but said to be revoked Not proved: the file says that it was revoked on .* ago\)\. That part of it is not signed\. Do not act/,
  )
  t.notMatch(revoked, /no longer in force|cannot be renewed/, 'nothing signed says so')
  const signed = await check(revocation)
  t.match(
    signed,
    /the revocation of a lease\. Genuine: signed by this service Revoked on .*It cannot be renewed\. The check passed/,
  )
  t.notMatch(signed, /that part of it is not|the claim/)
  const forged = await check(JSON.stringify(revocation).replaceAll(/"revoked_ms":\d+/g, '"revoked_ms":1'))
  t.match(forged, 'Not genuine')

  for (const [serial, words] of [
    ['1', /does not show what the digest is of/],
    [JSON.stringify(vectors('chain').cases[0].chain ?? vectors('chain').cases[0].attestations), /follow each other/],
  ] as const) {
    const receipt = await check(serial)
    t.match(receipt, words)
    t.notMatch(receipt, /the claim|the page/)
  }

  const checked = await check(CHECKED)
  t.match(checked, /This is the report of a check\. Nothing to verify Nobody signs the report of a check/)
  t.notMatch(checked, /genuine/i)
  t.equal(await page.locator('.report :is(.tone-proved, .tone-good, .tone-supports)').count(), 0, 'nothing is green')
  t.match(checked, /select\(\.receipt_serial == 7\)\.result_base64\)' \.countersign-verdicts\/ab12\/\*\/results\.jsonl/)
  t.match(checked, /The receipts that it names: 7, 9\. /)
  t.match(checked, /which is not proved Report report\.md .* Citations 3 Verdicts with a receipt 2/)
  t.same(await seriousFindings(page), [])
  await page.setViewportSize({ width: 360, height: 740 })
  t.equal(await overflow(page), 0)
  const unbought = await check({
    ...CHECKED,
    file: '--key $(id)',
    verdicts: null,
    citations: [{ status: 'ok', verdict: null }],
  })
  t.match(unbought, `countersign check report.md --service ${new URL(baseUrl).origin} --key key.txt`)
  t.same(complaints, [])
})
