// From "the facilitator says that it settled" to "paid". Where a node is configured, a settlement counts when the chain
// shows that the transaction used this very authorization. Anything short of a success is held against the chain too: a
// facilitator may say "failed" of what it sent a moment ago, and a buyer who hears that signs a second payment.
import { setTimeout as pause } from 'node:timers/promises'
import type { PaymentRequirements } from '@x402/core/types'
import { PRICE } from '../interface/payment.ts'
import type { Logger } from '../telemetry.ts'
import { askToSettle, type FacilitatorCalls } from './answers.ts'
import type { Finding, PaymentNetwork } from './live.ts'
import { within } from './patience.ts'
import type { Facilitator, OfferedPayment, SettlementIntent, SettlementOutcome, SettlementProof } from './x402.ts'

/** Seconds between looks at a settlement in doubt: often at first, when it is likely to turn up. */
const PACE = { first: 2, most: 30, share: 0.25 }
/**
 * Seconds for which a success that the chain does not show is only looked for. A node may be some blocks behind the
 * facilitator's; after this the same settlement is asked for again, which cannot charge twice.
 */
const DENIAL_SECONDS = 30
/** Milliseconds for which a node is waited for before the facilitator's word counts without it. */
const PATIENCE_MS = 5_000
/** Milliseconds between questions to a node that refuses them. */
const RETRY_MS = 500
/** Milliseconds for which a node that failed is asked whether it is there at all. */
const ALIVE_MS = 1_000

export interface SettlingOptions {
  provider: string
  mode: 'testnet' | 'mainnet'
  calls: FacilitatorCalls
  networkOf(id: string): PaymentNetwork
  log: Logger
  /** Unix seconds. */
  now(): number
  patienceMs?: number
}

export function buildSettling(options: SettlingOptions): Pick<Facilitator, 'settle' | 'resolve'> {
  const { provider, mode, calls, networkOf, log, now, patienceMs = PATIENCE_MS } = options

  /** Null when the node says nothing in time. */
  async function lookPatiently(offer: OfferedPayment, intent: SettlementIntent): Promise<Finding | null> {
    const network = networkOf(offer.bound.identity.network)
    const end = Date.now() + patienceMs
    for (let left = patienceMs; left > 0; left = end - Date.now()) {
      try {
        return await within(left, network.look(offer, intent))
      } catch (error) {
        warnUnreadable(network, error)
        await pause(Math.min(RETRY_MS, Math.max(0, end - Date.now())))
      }
    }
    // The facilitator chose which transaction is looked at. A node that is there and fails at that one is not away.
    const height = await within(ALIVE_MS, network.height()).catch(() => null)
    return height === null ? null : { kind: 'waiting', reason: 'chain_unreadable', seconds: PACE.first }
  }

  /** A chain that does not answer has said nothing. */
  async function look(offer: OfferedPayment, intent: SettlementIntent): Promise<Finding> {
    const network = networkOf(offer.bound.identity.network)
    try {
      return await network.look(offer, intent)
    } catch (error) {
      warnUnreadable(network, error)
      return { kind: 'waiting', reason: 'chain_unreadable', seconds: pace(intent) }
    }
  }

  /** The error's message is left out: it may hold the address of the node, which may hold a key. */
  function warnUnreadable(network: PaymentNetwork, error: unknown) {
    const name = error instanceof Error ? error.name : 'unknown'
    log.warn({ event: 'chain_unreadable', network: network.id, error: name })
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
    const { asset, amount } = bound.requirements as unknown as PaymentRequirements
    const { transaction, proof, logIndex } = found
    return {
      kind: 'paid',
      payment: {
        status: 'settled',
        provider,
        mode,
        simulated: false,
        network: network as 'eip155:8453',
        asset,
        currency: PRICE.currency,
        amount_atomic: amount,
        price_usd: PRICE.usd,
        transaction,
        facilitator_fee_usd: null,
        network_fee_usd: null,
      },
      response: { success: true, transaction, network: network as PaymentRequirements['network'], payer, amount },
      proof,
      logIndex,
    }
  }

  /** What a finding means. @param reason why it was looked for */
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
      const terms = bound.requirements as unknown as PaymentRequirements
      const answer = await askToSettle(calls, payload, terms, { payer: identity.payer, readTransactionId })
      const named = { ...intent, transaction: answer.transaction ?? intent.transaction }
      if (answer.kind === 'doubt') return conclude(offer, named, await look(offer, named), answer.reason)
      // A success that was contradicted once is not believed the second time either, whether or not the node answers.
      if (intent.denied_at) return conclude(offer, named, await look(offer, named), 'settlement_not_shown')
      const { transaction } = answer
      if (!proves) return paid(offer, { transaction, proof: 'facilitator', logIndex: null })
      const found = await lookPatiently(offer, named)
      if (found) return conclude(offer, { ...named, denied_at: now() }, found, 'settlement_not_shown')
      // A crash from here to the commit: the next attempt looks, and waits for the node if it still does not answer.
      log.warn({ event: 'settlement_unconfirmed', network: identity.network, transaction })
      return paid(offer, { transaction, proof: 'unconfirmed', logIndex: null })
    },

    async resolve(offer, intent) {
      const found = await look(offer, intent)
      if (found.kind === 'waiting') return unknown(found.reason, found.seconds, intent)
      if (found.kind !== 'open') return conclude(offer, intent, found, 'looked_for')
      return isFreshDenial(intent) ? unknown('settlement_not_shown', pace(intent), intent) : found
    },
  }
}

function unknown(reason: string, seconds: number, intent: SettlementIntent): SettlementOutcome {
  return { kind: 'unknown', reason, retryAfterSeconds: seconds, intent }
}
