// The Solana networks, and the payment that a result states.
import { z } from 'zod'
import { decimalUsd } from './scalars.ts'

/** CAIP-2 names of the Solana networks: the first 32 characters of their genesis hashes. */
export const SOLANA_MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'
export const SOLANA_DEVNET = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'

export const payment = z.strictObject({
  status: z.literal('settled'),
  provider: z.string().min(1).max(64),
  mode: z.enum(['offline', 'testnet', 'mainnet']),
  simulated: z.boolean(),
  network: z.enum(['eip155:8453', 'eip155:84532', SOLANA_MAINNET, SOLANA_DEVNET, 'none']),
  asset: z.string().min(1).max(128),
  currency: z.literal('USDC'),
  amount_atomic: z.string().regex(/^(0|[1-9][0-9]{0,17})$/),
  price_usd: decimalUsd.max(32),
  transaction: z.string().max(512).nullable(),
  facilitator_fee_usd: decimalUsd.max(32).nullable(),
  network_fee_usd: decimalUsd.max(32).nullable(),
})
export type Payment = z.output<typeof payment>
