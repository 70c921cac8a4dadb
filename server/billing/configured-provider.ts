// The billing provider that the configuration asks for.
import { isLoopback } from '../config/reach.ts'
import type { Config } from '../config.ts'
import type { Database } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { Logger } from '../telemetry.ts'
import type { BillingProvider } from './provider.ts'
import { openSimulation } from './simulation.ts'

type BillingConfig = Pick<Config, 'stripe' | 'stripeMissing' | 'paymentMode' | 'host' | 'offlinePublic'>

interface Parts {
  config: BillingConfig
  db: Database
  log: Logger
  now: () => number
  /** The addresses of simulated pages are derived from it. */
  secret: Buffer
}

/** Stripe where it is set up, else the simulation in offline mode, else undefined. */
export async function openBillingProvider(parts: Parts): Promise<BillingProvider | undefined> {
  const { config, log, ...rest } = parts
  if (config.stripe) {
    const { openStripe } = await import('./stripe.ts')
    return openStripe(config.stripe, log)
  }
  return isSimulated(config) ? openSimulation(rest) : undefined
}

/**
 * A simulated checkout gives every tier for nothing, so it is on this machine only, or where OFFLINE_PUBLIC allows it. False for a
 * partial setup of Stripe too, which is a mistake and does not ask for the simulation.
 */
function isSimulated({ stripe, stripeMissing, paymentMode, host, offlinePublic }: BillingConfig): boolean {
  return !stripe && stripeMissing.length === 0 && paymentMode === 'offline' && (isLoopback(host) || offlinePublic)
}

/** Throws AppError `provider_unavailable` where there is no provider. */
export function requireProvider({
  billing,
  config,
}: {
  billing: BillingProvider | undefined
  config: Pick<Config, 'stripeMissing'>
}): BillingProvider {
  if (billing) return billing
  const missing = config.stripeMissing.length > 0 ? `: ${config.stripeMissing.join(', ')} is not set` : ''
  throw new AppError('provider_unavailable', `Subscriptions are not set up here${missing}.`)
}
