// Settlement of payments that move money: from the facilitator's answer to a certain outcome. If a node is configured, a
// settlement counts when the chain shows that the transaction used this very authorization. A failure is checked against the
// chain too: a facilitator may report "failed" for a transaction it has just sent, and a buyer who is told so pays twice.
import { setTimeout as pause } from 'node:timers/promises'
import { PRICE, usdOf } from '../../interface/price.ts'
import type { Logger } from '../../telemetry.ts'
import { inSpan } from '../../tracing/spans.ts'
import type { Finding, PaymentNetwork } from '../chains/payment-network.ts'
import { within } from '../timeout.ts'
import type { Facilitator, OfferedPayment, SettlementIntent, SettlementOutcome, SettlementProof } from '../x402.ts'
import { askToSettle, type FacilitatorCalls } from './facilitator-answers.ts'
import { reasonOfSilence } from './watched-upstreams.ts'

/** Seconds between checks of an uncertain settlement: often at first, when it is likely to appear. */
const PACE = { first: 2, most: 30, share: 0.25 }
/**
 * Seconds for which a success that the chain does not show is only looked for, since the node may be some blocks behind the
 * facilitator's. After that the same settlement is requested again, which cannot charge twice.
 */
const DENIAL_SECONDS = 30
/** Milliseconds to wait for the node; after that the facilitator's word counts. */
const CHAIN_TIMEOUT_MS = 5_000
/** Milliseconds between two requests to a node that fails. */
const RETRY_MS = 500
/** Milliseconds to wait for any answer of a node that failed. */
const ALIVE_MS = 1_000

export interface LiveSettlementOptions {
  provider: string
  mode: 'testnet' | 'mainnet'
  calls: FacilitatorCalls
  networkOf(id: string): PaymentNetwork
  log: Logger
  /** Unix seconds. */
  now(): number
  chainTimeoutMs?: number
}

export function buildLiveSettlement(options: LiveSettlementOptions): Pick<Facilitator, 'settle' | 'resolve'> {
  const { provider, mode, calls, networkOf, log, now, chainTimeoutMs = CHAIN_TIMEOUT_MS } = options

  /** Null if the node does not answer in time. */
  async function findWithRetries(offer: OfferedPayment, intent: SettlementIntent): Promise<Finding | null> {
    const network = networkOf(offer.bound.identity.network)
    const end = Date.now() + chainTimeoutMs
    for (let left = chainTimeoutMs; left > 0; left = end - Date.now()) {
      try {
        return await within(left, findTraced(network, offer, intent))
      } catch (error) {
        logUnreadable(network, error)
        await pause(Math.min(RETRY_MS, Math.max(0, end - Date.now())))
      }
    }
    // The facilitator chose the transaction. A node that answers other requests but fails at this one counts as available.
    const height = await within(ALIVE_MS, network.height()).catch(() => null)
    return height === null ? null : { kind: 'waiting', reason: 'chain_unreadable', seconds: PACE.first }
  }

  /** A chain that does not answer proves nothing. */
  async function findSettlement(offer: OfferedPayment, intent: SettlementIntent): Promise<Finding> {
    const network = networkOf(offer.bound.identity.network)
    try {
      return await findTraced(network, offer, intent)
    } catch (error) {
      logUnreadable(network, error)
      return { kind: 'waiting', reason: 'chain_unreadable', seconds: pace(intent) }
    }
  }

  /** Logs no message of the error: it may contain the node's URL, which may contain a key. */
  function logUnreadable(network: PaymentNetwork, error: unknown) {
    const name = error instanceof Error ? error.name : 'unknown'
    // That a node is away is logged once (see watched-upstreams.ts).
    const level = reasonOfSilence(error) === null ? 'warn' : 'debug'
    log[level]({ event: 'chain_unreadable', network: network.id, error: name })
  }

  function pace(intent: SettlementIntent): number {
    if (isFreshDenial(intent)) return now() - (intent.denied_at ?? 0) < 5 ? 1 : PACE.first
    return Math.round(Math.min(PACE.most, Math.max(PACE.first, (now() - intent.at) * PACE.share)))
  }

  function isFreshDenial({ denied_at }: SettlementIntent): boolean {
    return typeof denied_at === 'number' && now() - denied_at < DENIAL_SECONDS
  }

  function paid(
    { bound }: OfferedPayment,
    found: { transaction: string; proof: SettlementProof; logIndex: number | null },
  ): SettlementOutcome {
    const { network, payer } = bound.identity
    const { asset, amount } = bound.requirements
    const { id } = networkOf(network)
    const { transaction, proof, logIndex } = found
    return {
      kind: 'paid',
      payment: {
        status: 'settled',
        provider,
        mode,
        simulated: false,
        network: id,
        asset,
        currency: PRICE.currency,
        amount_atomic: amount,
        price_usd: usdOf(amount),
        transaction,
        facilitator_fee_usd: null,
        network_fee_usd: null,
      },
      response: { success: true, transaction, network: id, payer, amount },
      proof,
      logIndex,
    }
  }

  /** The outcome that follows from a finding. @param reason why the chain was asked */
  function conclude(offer: OfferedPayment, intent: SettlementIntent, found: Finding, reason: string) {
    if (found.kind === 'paid') return paid(offer, { ...found, proof: 'chain' })
    if (found.kind === 'unpaid') return found
    return unknown(reason, found.kind === 'waiting' ? found.seconds : pace(intent), intent)
  }

  return {
    async settle(offer, intent) {
      const { payload, bound } = offer
      const { identity } = bound
      const { proves, readTransactionId } = networkOf(identity.network)
      const terms = bound.requirements
      const answer = await askToSettle(calls, payload, terms, { payer: identity.payer, readTransactionId })
      const named = { ...intent, transaction: answer.transaction ?? intent.transaction }
      if (answer.kind === 'doubt') return conclude(offer, named, await findSettlement(offer, named), answer.reason)
      // After one success that the chain did not show, only the chain counts, even if the node does not answer.
      if (intent.denied_at) return conclude(offer, named, await findSettlement(offer, named), 'settlement_not_shown')
      const { transaction } = answer
      if (!proves) return paid(offer, { transaction, proof: 'facilitator', logIndex: null })
      const found = await findWithRetries(offer, named)
      if (found) return conclude(offer, { ...named, denied_at: now() }, found, 'settlement_not_shown')
      // After a crash from here to the commit, the next attempt asks the chain, and waits for the node if it does not answer.
      log.warn({ event: 'settlement_unconfirmed', network: identity.network, transaction })
      return paid(offer, { transaction, proof: 'unconfirmed', logIndex: null })
    },

    async resolve(offer, intent) {
      const found = await findSettlement(offer, intent)
      if (found.kind === 'waiting') return unknown(found.reason, found.seconds, intent)
      if (found.kind !== 'open') return conclude(offer, intent, found, 'looked_for')
      return isFreshDenial(intent) ? unknown('settlement_not_shown', pace(intent), intent) : found
    },
  }
}

function findTraced(network: PaymentNetwork, offer: OfferedPayment, intent: SettlementIntent): Promise<Finding> {
  const attributes = { 'countersign.payment.network': network.id }
  return inSpan('chain.look', { kind: 'client', attributes }, () => network.findSettlement(offer, intent))
}

function unknown(reason: string, seconds: number, intent: SettlementIntent): SettlementOutcome {
  return { kind: 'unknown', reason, retryAfterSeconds: seconds, intent }
}
