// Simulated subscriptions over HTTP, as a browser without scripts uses them.
import t from 'tap'
import { openServer } from '../../server/app.ts'
import { type Account, openAccountHarness } from '../accounts/harness.ts'

const harness = await openAccountHarness({ BASE_URL: 'https://countersign.test' })
t.teardown(() => harness[Symbol.asyncDispose]())
/** Requests a page without following redirects. */
const server = await openServer(harness.api)
t.teardown(() => server[Symbol.asyncDispose]())

const pathOf = (url: string) => new URL(url).pathname
async function checkout(account: Account, tier: string) {
  const { status, body } = await account.call('POST', '/v1/checkout', { body: { tier } })
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body
}

/** Submits the form of a page by one of its buttons. */
async function click(path: string, action: string, { at = server, type = FORM } = {}) {
  const url = new URL(path, at.address)
  return fetch(url, { method: 'POST', headers: { 'content-type': type }, body: `action=${action}`, redirect: 'manual' })
}
const FORM = 'application/x-www-form-urlencoded'

async function read(path: string) {
  const { status, headers, bytes } = await harness.call('GET', path)
  return { status, headers, html: bytes.toString() }
}
const buttonsOf = (html: string) =>
  [...html.matchAll(/<button name="action" value="(\w+)"[^>]*>/g)].map(([, name]) => name)
const usage = async (account: Account) => (await account.call('GET', '/v1/usage')).body

t.test('bought, changed, ended', async (t) => {
  const account = await harness.register({ handle: 'kelby' })
  const answer = await checkout(account, 'dev')
  t.match(answer, { tier: 'dev', price_usd: '29', mode: 'simulated', kind: 'subscribe' })
  t.match(answer.checkout_url, /^https:\/\/countersign\.test\/checkout\/[A-Za-z0-9_-]{43}$/)
  t.same(await checkout(account, 'dev'), answer, 'a repeated call gets the same page')

  const page = await read(pathOf(answer.checkout_url))
  t.equal(page.status, 200)
  t.match(page.html, /<strong>Simulation\.<\/strong>.*without Stripe/)
  t.match(page.html, /nothing is charged/)
  t.match(page.html, /The account <b>kelby<\/b> would subscribe to the dev tier, 29 USD per month/)
  t.same(buttonsOf(page.html), ['pay', 'cancel'])
  t.notMatch(page.html, /<script|https?:|\son\w+=/i, 'no script, and nothing from another host')
  t.equal((await usage(account)).tier, 'free', 'opening the page buys nothing')

  const paid = await click(pathOf(answer.checkout_url), 'pay')
  t.equal(paid.status, 303)
  t.equal(paid.headers.get('location'), '/checkout/success')
  t.match((await read('/checkout/success')).html, /Thank you/)
  t.match(await usage(account), {
    tier: 'dev',
    subscription: { status: 'active', tier: 'dev', provider: 'simulation', cancel_at_period_end: false },
  })
  t.ok(Date.parse((await usage(account)).subscription.current_period_end) > harness.clock.now)
  const { rows } = await harness.tables.query('select type from billing_events')
  t.same(rows, [{ type: 'checkout.session.completed' }], 'recorded like an event of Stripe')
  t.match((await account.call('POST', '/v1/checkout', { body: { tier: 'dev' } })).body.error.code, 'already_subscribed')

  const change = await checkout(account, 'pro')
  t.match(change, { kind: 'change', price_usd: '99' })
  t.match((await read(pathOf(change.checkout_url))).html, /<b>kelby<\/b> would change from dev to the pro tier, 99 USD/)
  await click(pathOf(change.checkout_url), 'pay')
  t.match(await usage(account), { tier: 'pro', subscription: { tier: 'pro' } })
  const live = await harness.tables.query(`select count(*)::int n from simulated_subscriptions where status = 'active'`)
  t.equal(live.rows[0].n, 1)

  const { body: portal } = await account.call('POST', '/v1/billing-portal')
  t.match(portal, { mode: 'simulated' })
  const manage = await read(pathOf(portal.portal_url))
  t.match(manage.html, /Simulation\..*<b>kelby<\/b> subscribes to the pro tier/s)
  t.same(buttonsOf(manage.html), ['end', 'cancel'])
  await click(pathOf(portal.portal_url), 'end')
  t.match(await usage(account), { tier: 'free', subscription: null })
  t.match(await checkout(account, 'dev'), { kind: 'subscribe' }, 'a new subscription is possible')
})

t.test('cancelled, clicked twice, and expired', async (t) => {
  const account = await harness.register()
  const first = pathOf((await checkout(account, 'dev')).checkout_url)
  const left = await click(first, 'cancel')
  t.equal(left.headers.get('location'), '/checkout/cancel')
  t.match((await read('/checkout/cancel')).html, /Nothing was changed/)
  t.match((await read(first)).html, /Simulation.*This page is closed/s)
  t.same(buttonsOf((await read(first)).html), [])
  t.equal((await click(first, 'pay')).headers.get('location'), first, 'a closed page pays nothing')
  t.equal((await usage(account)).tier, 'free')

  const second = pathOf((await checkout(account, 'dev')).checkout_url)
  t.not(second, first)
  const clicks = await Promise.all(Array.from({ length: 6 }, () => click(second, 'pay')))
  t.equal(clicks.filter((answer) => answer.headers.get('location') === '/checkout/success').length, 1)
  t.match((await read(second)).html, /was used already/)
  t.equal((await usage(account)).tier, 'dev')

  const late = await harness.register()
  const third = pathOf((await checkout(late, 'pro')).checkout_url)
  harness.clock.now += 23 * 3_600_000
  t.equal((await read(third)).status, 404)
  t.equal((await click(third, 'pay')).status, 404)
  t.equal((await usage(late)).tier, 'free')
})

t.test('a page for another tier closes the earlier page', async (t) => {
  const account = await harness.register()
  const dev = pathOf((await checkout(account, 'dev')).checkout_url)
  const pro = pathOf((await checkout(account, 'pro')).checkout_url)
  t.equal((await click(dev, 'pay')).headers.get('location'), dev)
  await click(pro, 'pay')
  t.equal((await usage(account)).tier, 'pro')
})

t.test('without the address of the page, nothing is possible', async (t) => {
  const account = await harness.register()
  const path = pathOf((await checkout(account, 'dev')).checkout_url)
  const other = await harness.register()
  const others = pathOf((await checkout(other, 'dev')).checkout_url)
  const changed = `${path.slice(0, -1)}${path.endsWith('A') ? 'B' : 'A'}`
  for (const wrong of [
    changed,
    '/checkout/',
    '/checkout/x',
    `/checkout/${'a'.repeat(5000)}`,
    '/checkout/%00',
    `${path}/`,
  ]) {
    t.equal((await read(wrong)).status, 404, wrong.slice(0, 20))
    t.equal((await click(wrong, 'pay')).status, 404, wrong.slice(0, 20))
  }
  for (const tried of ['', 'end', 'PAY', '<script>']) t.equal((await click(path, tried)).status, 400, tried)
  t.equal((await click(path, 'pay', { type: 'application/json' })).status, 415)
  t.equal((await click(path, 'x'.repeat(2000))).status, 413)
  t.same([(await usage(account)).tier, (await usage(other)).tier], ['free', 'free'])
  const { rows } = await harness.tables.query(
    'select c::text row from simulated_checkouts c union all select b::text from billing_checkouts b',
  )
  for (const address of [path, others]) {
    const token = address.split('/').at(-1) ?? ''
    t.ok(rows.length > 0 && rows.every(({ row }) => !row.includes(token)), 'the address is stored nowhere')
  }
})

t.test('headers: no cache, no frame, no referrer; no foreign scripts or forms', async (t) => {
  const account = await harness.register()
  for (const path of [pathOf((await checkout(account, 'dev')).checkout_url), '/checkout/success', '/checkout/none']) {
    const { headers, html } = await read(path)
    t.equal(headers.get('content-type'), 'text/html; charset=utf-8')
    t.equal(headers.get('cache-control'), 'no-store')
    t.equal(headers.get('referrer-policy'), 'no-referrer')
    t.equal(headers.get('x-content-type-options'), 'nosniff')
    t.match(
      headers.get('content-security-policy'),
      /default-src 'none'.*style-src 'self'.*frame-ancestors 'none'.*form-action 'self'/,
    )
    t.notMatch(html, /<script/)
  }
})

t.test('markup in a handle is escaped', async (t) => {
  const account = await harness.register()
  const path = pathOf((await checkout(account, 'dev')).checkout_url)
  // No handle can contain markup; the page does not rely on that.
  await harness.tables.query('alter table accounts drop constraint accounts_handle_check')
  await harness.tables.query('update accounts set handle = $1 where handle = $2', [
    `<img src=x onerror="alert('1')">&`,
    account.handle,
  ])
  const { html } = await read(path)
  t.notMatch(html, /<img/)
  t.match(html, '&lt;img src=x onerror=&quot;')
})

t.test('a second process gives the same page and changes the same tier', async (t) => {
  const otherProcess = await harness.openApiProcess()
  t.teardown(() => otherProcess[Symbol.asyncDispose]())
  const account = await harness.register()
  const second = await openServer(otherProcess.api)
  t.teardown(() => second[Symbol.asyncDispose]())
  const here = await checkout(account, 'dev')
  const there = await otherProcess.call('POST', '/v1/checkout', { key: account.key, body: { tier: 'dev' } })
  t.equal(there.body.checkout_url, here.checkout_url)
  t.equal((await click(pathOf(here.checkout_url), 'pay', { at: second })).headers.get('location'), '/checkout/success')
  t.equal((await usage(account)).tier, 'dev')
})

t.test('a simulation has no webhook of Stripe', async (t) => {
  const headers = { 'content-type': 'application/json', 'stripe-signature': `t=1,v1=${'00'.repeat(32)}` }
  t.equal((await harness.call('POST', '/v1/stripe/webhook', { body: Buffer.from('{}'), headers })).status, 404)
})
