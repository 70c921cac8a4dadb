// Payment in USDC on Solana: its terms, its payer, and the state of a signed transaction on the chain.
//
// A transaction is valid as long as its blockhash, about a minute, and lands at most once. Its id is not known before the
// facilitator has signed it, so it is searched by its memo on this service's token account, and identified by its message.
import { getBase58Encoder, getBase64Encoder } from '@solana/kit'
import { AppError } from '../../errors.ts'
import { SOLANA_USDC } from '../../interface/networks.ts'
import { PRICE } from '../../interface/price.ts'
import type { LedgerEntry } from '../ledger.ts'
import { digestOf } from '../payload.ts'
import { type Inspection, inspect } from '../startup-checks.ts'
import { MAX_TIMEOUT_SECONDS, type OfferedPayment, type PaymentRequirements, type SettlementIntent } from '../x402.ts'
import { LOOK_TIMEOUT_MS, NodeError } from './node-calls.ts'
import type { Audit, Finding, PaymentNetwork } from './payment-network.ts'
import { type Depth, type Landed, openSolanaNode, type SolanaNode, TOKEN_ACCOUNT_BYTES } from './solana-node.ts'
import {
  decodePayment,
  isSignedByPayer,
  readSolanaTransaction,
  type SolanaPayment,
  TOKEN_PROGRAM,
  tokenAccountOf,
} from './solana-transaction.ts'

export type SolanaNetworkId = keyof typeof SOLANA_USDC

/** About how long a blockhash is valid; certainty comes from the chain. */
const BLOCKHASH_SECONDS = 90
/** The clocks of payer, chain and service may differ by this, and a final block is behind by as much. */
const CLOCK_MARGIN_SECONDS = 60
/** A payment's transaction has one transfer, so no second request can claim it. */
const ONLY_TRANSFER = 0
const SEARCH_PAGE = 1000
const SEARCH_PAGES = 20

export interface SolanaNetworkOptions {
  id: SolanaNetworkId
  payTo: string
  rpcUrl: string
  /** Whether the operator configured this node. */
  proves: boolean
  /** Milliseconds for one call. */
  callMs?: number
}

export async function openSolanaNetwork(options: SolanaNetworkOptions): Promise<PaymentNetwork> {
  const { id, payTo, rpcUrl, proves, callMs } = options
  const asset = SOLANA_USDC[id]
  const account = await tokenAccountOf(payTo, asset)
  const chain = openSolanaReader(openSolanaNode(rpcUrl, callMs), { owner: payTo, account })
  let feePayer: string | undefined

  function termsFor(requestId: string | null): PaymentRequirements | null {
    if (!feePayer) return null
    return {
      scheme: 'exact',
      network: id,
      amount: PRICE.atomic,
      asset,
      payTo,
      maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
      extra: { feePayer, ...(requestId && { memo: requestId }) },
    }
  }

  return {
    id,
    asset,
    proves,
    termsFor,
    read(payload, requirements) {
      const { payer, messageHash, signature } = readSolanaTransaction(payload.payload)
      const { transaction } = payload.payload
      return {
        payload: { transaction },
        identity: { network: requirements.network, asset: requirements.asset, payer, nonce: messageHash },
        valid_before: Math.floor(Date.now() / 1000) + BLOCKHASH_SECONDS,
        ...(signature && { signature_sha256: digestOf(Buffer.from(signature).toString('hex')) }),
      }
    },
    async identify(payload) {
      const payment = readSolanaTransaction(payload.payload)
      if (payment.mint === asset && (await isSignedByPayer(payment)))
        return { network: id, asset, payer: payment.payer, nonce: payment.messageHash }
      throw notSigned()
    },
    async check({ payload, bound }) {
      const payment = readSolanaTransaction(payload.payload)
      const { mint, destination, amount, memos, isDurable } = payment
      const { amount: price, extra } = bound.requirements
      if (mint !== asset) refuse('it pays in another token')
      if (destination !== account) refuse('it pays another recipient')
      if (amount !== BigInt(price)) refuse(`its amount is not ${price}`)
      if (memos.length !== 1 || memos[0] !== extra?.memo) refuse('its memo is not the one of the terms')
      if (isDurable) refuse('it has a durable nonce')
      if (!(await isSignedByPayer(payment))) throw notSigned()
      return true
    },
    async consult({ payload }, proved) {
      const { blockhash } = readSolanaTransaction(payload.payload)
      // If the node does not answer, the facilitator decides.
      if ((await chain.isValid(blockhash, 'confirmed').catch(() => true)) === false) refuse('its blockhash has expired')
      return proved
    },
    accountOf({ payload }) {
      const { source, payer } = readSolanaTransaction(payload.payload)
      return `${source} ${payer}`
    },
    balanceOf(account) {
      const [source = '', payer = ''] = account.split(' ')
      return chain.balance({ source, payer }, asset)
    },
    height: () => chain.slot('confirmed'),
    findSettlement: (offer, intent) => chain.findSettlement(offer, intent),
    readTransactionId,
    audit: (entry) => chain.audit(entry),
    income: async () => null,
    adopt(kind) {
      const named = kind?.extra?.feePayer
      if (typeof named === 'string') feePayer = named
      return typeof named === 'string'
    },
    inspect: () => inspectChain({ id, payTo, proves, account }, chain),
  }
}

function refuse(reason: string): never {
  throw new AppError('payment_invalid', `The payment transaction was not accepted: ${reason}.`)
}

function notSigned() {
  return new AppError('payment_invalid', 'The payment transaction is not signed by its payer.')
}

/** A transaction id is a signature: 64 bytes, which have one form in base58. */
function readTransactionId(text: string): string | null {
  if (!/^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(text)) return null
  return getBase58Encoder().encode(text).length === 64 ? text : null
}

async function inspectChain(
  { id, payTo, proves, account }: Pick<SolanaNetworkOptions, 'id' | 'payTo' | 'proves'> & { account: string },
  chain: SolanaReader,
) {
  const rpc = await inspect(
    `RPC of ${id}`,
    'check SOLANA_RPC_URL; without it uncertain settlements stay open',
    async () => {
      const genesis = await chain.genesisHash()
      // CAIP-2 uses the first 32 characters.
      const ok = genesis.startsWith(id.slice('solana:'.length))
      const trust = proves ? '' : '; SOLANA_RPC_URL is not set, so the facilitator is believed'
      return { ok, detail: `genesis ${genesis}${trust}`, cure: 'set SOLANA_RPC_URL to a node of that cluster' }
    },
  )
  if (rpc.verdict !== 'right') return [rpc]
  const held: Inspection = await inspect('PAY_TO_SOLANA', 'check SOLANA_RPC_URL', async () => {
    const exists = await chain.exists(account)
    const cure = `create it: spl-token create-account ${SOLANA_USDC[id]} --owner ${payTo} (every payment fails without)`
    return { ok: exists, detail: exists ? `USDC account ${account}` : `has no USDC account (${account})`, cure }
  })
  return [rpc, held]
}

/** Reads one cluster. Every method throws if the node does not answer. @param ours this service's account and its owner */
function openSolanaReader(node: SolanaNode, ours: { owner: string; account: string }) {
  async function findSettlement({ payload, bound }: OfferedPayment, intent: SettlementIntent): Promise<Finding> {
    const { blockhash } = readSolanaTransaction(payload.payload)
    const signal = AbortSignal.timeout(LOOK_TIMEOUT_MS)
    const messageHash = bound.identity.nonce
    const wanted = { memo: memoOf(bound.requirements), messageHash, since: intent.at, signal }
    const named = intent.transaction ? await readTransaction(intent.transaction, wanted, 'confirmed') : null
    const found = named ?? (await search(wanted, 'confirmed'))
    if (found?.kind === 'paid') return found
    if (!found && (await node.isValid(blockhash, 'confirmed', undefined, signal))) return { kind: 'open' }
    const final = await node.slot('finalized', signal)
    // The payer's blockhash was known when the intent was stored. A final block after that time knows it too, so "not valid"
    // at that block means expired.
    const time = await node.blockTime(final, signal)
    if (time < intent.at + CLOCK_MARGIN_SECONDS || (await node.isValid(blockhash, 'finalized', final, signal)))
      return { kind: 'waiting', reason: 'expiry_not_final', seconds: 5 }
    const last = await search(wanted, 'finalized', final)
    return last ?? { kind: 'unpaid', reason: 'transaction_expired' }
  }

  interface Wanted {
    /** Null where it is not known. */
    memo: string | null
    messageHash: string
    /** Unix seconds; the search ends at much older transactions. */
    since: number
    /** Unix seconds; the transaction cannot have landed later. */
    until?: number
    signal: AbortSignal
  }

  /** The transaction of this message, among those of the token account that carry the memo and have the time. */
  async function search(wanted: Wanted, commitment: Depth, atSlot?: number): Promise<Finding | null> {
    const { memo, messageHash, since, until, signal } = wanted
    let before: string | undefined
    for (let page = 0; page < SEARCH_PAGES; page++) {
      const range = {
        limit: SEARCH_PAGE,
        ...(before && { before }),
        ...(atSlot !== undefined && { minContextSlot: atSlot }),
      }
      const entries = await node.signatures(ours.account, commitment, range, signal)
      for (const entry of entries) {
        if (memo !== null && !entry.memo?.includes(memo)) continue
        if (until !== undefined && entry.blockTime !== null && entry.blockTime > until) continue
        const landed = await node.transaction(entry.signature, commitment, signal)
        // One of several nodes behind an address may be behind the one that listed it: that says nothing about the payment.
        if (!landed) throw new NodeError('listed_transaction_unknown')
        const found = judge(entry.signature, landed, messageHash)
        if (found) return found
      }
      const oldest = entries.at(-1)
      if (!oldest || entries.length < SEARCH_PAGE) return null
      if (oldest.blockTime !== null && oldest.blockTime < since - BLOCKHASH_SECONDS - CLOCK_MARGIN_SECONDS) return null
      before = oldest.signature
    }
    throw new Error('too many transactions to search')
  }

  /** What a transaction did, if it has landed and has that message. */
  async function readTransaction(
    id: string,
    { messageHash, signal }: Pick<Wanted, 'messageHash' | 'signal'>,
    commitment: Depth,
  ): Promise<Finding | null> {
    const landed = await node.transaction(id, commitment, signal)
    return landed && judge(id, landed, messageHash)
  }

  /** Null for another message. A transaction that failed can never land again. */
  function judge(id: string, landed: Landed, messageHash: string): Finding | null {
    const payment = readLanded(landed.transaction[0])
    if (payment?.messageHash !== messageHash) return null
    if (landed.meta.err) return { kind: 'unpaid', reason: 'transaction_failed' }
    return received(landed.meta, payment.mint) >= payment.amount
      ? { kind: 'paid', transaction: id, logIndex: ONLY_TRANSFER }
      : { kind: 'unpaid', reason: 'transaction_paid_nothing' }
  }

  /** By how much this service's token account grew. */
  function received({ preTokenBalances, postTokenBalances }: Landed['meta'], mint: string): bigint {
    const sum = (balances: Landed['meta']['preTokenBalances']) =>
      balances
        .filter((balance) => balance.mint === mint && balance.owner === ours.owner)
        .reduce((total, balance) => total + BigInt(balance.uiTokenAmount.amount), 0n)
    return sum(postTokenBalances) - sum(preTokenBalances)
  }

  async function audit(entry: LedgerEntry): Promise<Audit> {
    const look = { messageHash: entry.nonce, signal: AbortSignal.timeout(LOOK_TIMEOUT_MS) }
    const found = entry.transaction
      ? await readTransaction(entry.transaction, look, 'finalized')
      : await search(
          {
            // A payment that had been bound to a request that failed has the memo of that request.
            ...look,
            memo: null,
            since: entry.valid_before - BLOCKHASH_SECONDS,
            until: entry.valid_before + CLOCK_MARGIN_SECONDS,
          },
          'finalized',
        )
    const paid = found?.kind === 'paid'
    return { agrees: paid === (entry.outcome === 'settled'), logIndex: paid ? found.logIndex : null }
  }

  /** What the payer may spend of a token account of this mint; 0 if there is no such account. */
  async function balance({ source, payer }: Record<'source' | 'payer', string>, mint: string): Promise<bigint> {
    const account = await node.account(source)
    return account?.program === TOKEN_PROGRAM ? spendable(account.data, { mint, payer }) : 0n
  }

  return {
    findSettlement,
    audit,
    balance,
    slot: node.slot,
    isValid: node.isValid,
    genesisHash: node.genesisHash,
    exists: async (at: string) => (await node.account(at)) !== null,
  }
}
type SolanaReader = ReturnType<typeof openSolanaReader>

/**
 * The payer chose the account, and its transaction may name that of another. So it counts only for its owner, and for a delegate up to
 * what the owner allowed; nothing of a frozen account can be spent. @param data a token account
 */
function spendable(data: Buffer, { mint, payer }: { mint: string; payer: string }): bigint {
  if (data.length < TOKEN_ACCOUNT_BYTES) return 0n
  const isAt = (offset: number, account: string) =>
    data.subarray(offset, offset + 32).equals(Buffer.from(getBase58Encoder().encode(account)))
  if (!isAt(0, mint) || data[108] !== INITIALIZED) return 0n
  const balance = data.readBigUInt64LE(64)
  if (isAt(32, payer)) return balance
  if (data.readUInt32LE(72) !== 1 || !isAt(76, payer)) return 0n
  const allowed = data.readBigUInt64LE(121)
  if (allowed < balance) return allowed
  return balance
}
const INITIALIZED = 1

/** Null for a transaction of another form: those of other senders must not end the search. */
function readLanded(base64: string): SolanaPayment | null {
  try {
    return decodePayment(getBase64Encoder().encode(base64))
  } catch {
    return null
  }
}

function memoOf({ extra }: PaymentRequirements): string {
  const memo = extra?.memo
  if (typeof memo !== 'string') throw new Error('a Solana payment without memo was accepted')
  return memo
}
