// The payment that a result states.
import { z } from 'zod'
import { evmNetworks, SOLANA_DEVNET, SOLANA_MAINNET } from './networks.ts'
import { decimalUsd } from './scalars.ts'

export const payment = z.strictObject({
  status: z.literal('settled'),
  provider: z.string().min(1).max(64),
  mode: z.enum(['offline', 'testnet', 'mainnet']),
  simulated: z.boolean(),
  network: z.enum([...evmNetworks, SOLANA_MAINNET, SOLANA_DEVNET, 'none']),
  asset: z.string().min(1).max(128),
  currency: z.literal('USDC'),
  amount_atomic: z.string().regex(/^(0|[1-9][0-9]{0,17})$/),
  price_usd: decimalUsd.max(32),
  transaction: z.string().max(512).nullable(),
  facilitator_fee_usd: decimalUsd.max(32).nullable(),
  network_fee_usd: decimalUsd.max(32).nullable(),
})
export type Payment = z.output<typeof payment>
