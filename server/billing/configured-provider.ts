// Who bills subscriptions here, as the configuration has it.
import type { Config } from '../config.ts'
import type { Database } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { Logger } from '../telemetry.ts'
import type { BillingProvider } from './provider.ts'
import { openSimulation } from './simulation.ts'

interface Parts {
  config: Config
  db: Database
  log: Logger
  now: () => number
  /** Addresses of simulated pages are made from it. */
  secret: Buffer
}

/** Stripe where it is set up, the simulation in offline mode, and otherwise nobody. */
export async function openBillingProvider(parts: Parts): Promise<BillingProvider | undefined> {
  const { config, log, ...rest } = parts
  if (config.stripe) {
    const { openStripe } = await import('./stripe.ts')
    return openStripe(config.stripe, log)
  }
  return isSimulated(config) ? openSimulation(rest) : undefined
}

/** Half a setup is a mistake and not a wish for the simulation. */
export function isSimulated({ stripe, stripeMissing, paymentMode }: Config): boolean {
  return !stripe && stripeMissing.length === 0 && paymentMode === 'offline'
}

/** Throws AppError `provider_unavailable` where nobody bills. */
export function requireProvider({ billing, config }: { billing: BillingProvider | undefined; config: Config }) {
  if (billing) return billing
  const missing = config.stripeMissing.length > 0 ? `: ${config.stripeMissing.join(', ')} is not set` : ''
  throw new AppError('provider_unavailable', `Subscriptions are not set up here${missing}.`)
}
