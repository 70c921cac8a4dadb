// Payment in USDC on Base: its terms, its payer, and the check of a ledger entry against the chain.
import { isAddress } from 'viem'
import { AppError } from '../../errors.ts'
import { EVM_NETWORKS, type EvmNetwork } from '../../interface/networks.ts'
import type { LedgerEntry } from '../ledger.ts'
import { type EvmAuthorization, evmAuthorization, hexText, readEvmPayment } from '../payload.ts'
import { type Inspection, inspect } from '../startup-checks.ts'
import { evmTerms } from '../x402.ts'
import { checkAuthorization } from './evm-authorization.ts'
import { type EvmReader, openEvmReader, type Usage } from './evm-reader.ts'
import type { Audit, PaymentNetwork } from './payment-network.ts'
import { chainIdOf, isKeySignature, type SignatureChecks } from './signature-checks.ts'

/** Every accepted authorization was valid for less than this. */
const AUDIT_WINDOW_SECONDS = 600

export interface EvmNetworkOptions {
  id: EvmNetwork
  payTo: string
  rpcUrl: string
  /** Whether the operator configured this node. */
  proves: boolean
  signatures: SignatureChecks
}

export function openEvmNetwork({ id, payTo, rpcUrl, proves, signatures }: EvmNetworkOptions): PaymentNetwork {
  const terms = evmTerms(id, payTo)
  const { asset } = EVM_NETWORKS[id].usdc
  const chain = openEvmReader(rpcUrl)

  /** True: signed by the payer's key. False: only a contract can tell. Throws AppError `payment_invalid`. */
  async function checkSignature(payment: EvmAuthorization): Promise<boolean> {
    if (!isKeySignature(payment.signature)) return false
    if (!(await signatures.isSignedByPayer(id, payment))) throw notSigned()
    return true
  }

  async function askContract(payment: EvmAuthorization): Promise<void> {
    const signed = await chain.isSignedByContract(id, payment).catch(() => {
      // The node's error is not passed on: it quotes the signature.
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
    balanceOf: (account) => chain.balance(asset, hexText.parse(account)),
    height: chain.height,
    findSettlement: ({ bound }, intent) => {
      const { payTo, amount } = bound.requirements
      const expected = { ...bound.identity, pay_to: payTo, amount_atomic: amount, valid_before: bound.valid_before }
      return chain.findSettlement(usageOf(expected), intent)
    },
    // The ledger compares hashes as text, so each hash has one form.
    readTransactionId: (text) => (/^0x[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : null),
    audit: (entry) => auditEntry(entry, chain),
    income: async (first, last) =>
      chain.income(asset, hexText.parse(payTo), [hexText.parse(first), hexText.parse(last)]),
    adopt: (kind) => kind !== undefined,
    inspect: () => inspectChain({ id, payTo, proves }, chain),
  }
}

function notSigned() {
  return new AppError('payment_invalid', 'The payment authorization is not signed by its payer.')
}

async function auditEntry(entry: LedgerEntry, chain: EvmReader): Promise<Audit | null> {
  const usage = usageOf(entry)
  if (entry.transaction) {
    const found = await chain.findIn(hexText.parse(entry.transaction), usage)
    return found?.kind === 'paid' ? { agrees: true, logIndex: found.logIndex } : { agrees: false, logIndex: null }
  }
  const found = await chain.findSettlement(usage, {
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
    // An address in mixed case carries a checksum, which shows typing errors.
    ...(isAddress(payTo) || payTo === payTo.toLowerCase()
      ? { verdict: 'right', detail: payTo }
      : { verdict: 'wrong', detail: 'its checksum does not hold', cure: 'copy the address again' }),
  }
  const rpc = await inspect(
    `RPC of ${id}`,
    'check EVM_RPC_URL; without it uncertain settlements stay open',
    async () => {
      const cure = `set EVM_RPC_URL to a node of chain ${chainIdOf(id)}`
      const chainId = await chain.chainId()
      if (chainId !== chainIdOf(id)) return { ok: false, detail: `is chain ${chainId}`, cure }
      if (!(await chain.hasCode(EVM_NETWORKS[id].usdc.asset)))
        return { ok: false, detail: 'has no USDC contract', cure }
      await chain.finality()
      const trust = proves ? '' : '; EVM_RPC_URL is not set, so the facilitator is believed'
      return { ok: true, detail: `answers, chain ${chainId}, knows final blocks${trust}` }
    },
  )
  return [address, rpc]
}

type Expected = Pick<LedgerEntry, 'asset' | 'payer' | 'nonce' | 'pay_to' | 'amount_atomic' | 'valid_before'>

function usageOf({ asset, payer, nonce, pay_to, amount_atomic, valid_before }: Expected): Usage {
  return {
    token: hexText.parse(asset),
    from: hexText.parse(payer),
    nonce: hexText.parse(nonce),
    to: hexText.parse(pay_to.toLowerCase()),
    value: BigInt(amount_atomic),
    validBefore: BigInt(valid_before),
  }
}
