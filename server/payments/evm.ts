// USDC on Base: what is asked for, whose payment one is, and how an entry of the ledger is checked.
import { type Address, type Hash, type Hex, isAddress } from 'viem'
import { AppError } from '../errors.ts'
import { checkAuthorization } from './authorization.ts'
import { type EvmReader, openEvmReader, type Usage } from './evm-reader.ts'
import { type Inspection, inspect } from './inspection.ts'
import type { LedgerEntry } from './ledger.ts'
import type { PaymentNetwork } from './live.ts'
import { chainIdOf, type Signers } from './signers.ts'
import {
  EVM_USDC,
  type EvmAuthorization,
  type EvmNetwork,
  evmAuthorization,
  evmTerms,
  type OfferedPayment,
  readEvmPayment,
} from './x402.ts'

/** No authorization was accepted that was valid for longer than this. */
const AUDIT_WINDOW_SECONDS = 600

export interface EvmNetworkOptions {
  id: EvmNetwork
  payTo: string
  rpcUrl: string
  signers: Signers
}

export function openEvmNetwork({ id, payTo, rpcUrl, signers }: EvmNetworkOptions): PaymentNetwork {
  const terms = evmTerms(id, payTo)
  const chain = openEvmReader(rpcUrl)
  return {
    id,
    termsFor: () => terms,
    read: readEvmPayment,
    async identify(payload) {
      const { identity } = readEvmPayment(payload, terms)
      const payment = evmAuthorization.parse(payload.payload)
      if ((await signers.isSignedByPayer(id, payment)) || (await askContract(id, payment, chain))) return identity
      throw new AppError('payment_invalid', 'The payment authorization is not signed by its payer.')
    },
    async check(offer, nowSeconds) {
      checkAuthorization(offer, nowSeconds)
    },
    height: chain.height,
    look: (offer, intent) => chain.look(usageOf(offer), intent),
    isTransaction: (transaction) => /^0x[0-9a-f]{64}$/i.test(transaction),
    audit: (entry) => auditEntry(entry, chain),
    income: (first, last) => chain.income(EVM_USDC[id].asset, payTo as Address, [first as Hash, last as Hash]),
    adopt: (kind) => kind !== undefined,
    inspect: () => inspectChain(id, payTo, chain),
  }
}

/** What the node says when it cannot tell is not passed on: it quotes the signature it was asked about. */
async function askContract(id: EvmNetwork, payment: EvmAuthorization, chain: EvmReader): Promise<boolean> {
  try {
    return await chain.isSignedByContract(id, payment)
  } catch {
    throw new AppError('provider_unavailable', 'The signature of a contract wallet cannot be checked right now.')
  }
}

async function auditEntry(entry: LedgerEntry, chain: EvmReader): Promise<boolean | null> {
  const usage: Usage = {
    token: entry.asset as Address,
    from: entry.payer as Address,
    nonce: entry.nonce as Hex,
    to: entry.pay_to.toLowerCase() as Address,
    value: BigInt(entry.amount_atomic),
    validBefore: BigInt(entry.valid_before),
  }
  if (entry.transaction) return (await chain.findIn(entry.transaction as Hash, usage))?.kind === 'paid'
  const found = await chain.look(usage, {
    at: entry.valid_before - AUDIT_WINDOW_SECONDS,
    block: null,
    transaction: null,
  })
  return found.kind === 'open' || found.kind === 'waiting' ? null : found.kind === 'unpaid'
}

async function inspectChain(id: EvmNetwork, payTo: string, chain: EvmReader): Promise<Inspection[]> {
  const address: Inspection = {
    subject: 'PAY_TO_EVM',
    // Mixed case carries a checksum, which a mistyped address does not pass.
    ...(isAddress(payTo) || payTo === payTo.toLowerCase()
      ? { verdict: 'right', detail: payTo }
      : { verdict: 'wrong', detail: 'its checksum does not hold', cure: 'copy the address again' }),
  }
  const rpc = await inspect(
    `RPC of ${id}`,
    'check EVM_RPC_URL; without it settlements in doubt stay open',
    async () => {
      const cure = `set EVM_RPC_URL to a node of chain ${chainIdOf(id)}`
      const chainId = await chain.chainId()
      if (chainId !== chainIdOf(id)) return { ok: false, detail: `is chain ${chainId}`, cure }
      if (!(await chain.hasCode(EVM_USDC[id].asset))) return { ok: false, detail: 'has no USDC contract', cure }
      await chain.finality()
      return { ok: true, detail: `answers, chain ${chainId}, knows final blocks` }
    },
  )
  return [address, rpc]
}

function usageOf({ bound }: OfferedPayment): Usage {
  const { asset, payer, nonce } = bound.identity
  const { payTo, amount } = bound.requirements as { payTo: string; amount: string }
  return {
    token: asset as Address,
    from: payer as Address,
    nonce: nonce as Hex,
    to: payTo.toLowerCase() as Address,
    value: BigInt(amount),
    validBefore: BigInt(bound.valid_before),
  }
}
