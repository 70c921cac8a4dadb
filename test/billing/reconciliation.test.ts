// `billing reconcile` and its hourly job: what was lost is found, what is wrong is corrected and named.
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
import { openLogLines } from '../payments/log-lines.ts'
import { startSystem } from '../system.ts'
import { openStripeServer, PRICES } from './stripe-server.ts'
import { openTill, type Till } from './till.ts'

/** In a process of its own, as an operator runs it. */
async function cli(till: Till, ...args: string[]) {
  const { values, dataDir } = till.office.api.config
  const env = { ...till.stripe.env, BASE_URL: String(values.BASE_URL), DATA_DIR: dataDir }
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../server/cli.ts'), ...args], {
    env: { PATH: process.env.PATH, ...env, DATABASE_URL: till.office.api.databaseUrl },
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}

/** The same command in this process, which takes a tenth of the time. */
async function command(till: Till, group: string, name: string, ...args: string[]) {
  const { db, config } = till.office.api
  const [stdout, stderr]: [string[], string[]] = [[], []]
  const { log, error } = console
  console.log = (line: string) => void stdout.push(line)
  console.error = (line: string) => void stderr.push(line)
  try {
    const code = await billingCommands[`${group} ${name}`]?.run(db, config, args)
    return { code, stdout: `${stdout.join('\n')}\n`, stderr: stderr.length > 0 ? `${stderr.join('\n')}\n` : '' }
  } finally {
    Object.assign(console, { log, error })
  }
}

t.test('events that never came', async (t) => {
  await using till = await openTill()
  const { office, stripe } = till
  const { acts, events } = stripe.world
  const [ended, upgraded, refunded, still] = await Promise.all([
    till.subscriber('dev'),
    till.subscriber('dev'),
    till.subscriber('pro'),
    till.subscriber('pro'),
  ])
  const bought = await office.register()
  acts.payCheckout(await till.checkout(bought, 'dev'))
  const unknown = await office.register()
  acts.payCheckout(await till.checkout(unknown, 'pro'))
  await office.tables.query(
    'delete from billing_customers where account_id = (select id from accounts where handle = $1)',
    [unknown.handle],
  )
  acts.setStatus(ended.subscription, 'canceled')
  acts.setPrice(upgraded.subscription, PRICES.pro)
  acts.refund(refunded.subscription)
  const lost = events.splice(0)

  const { code, stdout, stderr } = await cli(till, 'billing', 'reconcile')
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
  t.equal(await till.tierOf(still), 'pro')

  t.match(await command(till, 'billing', 'reconcile'), { code: 0, stdout: /^6 customers, 0 corrected/ })
  for (const event of lost) t.equal((await till.deliver(event)).status, 200)
  const tiers = await Promise.all([bought, ended, refunded, unknown, upgraded].map(till.tierOf))
  t.same(tiers, ['dev', 'free', 'free', 'pro', 'pro'], 'what comes late after all changes nothing')
})

t.test('an account is not found, or pays twice: named, and left to the operator', async (t) => {
  await using till = await openTill()
  const { acts, customers } = till.stripe.world
  const account = await till.subscriber('dev')
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
  const { code, stdout } = await command(till, 'billing', 'reconcile')
  t.equal(code, 1)
  t.equal(stdout.match(/^UNBOUND +sub_/gm)?.length, 4)
  t.match(stdout, new RegExp(`^DOUBLED +${account.handle} pays for sub_\\w+ and sub_\\w+`, 'm'))
  t.match(stdout, /^1 customers, 1 corrected, 4 unbound, 1 doubled, 0 failed$/m)
  t.equal(await till.tierOf(account), 'pro', 'the better of the two counts')
})

t.test('a subscription whose customer says nothing is known by its own metadata', async (t) => {
  await using till = await openTill()
  const { acts, customers } = till.stripe.world
  const account = await till.office.register()
  const { rows } = await till.office.tables.query('select id from accounts where handle = $1', [account.handle])
  customers.set('cus_moved', { id: 'cus_moved', object: 'customer', metadata: {} })
  acts.subscribe('cus_moved', PRICES.dev, { metadata: { service: 'countersign', account_id: rows[0].id, tier: 'pro' } })
  t.match(await command(till, 'billing', 'reconcile'), {
    code: 0,
    stdout: new RegExp(`${account.handle}: free -> dev`),
  })
})

t.test('many customers, more than one page of them', async (t) => {
  await using till = await openTill()
  const { office, stripe } = till
  const { db, log, now } = office.api
  for (let n = 0; n < 520; n++) {
    const handle = `bulk-${n}`
    await office.tables.query(
      `with made as (insert into accounts (id, handle, tier) values (gen_random_uuid(), $1, 'pro') returning id)
       insert into billing_customers (customer_id, account_id, provider) select 'cus_' || $1, id, 'stripe' from made`,
      [handle],
    )
  }
  const account = await office.register()
  stripe.world.acts.payCheckout(await till.checkout(account, 'dev'))
  const { billing } = office.api
  const result = await reconcile({ db, log, now }, billing!)
  t.equal(result.customers, 521)
  t.equal(result.changes.length, 521, 'tiers that rest on nothing go, and one that was lost is there')
  t.equal(await till.tierOf(account), 'dev')
  const asked = stripe.calls.length
  await reconcile({ db, log, now }, billing!)
  t.ok(stripe.calls.length - asked < 20, 'Stripe is asked about those who may have something, and not about all')
})

t.test('the end of a grace period, of which nobody tells', async (t) => {
  await using till = await openTill()
  const { db, log, now, billing } = till.office.api
  const account = await till.subscriber('pro')
  till.stripe.world.acts.renew(account.subscription, false)
  await till.deliverAll()
  till.office.clock.now += 13.9 * 86_400_000
  t.same((await reconcile({ db, log, now }, billing!)).changes, [])
  till.office.clock.now += 0.2 * 86_400_000
  t.same((await reconcile({ db, log, now }, billing!)).changes, [{ handle: account.handle, from: 'pro', to: 'free' }])
})

t.test('Stripe is away, or is the wrong one: exit 1, and nothing is taken from anybody', async (t) => {
  await using till = await openTill()
  const account = await till.subscriber('pro')
  till.stripe.faults.push({ match: /GET/, how: 'drop before', times: 100 })
  const away = await cli(till, 'billing', 'reconcile')
  t.match(away, { code: 1, stdout: '', stderr: /Stripe does not answer/ })
  till.stripe.faults.length = 0
  const { world } = till.stripe
  const customer = world.customers.get(account.customer)!
  world.customers.clear()
  ;(world.prices as string[]).length = 0
  const wrong = await cli(till, 'billing', 'reconcile')
  t.equal(wrong.code, 1)
  t.equal(await till.tierOf(account), 'pro')
  t.notMatch(`${away.stderr}${wrong.stderr}${wrong.stdout}`, /sk_test|whsec/)
  world.customers.set(customer.id, customer)
})

t.test('simulated subscriptions give nothing once Stripe bills', async (t) => {
  await using till = await openTill()
  const none = { STRIPE_SECRET_KEY: '', STRIPE_WEBHOOK_SECRET: '', STRIPE_PRICE_DEV: '', STRIPE_PRICE_PRO: '' }
  await using before = await till.office.openDesk(none)
  const account = await till.office.register()
  const { body } = await before.call('POST', '/v1/checkout', { key: account.key, body: { tier: 'pro' } })
  await before.call('POST', new URL(body.checkout_url).pathname, {
    body: Buffer.from('action=pay'),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  t.equal((await before.call('GET', '/v1/usage', { key: account.key })).body.tier, 'pro')
  t.match(await command(till, 'billing', 'reconcile'), {
    code: 0,
    stdout: new RegExp(`${account.handle}: pro -> free`),
  })
  t.match(await till.usageOf(account), { tier: 'free', subscription: null })
})

t.test('list, show, and what the operator grants', async (t) => {
  await using till = await openTill()
  const paying = await till.subscriber('dev')
  const given = await till.office.register()
  await till.office.register()
  t.match(await cli(till, 'account', 'tier', given.handle, 'pro'), {
    code: 0,
    stdout: `${given.handle}: pro; granted pro; no subscription\n`,
  })
  t.equal(await till.tierOf(given), 'pro')
  t.match(await command(till, 'account', 'tier', paying.handle, 'pro'), {
    stdout: `${paying.handle}: pro; granted pro; ${paying.subscription} dev active\n`,
  })
  const listed = await command(till, 'billing', 'list')
  t.match(listed, { code: 0, stdout: /^2 accounts$/m })
  t.ok(listed.stdout.includes(paying.handle) && listed.stdout.includes(given.handle))
  t.match(await command(till, 'account', 'tier', paying.handle, 'free'), {
    stdout: /: dev; granted free; sub_\w+ dev active/,
  })
  t.equal(await till.tierOf(paying), 'dev', 'what is paid stays')
  const shown = await command(till, 'billing', 'show', paying.handle)
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
    t.match(await command(till, group, name, ...rest), { code: 1, stderr: 'There is no such account.\n' })
  t.match(await command(till, 'account', 'tier', paying.handle, 'gold'), { code: 2, stderr: /"gold" is not one of/ })
})

t.test('the job: hourly, with Stripe only', async (t) => {
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
