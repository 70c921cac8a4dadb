// Random histories of many accounts: events late, twice, out of order or lost, and failing calls to Stripe. After the last event,
// or a reconciliation, every tier is the one that follows from Stripe's records.

import t from 'tap'
import { reconcile } from '../../server/billing/reconciliation.ts'
import { openStripe } from '../../server/billing/stripe.ts'
import { readConfig } from '../../server/config.ts'
import type { Account } from '../accounts/harness.ts'
import { LONG } from '../long.ts'
import { openStripeHarness } from './harness.ts'
import { PRICES } from './stripe-server.ts'
import type { StripeEvent, World } from './stripe-world.ts'

/** Mulberry32: the same seed gives the same history. */
function randomOf(seed: number) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    below: (count: number) => Math.floor(next() * count),
    chance: (share: number) => next() < share,
    pick: <T>(items: readonly T[]): T => items[Math.floor(next() * items.length)] as T,
  }
}
type Random = ReturnType<typeof randomOf>

/** The tier by Stripe's records, computed without code of the service. No history is long enough to end a grace period. */
function dueTier(world: World, customer: string): string {
  let due = 'free'
  for (const { customer: owner, status, items, latest_invoice } of world.subscriptions.values()) {
    if (owner !== customer || world.customers.get(customer)?.deleted) continue
    const paidBy = world.invoices.get(latest_invoice ?? '')?.paidBy ?? []
    const refunded = paidBy.length > 0 && paidBy.every((charge) => charge.refunded)
    const contested = [...world.disputes.values()].some(
      (dispute) =>
        paidBy.some(({ id }) => id === dispute.charge) && ['needs_response', 'lost'].includes(dispute.status),
    )
    if (!['active', 'trialing', 'past_due'].includes(status) || refunded || contested) continue
    const price = items.data[0]?.price.id
    if (price === PRICES.pro) due = 'pro'
    else if ((price === PRICES.dev || price === PRICES.oldDev) && due === 'free') due = 'dev'
  }
  return due
}

/** One random event in the history of a customer, of those that are possible. */
function happen(world: World, customer: string, random: Random) {
  const { acts, subscriptions } = world
  const own = [...subscriptions.values()].filter((subscription) => subscription.customer === customer)
  const live = own.find(({ status }) => status !== 'canceled')
  if (!live) return void acts.subscribe(customer, random.pick([PRICES.dev, PRICES.pro]))
  const { id, status } = live
  const paid = (world.invoices.get(live.latest_invoice ?? '')?.paidBy.length ?? 0) > 0
  const open = [...world.disputes.values()].find(({ status }) => status === 'needs_response')
  random.pick<() => unknown>([
    () => acts.renew(id, random.chance(0.6)),
    () => (status === 'past_due' ? acts.recover(id) : acts.renew(id, false)),
    () => acts.setPrice(id, random.pick(Object.values(PRICES))),
    () => acts.setStatus(id, random.pick(['active', 'unpaid', 'paused', 'trialing', 'canceled', 'canceled'])),
    () => acts.endWithPeriod(id),
    () => paid && acts.refund(id, random.pick([100, 2900])),
    () => (open ? acts.closeDispute(open.id, random.pick(['won', 'lost'])) : paid && acts.dispute(id)),
  ])()
}

const SEED = 20_261_121
const LIVES = LONG ? 24 : 3
const STEPS = 60

t.test(`${LIVES} random histories of ${STEPS} steps`, async (t) => {
  await using harness = await openStripeHarness()
  const { accountHarness, stripe } = harness
  const { world } = stripe
  const desk = await accountHarness.openApiProcess()
  t.teardown(() => desk[Symbol.asyncDispose]())
  const random = randomOf(SEED)
  const accounts: { account: Account; customer: string }[] = []
  for (let n = 0; n < LIVES; n++) {
    const account = await accountHarness.register()
    await harness.checkout(account, 'dev')
    const customer = [...world.customers.values()].find(({ metadata }) => metadata.handle === account.handle)
    accounts.push({ account, customer: customer!.id })
  }
  const waiting: StripeEvent[] = []
  const seen: StripeEvent[] = []
  const send = async (event: StripeEvent) => {
    const { status } = await harness.deliver(event, { at: random.chance(0.5) ? desk : accountHarness })
    // Stripe repeats an event that was not answered 2xx.
    if (status === 200) seen.push(event)
    else waiting.push(event)
  }
  const wrong = async () => {
    const found: string[] = []
    for (const { account, customer } of accounts) {
      const [tier, due] = [await harness.tierOf(account), dueTier(world, customer)]
      if (tier !== due) found.push(`${tier} in place of ${due}`)
    }
    return found
  }
  const tiers = new Set<string>()
  for (let step = 0; step < STEPS; step++) {
    for (const { customer } of accounts) happen(world, customer, random)
    waiting.push(...world.events.splice(0))
    if (random.chance(0.2)) stripe.faults.push({ match: /GET/, how: '500 before', times: 1 })
    const batch = Array.from({ length: random.below(8) }, () => waiting.splice(random.below(waiting.length), 1)[0])
    const repeats = seen.length > 0 && random.chance(0.5) ? [random.pick(seen)] : []
    const arriving = [...batch.filter((event) => event !== undefined), ...repeats]
    // Concurrently, through both services.
    await Promise.all(arriving.map(send))
    if (step % 20 === 19) {
      stripe.faults.length = 0
      while (waiting.length > 0) await send(waiting.splice(random.below(waiting.length), 1)[0]!)
      t.same(await wrong(), [], `step ${step}: all is delivered`)
    }
    for (const { customer } of accounts) tiers.add(dueTier(world, customer))
  }
  t.same([...tiers].sort(), ['dev', 'free', 'pro'], 'every tier occurred')
  t.ok(seen.length > 50 * LIVES, `${seen.length} deliveries`)

  // From here on no event arrives.
  stripe.faults.length = 0
  const provider = openStripe(readConfig(stripe.env).stripe!, accountHarness.api.log)
  const { db, log, now } = accountHarness.api
  let corrected = 0
  for (let round = 0; round < 4; round++) {
    for (let step = 0; step < 5; step++) for (const { customer } of accounts) happen(world, customer, random)
    const before = (await wrong()).length
    const result = await reconcile({ db, log, now }, provider)
    t.same(await wrong(), [], `round ${round}: reconciled`)
    t.equal(result.changes.length, before, 'the result lists the corrections')
    corrected += before
  }
  t.ok(corrected > 3, `${corrected} corrections`)
  for (const event of world.events.splice(0)) t.equal((await harness.deliver(event)).status, 200)
  t.same(await wrong(), [], 'late events change nothing')
})
