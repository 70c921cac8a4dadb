// Operator commands for tiers and subscriptions: npm run cli -- billing <...>, account tier
import { z } from 'zod'
import { findAccountId, grantTier } from '../accounts/account.ts'
import { TIERS } from '../accounts/tiers.ts'
import type { Config } from '../config.ts'
import { type Database, sql, type Tx, transact } from '../db/pool.ts'
import { deriveSecret, keptSeed } from '../receipts/keys.ts'
import { openLog } from '../telemetry.ts'
import { openBillingProvider, requireProvider } from './configured-provider.ts'
import type { BillingProvider } from './provider.ts'
import { isClean, type Reconciliation, reconcile } from './reconciliation.ts'
import { findBillingStatus, listSubscriptions, updateTier } from './subscriptions.ts'

interface BillingCommand {
  takes?: string[]
  about: string
  /** Returns the exit code: 0 when all is well, 2 for a wrong call or a call that the user did not confirm. */
  run(db: Database, config: Config, call: BillingCall): Promise<number>
}

interface BillingCall {
  args: readonly string[]
  /** Print JSON and nothing else on stdout. */
  json: boolean
  /** Asks a person; true to go on. */
  confirm(question: string): Promise<boolean>
}

export const billingCommands: Record<string, BillingCommand> = {
  'billing list': {
    about: 'List accounts that have a tier or a subscription, with the grant and the subscription behind it.',
    run: async (db, config, { json }) => {
      const provider = await openProvider(db, config)
      const ids = await db.anyFirst(sql.type(z.object({ id: z.string() }))`
        select a.id from accounts a
        where a.tier <> 'free' or a.granted_tier <> 'free'
           or exists (select from billing_customers c join billing_subscriptions s on s.customer_id = c.customer_id
                      where c.account_id = a.id)
        order by a.handle`)
      const found = []
      for (const id of ids) found.push(await findStatus(db, provider, id))
      if (json) printJson(found)
      else console.log([...found.map(describeStatus), `${found.length} accounts`].join('\n'))
      return 0
    },
  },
  'billing show': {
    takes: ['handle'],
    about: 'Show the tier, customers, subscriptions and latest events of one account.',
    run: async (db, config, { args: [handle = ''] }) => {
      const provider = await openProvider(db, config)
      const shown = await transact(db, (tx) => showAccount(tx, provider, handle), { readOnly: true })
      if (shown) printJson(shown)
      else console.error(NO_ACCOUNT)
      return shown ? 0 : 1
    },
  },
  'billing reconcile': {
    about: 'Read every subscription at the provider and correct tiers; exit 1 when something is left to do by hand.',
    run: async (db, config, { json }) => {
      const provider = requireProvider({ config, billing: await openProvider(db, config) })
      // No log: the findings are printed below.
      const result = await reconcile({ db, log: openLog('silent'), now: Date.now }, provider)
      if (json) printJson(result)
      else for (const line of describeReconciliation(result)) console.log(line)
      return isClean(result) ? 0 : 1
    },
  },
  'account tier': {
    takes: ['handle', TIERS.join('|')],
    about:
      'Grant a tier free of charge, or take the grant back with `free`. A subscription to a better tier stays in force. ' +
      'Asks for confirmation, except with --yes.',
    run: async (db, config, { args: [handle = '', wanted = ''], json, confirm }) => {
      const tier = z.enum(TIERS).safeParse(wanted).data
      if (!tier) {
        console.error(`"${wanted}" is not one of ${TIERS.join(', ')}.`)
        return 2
      }
      const known = await transact(db, (tx) => findAccountId(tx, handle), { readOnly: true })
      if (known === null) return refuse(NO_ACCOUNT, 1)
      const question =
        tier === 'free'
          ? `Take the granted tier of ${handle} back? It keeps what it has beyond the limits, and cannot add to it.`
          : `Grant ${handle} the tier ${tier} free of charge?`
      if (!(await confirm(question))) return refuse('Nothing was changed.', 2)
      const provider = await openProvider(db, config)
      const id = await transact(db, async (tx) => {
        const granted = await grantTier(tx, handle, tier)
        if (granted) await updateTier(tx, provider?.name ?? 'stripe', granted, Date.now())
        return granted
      })
      if (!id) return refuse(NO_ACCOUNT, 1)
      const status = await findStatus(db, provider, id)
      if (json) printJson(status)
      else console.log(describeStatus(status))
      return 0
    },
  },
}

const NO_ACCOUNT = 'There is no such account.'

function refuse(message: string, code: number): number {
  console.error(message)
  return code
}

function printJson(value: unknown) {
  console.log(JSON.stringify(value, null, 2))
}

async function openProvider(db: Database, config: Config): Promise<BillingProvider | undefined> {
  const secret = deriveSecret(config.signingSeed ?? keptSeed(config.dataDir), 'simulated checkout')
  return openBillingProvider({ db, config, log: openLog('silent'), now: Date.now, secret })
}

function findStatus(db: Database, provider: BillingProvider | undefined, id: string) {
  return transact(db, (tx) => findBillingStatus(tx, provider?.name, id, Date.now()), { readOnly: true })
}

function describeStatus({
  handle,
  tier,
  granted_tier,
  subscription,
}: Awaited<ReturnType<typeof findBillingStatus>>): string {
  const paid = subscription
    ? `${subscription.subscription_id} ${subscription.tier} ${subscription.status}` +
      `${subscription.payment === 'kept' ? '' : `, ${subscription.payment}`}` +
      `${subscription.cancel_at_period_end ? ', ends with its period' : ''}`
    : 'no subscription'
  return `${handle}: ${tier}; granted ${granted_tier}; ${paid}`
}

async function showAccount(tx: Tx, provider: BillingProvider | undefined, handle: string) {
  const id = await findAccountId(tx, handle)
  if (id === null) return null
  const { subscription: _, ...account } = await findBillingStatus(tx, provider?.name, id, Date.now())
  const customers = await tx.any(sql.type(
    z.object({ customer_id: z.string(), provider: z.string(), gone: z.boolean() }),
  )`
    select customer_id, provider, gone_at is not null gone from billing_customers
    where account_id = ${id} order by created_at`)
  const events = await tx.any(sql.type(
    z.object({ event_id: z.string(), type: z.string(), created_at: z.date(), received_at: z.date() }),
  )`
    select e.event_id, e.type, e.created_at, e.received_at
    from billing_events e join billing_customers c on c.customer_id = e.customer_id
    where c.account_id = ${id} order by e.received_at desc limit 20`)
  const subscriptions = [
    ...(await listSubscriptions(tx, 'stripe', id)),
    ...(await listSubscriptions(tx, 'simulation', id)),
  ]
  return { ...account, customers, subscriptions, events }
}

function describeReconciliation({ customers, changes, unbound, doubled, failed }: Reconciliation): string[] {
  return [
    ...changes.map(({ handle, from, to }) => `CORRECTED ${handle}: ${from} -> ${to}`),
    ...unbound.map((id) => `UNBOUND   ${id} is paid for no account of this service: end or refund it`),
    ...doubled.map(
      ({ handle, subscriptions }) => `DOUBLED   ${handle} pays for ${subscriptions.join(' and ')}: end one of them`,
    ),
    ...failed.map(({ customerId, reason }) => `FAILED    ${customerId}: ${reason}`),
    `${customers} customers, ${changes.length} corrected, ${unbound.length} unbound, ${doubled.length} doubled, ` +
      `${failed.length} failed`,
  ]
}
