// The span of a call to a facilitator. It names provider and network, and contains nothing of the payment.
import { inSpan } from '../../tracing/spans.ts'
import type { Facilitator, OfferedPayment } from '../x402.ts'

/** Makes the call in its own span. */
export function askTraced<T>(
  { provider }: Pick<Facilitator, 'provider'>,
  call: 'verify' | 'settle' | 'resolve',
  { bound }: OfferedPayment,
  ask: () => Promise<T>,
): Promise<T> {
  const attributes = {
    'countersign.facilitator': provider,
    'countersign.payment.network': bound.identity.network,
  }
  // Offline mode asks no other service.
  return inSpan(`facilitator.${call}`, { kind: provider === 'offline' ? 'internal' : 'client', attributes }, ask)
}
