// The interface of a provider that bills subscriptions. There are two providers: Stripe, and the simulation that replaces
// it in offline mode.
import type { PaidTier, Tier } from '../accounts/tiers.ts'
import { AppError } from '../errors.ts'

export const PROVIDERS = ['stripe', 'simulation'] as const
export type ProviderName = (typeof PROVIDERS)[number]

/** The present state of a subscription at the provider. */
export interface ProviderSubscription {
  subscriptionId: string
  /** As the provider names it. */
  status: string
  /** The tier of its price; `free` when the price is not one of this service. */
  tier: Tier
  /** The state of the payment of its latest invoice. */
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
  /** Public address of this service. */
  baseUrl: string
  /** Idempotency key: the same key with the same order returns the same checkout. */
  key: string
}

export interface BilledAccount {
  accountId: string
  handle: string
}

/** Every method throws ProviderError when the provider fails or refuses. */
export interface Provider {
  readonly name: ProviderName
  /** Makes the customer of an account and returns its id; the same idempotency key returns the same customer. */
  createCustomer(account: BilledAccount, key: string): Promise<string>
  /** The account that a customer was made for; null when this service did not make the customer. */
  findAccountId(customerId: string): Promise<string | null>
  /** The customer of a charge; null for a charge without one. */
  findCustomerOfCharge(chargeId: string): Promise<string | null>
  /** All subscriptions of the customer, ended ones included. Throws CustomerGoneError when the customer was deleted. */
  listSubscriptions(customerId: string): Promise<ProviderSubscription[]>
  /** Subscriptions of all customers, at prices of this service, that have not ended. */
  listOpenSubscriptions(): AsyncIterable<{ subscriptionId: string; customerId: string }>
  /** Throws CustomerGoneError. */
  openCheckout(order: CheckoutOrder): Promise<Checkout>
  /** Null when the checkout is not open. Throws CustomerGoneError. @param baseUrl public address of this service */
  findOpenCheckout(id: string, baseUrl: string): Promise<Checkout | null>
  /** Afterwards the checkout cannot be paid. `completed`: it was paid before. */
  closeCheckout(id: string): Promise<'closed' | 'completed'>
  /**
   * A page on which the customer manages the subscription or, with `change`, confirms that change. The change applies to the
   * existing subscription, so there are never two that bill. Throws CustomerGoneError.
   */
  openPortal(order: PortalOrder): Promise<{ url: string; expiresAt: Date | null }>
}

export interface PortalOrder {
  customerId: string
  baseUrl: string
  change?: { subscriptionId: string; tier: PaidTier }
}

export interface StripeProvider extends Provider {
  readonly name: 'stripe'
  /** The event in the body of a webhook call. Throws AppError `invalid_request` unless Stripe signed the body recently. */
  readEvent(body: Buffer, signature: string, nowMs: number): unknown
}

/** What a simulated page shows. */
export interface SimulatedPage {
  kind: 'subscribe' | 'change' | 'manage'
  state: 'open' | 'completed' | 'expired'
  handle: string
  /** The tier that the page sells; null on the page that manages. */
  tier: PaidTier | null
  /** The tier that the account subscribes to now. */
  current: PaidTier | null
}
export const SIMULATED_ACTIONS = ['pay', 'cancel', 'end'] as const
export type SimulatedAction = (typeof SIMULATED_ACTIONS)[number]

export interface Simulation extends Provider {
  readonly name: 'simulation'
  /** Null when the page does not exist or has expired. */
  findPage(token: string): Promise<SimulatedPage | null>
  /** Applies a click, once. Returns the event that Stripe would send; null when nothing changed. */
  act(token: string, action: SimulatedAction): Promise<object | null>
}

export type BillingProvider = StripeProvider | Simulation

/** The provider refused, or gave no answer. */
export class ProviderError extends AppError {
  /** No answer came, so the call may have had its effect. Repeat it with the same idempotency key. */
  readonly uncertain: boolean

  constructor(message: string, options: { uncertain: boolean; cause?: unknown }) {
    super('provider_unavailable', message, { cause: options.cause, headers: { 'retry-after': '10' } })
    this.uncertain = options.uncertain
  }
}

/** The customer was deleted at the provider. */
export class CustomerGoneError extends Error {
  override name = 'CustomerGoneError'
}
