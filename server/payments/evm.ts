// USDC on Base: what is asked for, whose payment one is, and how an entry of the ledger is checked.
import { type Address, type Hash, type Hex, isAddress } from 'viem'
import { AppError } from '../errors.ts'
import { checkAuthorization } from './evm-authorization.ts'
import { type EvmReader, openEvmReader, type Usage } from './evm-reader.ts'
import type { LedgerEntry } from './ledger.ts'
import type { Audit, PaymentNetwork } from './live-facilitator.ts'
import { type EvmAuthorization, evmAuthorization, readEvmPayment } from './payload.ts'
import { chainIdOf, isKeySignature, type Signers } from './signature-checks.ts'
import { type Inspection, inspect } from './startup-checks.ts'
import { EVM_USDC, type EvmNetwork, evmTerms, type OfferedPayment } from './x402.ts'

/** No authorization was accepted that was valid for longer than this. */
const AUDIT_WINDOW_SECONDS = 600

export interface EvmNetworkOptions {
  id: EvmNetwork
  payTo: string
  rpcUrl: string
  /** Whether the operator named this node. */
  proves: boolean
  signers: Signers
}

export function openEvmNetwork({ id, payTo, rpcUrl, proves, signers }: EvmNetworkOptions): PaymentNetwork {
  const terms = evmTerms(id, payTo)
  const { asset } = EVM_USDC[id]
  const chain = openEvmReader(rpcUrl)

  /** True: signed by the payer's key. False: only a contract can say. Throws AppError `payment_invalid`. */
  async function checkSignature(payment: EvmAuthorization): Promise<boolean> {
    if (!isKeySignature(payment.signature)) return false
    if (!(await signers.isSignedByPayer(id, payment))) throw notSigned()
    return true
  }

  async function askContract(payment: EvmAuthorization): Promise<void> {
    const signed = await chain.isSignedByContract(id, payment).catch(() => {
      // What the node says when it cannot tell is not passed on: it quotes the signature it was asked about.
      throw new AppError('provider_unavailable', 'The signature of a contract wallet cannot be checked right now.')
    })
    if (!signed) throw notSigned()
  }

  return {
    id,
    asset,
    proves,
    termsFor: () => terms,
    read: readEvmPayment,
    async identify(payload, calls) {
      const { identity } = readEvmPayment(payload, terms)
      const payment = evmAuthorization.parse(payload.payload)
      if (!(await checkSignature(payment))) await calls(() => askContract(payment))
      return identity
    },
    check: async (offer, nowSeconds) => checkSignature(checkAuthorization(offer, nowSeconds)),
    async consult({ payload }, proved) {
      if (proved || !proves) return proved
      await askContract(evmAuthorization.parse(payload.payload))
      return true
    },
    accountOf: ({ bound }) => bound.identity.payer,
    balanceOf: (account) => chain.balance(asset, account as Address),
    height: chain.height,
    look: (offer, intent) => chain.look(usageOf(offer), intent),
    // Hashes are text to the ledger, and one hash must not be two texts.
    readTransactionId: (text) => (/^0x[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : null),
    audit: (entry) => auditEntry(entry, chain),
    income: (first, last) => chain.income(asset, payTo as Address, [first as Hash, last as Hash]),
    adopt: (kind) => kind !== undefined,
    inspect: () => inspectChain({ id, payTo, proves }, chain),
  }
}

function notSigned() {
  return new AppError('payment_invalid', 'The payment authorization is not signed by its payer.')
}

async function auditEntry(entry: LedgerEntry, chain: EvmReader): Promise<Audit | null> {
  const usage: Usage = {
    token: entry.asset as Address,
    from: entry.payer as Address,
    nonce: entry.nonce as Hex,
    to: entry.pay_to.toLowerCase() as Address,
    value: BigInt(entry.amount_atomic),
    validBefore: BigInt(entry.valid_before),
  }
  if (entry.transaction) {
    const found = await chain.findIn(entry.transaction as Hash, usage)
    return found?.kind === 'paid' ? { agrees: true, logIndex: found.logIndex } : { agrees: false, logIndex: null }
  }
  const found = await chain.look(usage, {
    at: entry.valid_before - AUDIT_WINDOW_SECONDS,
    block: null,
    transaction: null,
  })
  if (found.kind === 'open' || found.kind === 'waiting') return null
  return { agrees: found.kind === 'unpaid', logIndex: null }
}

async function inspectChain(
  { id, payTo, proves }: Pick<EvmNetworkOptions, 'id' | 'payTo' | 'proves'>,
  chain: EvmReader,
): Promise<Inspection[]> {
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
      const trust = proves ? '' : '; EVM_RPC_URL is not set, so the facilitator is believed'
      return { ok: true, detail: `answers, chain ${chainId}, knows final blocks${trust}` }
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
