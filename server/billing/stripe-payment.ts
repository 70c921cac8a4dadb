// What became of the money that a subscription's present period was paid with.
import type Stripe from 'stripe'
import { isLive } from './entitlement.ts'
import type { ProviderSubscription } from './provider.ts'

/** Disputes in which the money is taken from us until, or unless, they are won. Inquiries take nothing. */
const WITHDRAWING = ['needs_response', 'under_review', 'appeal_needs_response', 'appeal_under_review', 'lost']

/**
 * Of the latest invoice: `refunded` when everything that was paid for it went back, `disputed` when any of it is contested
 * or lost. An invoice that nothing was paid for yet took no money that could go back.
 */
export async function findPaymentState(
  stripe: Stripe,
  subscription: Stripe.Subscription,
): Promise<ProviderSubscription['payment']> {
  const { latest_invoice: latest } = subscription
  if (!isLive(subscription) || latest === null) return 'kept'
  const charges = await listCharges(stripe, typeof latest === 'string' ? latest : latest.id)
  for (const { id, disputed } of charges) if (disputed && (await isWithdrawn(stripe, id))) return 'disputed'
  return charges.length > 0 && charges.every(({ refunded }) => refunded) ? 'refunded' : 'kept'
}

async function listCharges(stripe: Stripe, invoice: string): Promise<Stripe.Charge[]> {
  const payments = stripe.invoicePayments.list({
    invoice,
    status: 'paid',
    limit: 100,
    // Four levels, which is as deep as Stripe goes.
    expand: ['data.payment.charge', 'data.payment.payment_intent.latest_charge'],
  })
  const charges: Stripe.Charge[] = []
  for await (const { payment } of payments) {
    const { charge, payment_intent: intent } = payment
    const paidBy = charge ?? (typeof intent === 'object' ? intent.latest_charge : null)
    if (typeof paidBy === 'object' && paidBy) charges.push(paidBy)
  }
  return charges
}

async function isWithdrawn(stripe: Stripe, charge: string): Promise<boolean> {
  for await (const { status } of stripe.disputes.list({ charge, limit: 100 }))
    if (WITHDRAWING.includes(status)) return true
  return false
}
