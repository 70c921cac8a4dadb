// The state of the payment for the current period of a subscription at Stripe.
import type Stripe from 'stripe'
import { isLive } from './entitlement.ts'
import type { ProviderSubscription } from './provider.ts'

/** Statuses of disputes in which Stripe has withdrawn the money. An inquiry withdraws nothing. */
const WITHDRAWING = ['needs_response', 'under_review', 'appeal_needs_response', 'appeal_under_review', 'lost']

/**
 * `refunded` when all charges of the latest invoice were refunded, `disputed` when any of them is disputed or lost. An invoice
 * without a paid charge counts as `kept`: no money could go back.
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
    // Four levels: the deepest that Stripe expands.
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
