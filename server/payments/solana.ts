// placeholder until written
import type { PaymentNetwork } from './live.ts'
export async function openSolanaNetwork(_options: {
  id: string
  payTo: string
  rpcUrl: string
}): Promise<PaymentNetwork> {
  throw new Error('not yet')
}
