// What this service needs of whoever bills its subscriptions. Two keep this contract: Stripe, and the simulation that
// stands in for it in offline mode.
import type { PaidTier, Tier } from '../accounts/tiers.ts'
import { AppError } from '../errors.ts'

export const PROVIDERS = ['stripe', 'simulation'] as const
export type ProviderName = (typeof PROVIDERS)[number]

/** A subscription as it is at the provider now. */
export interface ProviderSubscription {
  subscriptionId: string
  /** In the provider's words. */
  status: string
  /** Of its price; `free` when the price is none of ours. */
  tier: Tier
  /** What became of the money of its latest invoice. */
  payment: 'kept' | 'refunded' | 'disputed'
  currentPeriodEnd: Date | null
  cancelAtPeriodEnd: boolean
}

export interface Checkout {
  id: string
  url: string
  expiresAt: Date
}

export interface CheckoutOrder {
  customerId: string
  account: BilledAccount
  tier: PaidTier
  expiresAt: Date
  /** Where our own pages are. */
  baseUrl: string
  /** The same key with the same order brings the same checkout. */
  key: string
}

export interface BilledAccount {
  accountId: string
  handle: string
}

/** Every method throws ProviderError when the provider does not do what it was asked. */
export interface Provider {
  readonly name: ProviderName
  /** The customer that stands for an account; the same key brings the same customer. */
  createCustomer(account: BilledAccount, key: string): Promise<string>
  /** The account a customer was made for; null when it is none of ours. */
  findAccountId(customerId: string): Promise<string | null>
  /** Whose charge it is; null when nobody's. */
  findCustomerOfCharge(chargeId: string): Promise<string | null>
  /** All subscriptions the customer ever had. Throws CustomerGoneError when the provider has no such customer any more. */
  listSubscriptions(customerId: string): Promise<ProviderSubscription[]>
  /** Subscriptions at our prices that have not ended, whoever's they are. */
  listSold(): AsyncIterable<{ subscriptionId: string; customerId: string }>
  /** Throws CustomerGoneError. */
  openCheckout(order: CheckoutOrder): Promise<Checkout>
  /** Null when it is not open any more. Throws CustomerGoneError. @param baseUrl where our own pages are */
  findOpenCheckout(id: string, baseUrl: string): Promise<Checkout | null>
  /** From then on nobody can pay by it. `completed`: somebody did before. */
  closeCheckout(id: string): Promise<'closed' | 'completed'>
  /**
   * A page on which the customer manages the subscription or, given a change, confirms this very change of it. The
   * subscription stays the same one, so that there are never two that bill. Throws CustomerGoneError.
   */
  openPortal(order: PortalOrder): Promise<{ url: string; expiresAt: Date | null }>
}

export interface PortalOrder {
  customerId: string
  baseUrl: string
  change?: { subscriptionId: string; tier: PaidTier }
}

/** What a simulated page is about. */
export interface SimulatedPage {
  kind: 'subscribe' | 'change' | 'manage'
  state: 'open' | 'completed' | 'expired'
  handle: string
  /** What would be bought; null on the page that manages. */
  tier: PaidTier | null
  /** What the account subscribes to now. */
  current: PaidTier | null
}
export const SIMULATED_ACTIONS = ['pay', 'cancel', 'end'] as const
export type SimulatedAction = (typeof SIMULATED_ACTIONS)[number]

export interface Simulation extends Provider {
  readonly name: 'simulation'
  /** Null when no page has this token, or it is past its time. */
  findPage(token: string): Promise<SimulatedPage | null>
  /** Does what was clicked, once. Answers the event that Stripe would send; null when nothing came of it. */
  act(token: string, action: SimulatedAction): Promise<object | null>
}

export interface StripeProvider extends Provider {
  readonly name: 'stripe'
  /** The event in the body of a webhook call. Throws AppError `invalid_request` unless Stripe signed the body recently. */
  readEvent(body: Buffer, signature: string, nowMs: number): unknown
}

export type BillingProvider = StripeProvider | Simulation

/** The provider did not do what it was asked, or did not say so. */
export class ProviderError extends AppError {
  /** No answer came: it may have happened all the same, and is repeated under the same key. */
  readonly uncertain: boolean

  constructor(message: string, options: { uncertain: boolean; cause?: unknown }) {
    super('provider_unavailable', message, { cause: options.cause, headers: { 'retry-after': '10' } })
    this.uncertain = options.uncertain
  }
}

/** The provider has no such customer any more: it was deleted there. */
export class CustomerGoneError extends Error {
  override name = 'CustomerGoneError'
}
