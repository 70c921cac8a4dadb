// `billing reconcile` and its hourly job: lost changes are found, wrong tiers are corrected, problems are listed.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { billingCommands } from '../../server/billing/commands.ts'
import { reconcile } from '../../server/billing/reconciliation.ts'
import { openLog } from '../../server/telemetry.ts'
import { crontab } from '../../workers/tasks.ts'
import { BARE_ENV } from '../children.ts'
import { openLogLines } from '../payments/log-lines.ts'
import { startSystem } from '../system.ts'
import { openStripeHarness, type StripeHarness } from './harness.ts'
import { openStripeServer, PRICES } from './stripe-server.ts'

/** Runs a command in its own process, as an operator does. */
async function cli(harness: StripeHarness, ...args: string[]) {
  const { values, dataDir } = harness.accountHarness.api.config
  const env = { ...harness.stripe.env, BASE_URL: String(values.BASE_URL), DATA_DIR: dataDir }
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../server/cli.ts'), ...args], {
    env: { ...BARE_ENV, ...env, DATABASE_URL: harness.accountHarness.api.databaseUrl },
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}

/** Runs a command in this process, in a tenth of the time. */
async function command(harness: StripeHarness, group: string, name: string, ...args: string[]) {
  const { db, config } = harness.accountHarness.api
  const [stdout, stderr]: [string[], string[]] = [[], []]
  const { log, error } = console
  console.log = (line: string) => void stdout.push(line)
  console.error = (line: string) => void stderr.push(line)
  try {
    const code = await billingCommands[`${group} ${name}`]?.run(db, config, {
      args,
      json: false,
      confirm: async () => true,
    })
    return { code, stdout: `${stdout.join('\n')}\n`, stderr: stderr.length > 0 ? `${stderr.join('\n')}\n` : '' }
  } finally {
    Object.assign(console, { log, error })
  }
}

t.test('lost events', async (t) => {
  await using harness = await openStripeHarness()
  const { accountHarness, stripe } = harness
  const { acts, events } = stripe.world
  const [ended, upgraded, refunded, still] = await Promise.all([
    harness.subscriber('dev'),
    harness.subscriber('dev'),
    harness.subscriber('pro'),
    harness.subscriber('pro'),
  ])
  const bought = await accountHarness.register()
  acts.payCheckout(await harness.checkout(bought, 'dev'))
  const unknown = await accountHarness.register()
  acts.payCheckout(await harness.checkout(unknown, 'pro'))
  await accountHarness.tables.query(
    'delete from billing_customers where account_id = (select id from accounts where handle = $1)',
    [unknown.handle],
  )
  acts.setStatus(ended.subscription, 'canceled')
  acts.setPrice(upgraded.subscription, PRICES.pro)
  acts.refund(refunded.subscription)
  const lost = events.splice(0)

  const { code, stdout, stderr } = await cli(harness, 'billing', 'reconcile')
  t.equal(stderr, '')
  t.same(stdout.trim().split('\n').sort(), [
    '6 customers, 5 corrected, 0 unbound, 0 doubled, 0 failed',
    ...[
      `CORRECTED ${bought.handle}: free -> dev`,
      `CORRECTED ${ended.handle}: dev -> free`,
      `CORRECTED ${refunded.handle}: pro -> free`,
      `CORRECTED ${unknown.handle}: free -> pro`,
      `CORRECTED ${upgraded.handle}: dev -> pro`,
    ].sort(),
  ])
  t.equal(code, 0)
  t.equal(await harness.tierOf(still), 'pro')

  t.match(await command(harness, 'billing', 'reconcile'), { code: 0, stdout: /^6 customers, 0 corrected/ })
  for (const event of lost) t.equal((await harness.deliver(event)).status, 200)
  const tiers = await Promise.all([bought, ended, refunded, unknown, upgraded].map(harness.tierOf))
  t.same(tiers, ['dev', 'free', 'free', 'pro', 'pro'], 'late events change nothing')
})

t.test('a subscription without an account, and an account with two, are listed for the operator', async (t) => {
  await using harness = await openStripeHarness()
  const { acts, customers } = harness.stripe.world
  const account = await harness.subscriber('dev')
  acts.subscribe(account.customer, PRICES.pro)
  for (const [id, metadata] of [
    ['cus_of_nobody', {}],
    ['cus_of_the_past', { service: 'countersign', account_id: randomUUID() }],
    ['cus_of_nonsense', { service: 'countersign', account_id: 'x' }],
    ['cus_of_another_service', { account_id: randomUUID() }],
  ] as const) {
    customers.set(id, { id, object: 'customer', metadata })
    acts.subscribe(id, PRICES.dev)
  }
  const { code, stdout } = await command(harness, 'billing', 'reconcile')
  t.equal(code, 1)
  t.equal(stdout.match(/^UNBOUND +sub_/gm)?.length, 4)
  t.match(stdout, new RegExp(`^DOUBLED +${account.handle} pays for sub_\\w+ and sub_\\w+`, 'm'))
  t.match(stdout, /^1 customers, 1 corrected, 4 unbound, 1 doubled, 0 failed$/m)
  t.equal(await harness.tierOf(account), 'pro', 'the better tier counts')
})

t.test('a subscription of a customer without metadata is found by its own', async (t) => {
  await using harness = await openStripeHarness()
  const { acts, customers } = harness.stripe.world
  const account = await harness.accountHarness.register()
  const { rows } = await harness.accountHarness.tables.query('select id from accounts where handle = $1', [
    account.handle,
  ])
  customers.set('cus_moved', { id: 'cus_moved', object: 'customer', metadata: {} })
  acts.subscribe('cus_moved', PRICES.dev, { metadata: { service: 'countersign', account_id: rows[0].id, tier: 'pro' } })
  t.match(await command(harness, 'billing', 'reconcile'), {
    code: 0,
    stdout: new RegExp(`${account.handle}: free -> dev`),
  })
})

t.test('many customers, on more than one page', async (t) => {
  await using harness = await openStripeHarness()
  const { accountHarness, stripe } = harness
  const { db, log, now } = accountHarness.api
  for (let n = 0; n < 520; n++) {
    const handle = `bulk-${n}`
    await accountHarness.tables.query(
      `with made as (insert into accounts (id, handle, tier) values (gen_random_uuid(), $1, 'pro') returning id)
       insert into billing_customers (customer_id, account_id, provider) select 'cus_' || $1, id, 'stripe' from made`,
      [handle],
    )
  }
  const account = await accountHarness.register()
  stripe.world.acts.payCheckout(await harness.checkout(account, 'dev'))
  const { billing } = accountHarness.api
  const result = await reconcile({ db, log, now }, billing!)
  t.equal(result.customers, 521)
  t.equal(result.changes.length, 521, 'tiers without a subscription end, and a lost one is set')
  t.equal(await harness.tierOf(account), 'dev')
  const asked = stripe.calls.length
  await reconcile({ db, log, now }, billing!)
  t.ok(stripe.calls.length - asked < 20, 'Stripe is asked only about customers that may have a subscription')
})

t.test('the end of a grace period, for which there is no event', async (t) => {
  await using harness = await openStripeHarness()
  const { db, log, now, billing } = harness.accountHarness.api
  const account = await harness.subscriber('pro')
  harness.stripe.world.acts.renew(account.subscription, false)
  await harness.deliverAll()
  harness.accountHarness.clock.now += 13.9 * 86_400_000
  t.same((await reconcile({ db, log, now }, billing!)).changes, [])
  harness.accountHarness.clock.now += 0.2 * 86_400_000
  t.same((await reconcile({ db, log, now }, billing!)).changes, [{ handle: account.handle, from: 'pro', to: 'free' }])
})

t.test('Stripe does not answer, or is the wrong account: exit 1, and no tier changes', async (t) => {
  await using harness = await openStripeHarness()
  const account = await harness.subscriber('pro')
  harness.stripe.faults.push({ match: /GET/, how: 'drop before', times: 100 })
  const away = await cli(harness, 'billing', 'reconcile')
  t.match(away, { code: 1, stdout: '', stderr: /Stripe does not answer/ })
  harness.stripe.faults.length = 0
  const { world } = harness.stripe
  const customer = world.customers.get(account.customer)!
  world.customers.clear()
  ;(world.prices as string[]).length = 0
  const wrong = await cli(harness, 'billing', 'reconcile')
  t.equal(wrong.code, 1)
  t.equal(await harness.tierOf(account), 'pro')
  t.notMatch(`${away.stderr}${wrong.stderr}${wrong.stdout}`, /sk_test|whsec/)
  world.customers.set(customer.id, customer)
})

t.test('simulated subscriptions give no tier once Stripe bills', async (t) => {
  await using harness = await openStripeHarness()
  const none = { STRIPE_SECRET_KEY: '', STRIPE_WEBHOOK_SECRET: '', STRIPE_PRICE_DEV: '', STRIPE_PRICE_PRO: '' }
  await using before = await harness.accountHarness.openApiProcess(none)
  const account = await harness.accountHarness.register()
  const { body } = await before.call('POST', '/v1/checkout', { key: account.key, body: { tier: 'pro' } })
  await before.call('POST', new URL(body.checkout_url).pathname, {
    body: Buffer.from('action=pay'),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  t.equal((await before.call('GET', '/v1/usage', { key: account.key })).body.tier, 'pro')
  t.match(await command(harness, 'billing', 'reconcile'), {
    code: 0,
    stdout: new RegExp(`${account.handle}: pro -> free`),
  })
  t.match(await harness.usageOf(account), { tier: 'free', subscription: null })
})

t.test('list, show, and tiers that the operator grants', async (t) => {
  await using harness = await openStripeHarness()
  const paying = await harness.subscriber('dev')
  const given = await harness.accountHarness.register()
  await harness.accountHarness.register()
  t.match(await cli(harness, 'account', 'tier', given.handle, 'pro'), {
    code: 2,
    stderr: /^Grant \S+ the tier pro free of charge\?\nThere is no terminal to ask this/,
  })
  t.equal(await harness.tierOf(given), 'free', 'nothing was changed')
  t.match(await cli(harness, 'account', 'tier', given.handle, 'pro', '--yes'), {
    code: 0,
    stdout: `${given.handle}: pro; granted pro; no subscription\n`,
  })
  t.equal(await harness.tierOf(given), 'pro')
  t.match(await command(harness, 'account', 'tier', paying.handle, 'pro'), {
    stdout: `${paying.handle}: pro; granted pro; ${paying.subscription} dev active\n`,
  })
  const listed = await command(harness, 'billing', 'list')
  t.match(listed, { code: 0, stdout: /^2 accounts$/m })
  t.ok(listed.stdout.includes(paying.handle) && listed.stdout.includes(given.handle))
  t.match(await command(harness, 'account', 'tier', paying.handle, 'free'), {
    stdout: /: dev; granted free; sub_\w+ dev active/,
  })
  t.equal(await harness.tierOf(paying), 'dev', 'the paid tier stays')
  const shown = await command(harness, 'billing', 'show', paying.handle)
  t.match(JSON.parse(shown.stdout), {
    handle: paying.handle,
    tier: 'dev',
    granted_tier: 'free',
    customers: [{ customer_id: paying.customer, provider: 'stripe', gone: false }],
    subscriptions: [{ subscription_id: paying.subscription, status: 'active' }],
  })
  t.ok(JSON.parse(shown.stdout).events.length >= 3)
  for (const [group = '', name = '', ...rest] of [
    ['billing', 'show', 'nobody'],
    ['account', 'tier', 'nobody', 'dev'],
  ])
    t.match(await command(harness, group, name, ...rest), { code: 1, stderr: 'There is no such account.\n' })
  t.match(await command(harness, 'account', 'tier', paying.handle, 'gold'), { code: 2, stderr: /"gold" is not one of/ })
})

t.test('the job runs hourly, with Stripe only', async (t) => {
  const items = crontab() as unknown as { task: string; match: unknown; options: { queueName?: string } }[]
  t.equal(items.filter(({ task }) => task === 'reconcile_billing').length, 1)
  await using stripe = await openStripeServer()
  const book = openLogLines()
  await using system = await startSystem({
    env: stripe.env,
    overrides: { log: openLog('info', { write: (line) => book.write(line) }) },
  })
  const register = { method: 'POST', headers: { 'content-type': 'application/json' } }
  const registered = await fetch(system.url('/v1/register'), { ...register, body: '{"handle":"kelby"}' })
  const { api_key } = (await registered.json()) as { api_key: string }
  const headers = { ...register.headers, authorization: `Bearer ${api_key}` }
  await fetch(system.url('/v1/checkout'), { method: 'POST', headers, body: '{"tier":"pro"}' })
  const [session] = stripe.world.sessions.values()
  stripe.world.acts.payCheckout(session!.id)
  await system.sql(`select graphile_worker.add_job('reconcile_billing')`)
  t.match(await book.next('billing_reconciled'), { customers: 1, changes: 1, failed: 0 })
  const [account] = await system.sql('select tier from accounts')
  t.same(account, { tier: 'pro' })

  const twin = await system.openTwin(
    {},
    { STRIPE_SECRET_KEY: '', STRIPE_WEBHOOK_SECRET: '', STRIPE_PRICE_DEV: '', STRIPE_PRICE_PRO: '' },
  )
  t.equal(twin.api.billing?.name, 'simulation')
  await twin[Symbol.asyncDispose]()
  for (const line of book.lines) t.notMatch(JSON.stringify(line), /sk_test|whsec_|ctk_/)
})
