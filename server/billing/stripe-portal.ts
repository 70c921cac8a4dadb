// The configuration of Stripe's customer portal for this service: change between the two plans, end the subscription with its
// period, manage cards and invoices. It is made once and found again by a mark in its metadata. So an operator sets up nothing by
// hand, and the portal of other business in the same Stripe account stays unchanged.
import { createHash } from 'node:crypto'
import type Stripe from 'stripe'
import type { StripeSettings } from '../config.ts'

type Prices = StripeSettings['prices']

/** The id of the configuration that sells these prices. */
export async function findPortalConfiguration(stripe: Stripe, prices: Prices): Promise<string> {
  const sold = [prices.dev[0], prices.pro[0]]
  const mark = createHash('sha256').update(sold.join(' ')).digest('hex').slice(0, 32)
  for await (const { id, metadata } of stripe.billingPortal.configurations.list({ active: true, limit: 100 }))
    if (metadata?.countersign === mark) return id
  const products = await listProducts(stripe, sold)
  const made = await stripe.billingPortal.configurations.create({
    metadata: { countersign: mark },
    features: {
      subscription_update: {
        enabled: true,
        default_allowed_updates: ['price'],
        // The difference is charged or credited when the change is confirmed, not at the end of the period.
        proration_behavior: 'always_invoice',
        products,
      },
      subscription_cancel: { enabled: true, mode: 'at_period_end' },
      payment_method_update: { enabled: true },
      invoice_history: { enabled: true },
    },
  })
  return made.id
}

/** Prices by product: both plans may be prices of one product. */
async function listProducts(stripe: Stripe, sold: readonly string[]) {
  const byProduct = new Map<string, string[]>()
  for (const id of sold) {
    const { product } = await stripe.prices.retrieve(id)
    const key = typeof product === 'string' ? product : product.id
    byProduct.set(key, [...(byProduct.get(key) ?? []), id])
  }
  return [...byProduct].map(([product, prices]) => ({ product, prices }))
}
