// Buys what one order asks: signs at most one payment at a time, for the pinned terms only, within the budget, and
// sends no payment that is not stored on disk. A signed payment is sent again instead of signing a new one.
import { readRetryAfter } from '../answer.ts'
import { Countersign, CountersignError, type Fetch, type PaymentRequired, type Purchase } from '../client.ts'
import type { Clock } from '../clock.ts'
import type { Capabilities } from '../operations/discovery.ts'
import type { PurchaseResult } from '../result.ts'
import type { Terms, Wallet } from '../wallet.ts'
import type { Budget } from './budget.ts'
import type { Journal, SignedLine } from './journal.ts'
import { isTestNetwork, isUsdc } from './money.ts'
import { inputOf, isWhole, type Order } from './order.ts'
import type { Pace } from './pace.ts'

export type Outcome =
  | { kind: 'completed'; purchase: Purchase<PurchaseResult> }
  /** The service refused, and did not charge unless the money is still counted. */
  | { kind: 'failed'; error: CountersignError; charged: boolean }
  /** No answer about this row: it may be in progress, or was never sent. `isLater`: trying again at once is useless. */
  | { kind: 'unfinished'; error: CountersignError; isLater?: true }

/** The service asks for other terms than those that were agreed on. Nothing was signed for them. */
export class TermsError extends Error {
  override name = 'TermsError'
}

/** The wallet made no payment, so nothing is spent: its node was away, for example. */
class SigningError extends Error {}

export interface BuyerOptions {
  service: string
  wallet: Wallet
  /** The terms that may be signed, as `pinTerms` returned them. */
  terms: Terms
  /** Atomic units of an order, where they are not the amount of the terms. */
  priceOf?: (order: Order) => bigint
  journal: Journal
  budget: Budget
  pace: Pace
  clock: Clock
  /** Milliseconds for one row, waiting for its result included. */
  timeoutMs: number
  /** Only fetches what earlier payments bought, and signs nothing, because the service may ask for other terms now. */
  isFetchOnly?: boolean
  fetch?: Fetch
}

export class Buyer {
  readonly #options: BuyerOptions

  constructor(options: BuyerOptions) {
    this.#options = options
  }

  /**
   * Buys, or fetches what was bought. Throws a BudgetError, before anything is signed, a TermsError and a CapacityError.
   * @param signal aborts the waiting; a payment that was sent stays sent
   */
  async buy(order: Order, signal: AbortSignal): Promise<Outcome> {
    try {
      return await this.#buy(order, signal)
    } catch (cause) {
      if (!(cause instanceof SigningError)) throw cause
      const message = `The wallet could not sign: ${cause.message}`
      return {
        kind: 'unfinished',
        error: new CountersignError({ code: 'signing_failed', message, retryable: true, cause }),
      }
    }
  }

  async #buy(order: Order, signal: AbortSignal): Promise<Outcome> {
    const { journal } = this.#options
    const terms = this.#termsOf(order)
    let earlier = journal.paymentOf(order.id)
    let payment = earlier && this.#isFresh(earlier) ? earlier : undefined
    // Terms of an EVM network are known, so the service need not be asked for them first.
    if (!earlier && terms.network.startsWith('eip155:')) payment = await this.#pay(order, termsOnly(terms), signal)
    for (let signatures = 0; ; ) {
      const outcome = await this.#send(order, payment, signal)
      if (outcome.kind !== 'asked') return this.#settle(order, outcome)
      const { error, required } = outcome
      // The payment that was sent under this key did not count. It must not be sent after its validity has ended.
      const old = payment ?? earlier
      if (old && !(await this.#lapse(old, signal))) return { kind: 'failed', error, charged: true }
      if (this.#options.isFetchOnly || ++signatures > MAX_SIGNATURES) return { kind: 'failed', error, charged: false }
      checkTerms(terms, required)
      payment = await this.#pay(order, required, signal)
      earlier = undefined
    }
  }

  async #send(order: Order, payment: SignedLine | undefined, signal: AbortSignal) {
    const { service, journal, clock, timeoutMs, pace } = this.#options
    // Within the exchange a lack of capacity would count as a broken connection.
    await pace.clear(signal)
    const client = new Countersign({ baseUrl: service, plainFetch: this.#fetchWith(payment, signal), clock })
    try {
      const options = { idempotencyKey: journal.keyOf(order.id), timeoutMs, signal }
      const purchase: Purchase<PurchaseResult> =
        'claims' in order
          ? await client.verifyClaims(inputOf(order), options)
          : await client.verifySource(inputOf(order), options)
      return isWhole(order, purchase) ? ({ kind: 'completed', purchase } as const) : NOT_A_RESULT
    } catch (error) {
      if (!(error instanceof CountersignError)) throw error
      const required = error.status === 402 ? error.paymentRequired : null
      if (required && (!payment || !this.#isFresh(payment))) return { kind: 'asked', error, required } as const
      if (required && payment && this.#options.isFetchOnly) return stillOpen(payment)
      if (required && payment) checkTerms(this.#termsOf(order), required)
      // A proxy may answer with any status. Only the service knows the outcome of the order.
      if (error.status === null || !REFUSED.has(error.status) || error.code === 'unexpected_response')
        return { kind: 'unfinished', error } as const
      // The service asks as if no payment had come, or names no terms: it may still take the one that was sent.
      const isOpen = error.status === 402 && (!required || error.code === 'payment_required')
      if (isOpen) return payment ? stillOpen(payment) : ({ kind: 'unfinished', error } as const)
      return { kind: 'failed', error, charged: !NOT_CHARGED.has(error.status) } as const
    }
  }

  /** Adds the payment to the request, and slows the batch down if the service has no capacity. */
  #fetchWith(payment: SignedLine | undefined, signal: AbortSignal): Fetch {
    const { pace, clock, fetch = globalThis.fetch } = this.#options
    return async (url, init = {}) => {
      await pace.clear(signal)
      const isPaid = payment !== undefined && init.method === 'POST'
      const headers = {
        ...(init.headers as Record<string, string>),
        ...(isPaid && { 'payment-signature': payment.header }),
      }
      const response = await fetch(url, { ...init, headers })
      if (response.status === 429 || response.status === 503)
        pace.slow(readRetryAfter(response, clock.now()) ?? BUSY_PAUSE_MS)
      return response
    }
  }

  async #settle(order: Order, outcome: Outcome): Promise<Outcome> {
    const { journal } = this.#options
    const held = journal.paymentOf(order.id)
    if (outcome.kind === 'failed' && !outcome.charged && held) await this.#release(held, outcome.error.code)
    return outcome
  }

  /** Reserves, signs, and writes the payment down. */
  async #pay(order: Order, required: PaymentRequired, signal: AbortSignal): Promise<SignedLine> {
    const { journal, budget, wallet, clock } = this.#options
    const terms = this.#termsOf(order)
    const atoms = BigInt(terms.amount)
    const offered = required.accepts.find((offer) => isSame(offer, terms)) ?? terms
    checkSignable(offered)
    const name = journal.nameNext(order.id)
    await budget.reserve(name, atoms)
    const { header, validBefore } = await this.#inTime(wallet.sign(required, offered), signal).catch(
      async (cause: Error) => {
        await budget.release(name)
        // The packages explain at length after the first line.
        throw new SigningError(cause.message.split('\n')[0], { cause })
      },
    )
    const valid_before = validBefore ?? Math.ceil(clock.now() / 1000) + BLOCKHASH_SECONDS
    const rows = order.rows && { rows: order.rows }
    return journal.sign({ id: order.id, payment: name, header, atoms: String(atoms), valid_before, ...rows })
  }

  #termsOf(order: Order): Terms {
    const { terms, priceOf } = this.#options
    return priceOf ? { ...terms, amount: String(priceOf(order)) } : terms
  }

  /** A wallet may ask a node that never answers. What is signed too late is not used. */
  #inTime<T>(signing: Promise<T>, signal: AbortSignal): Promise<T> {
    const ended = AbortSignal.any([signal, this.#options.clock.deadline(SIGNING_MS)])
    return new Promise((resolve, reject) => {
      const stop = () => reject(new Error(signal.aborted ? 'interrupted' : 'it took too long'))
      if (ended.aborted) stop()
      ended.addEventListener('abort', stop, { once: true })
      signing.then(resolve, reject).finally(() => ended.removeEventListener('abort', stop))
    })
  }

  async #release(payment: SignedLine, reason: string): Promise<void> {
    // The order matters: a crash between the two statements leaves too much counted, never too little.
    await this.#options.journal.release(payment, reason)
    await this.#options.budget.release(payment.payment)
  }

  /**
   * Whether a payment that the service does not know can be given up: after its validity, plus a margin for different
   * clocks. Waits for that time. False if that time is farther away than the usual validity of a payment.
   */
  async #lapse(payment: SignedLine, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options
    const left = (payment.valid_before + SKEW_SECONDS) * 1000 - clock.now()
    if (left > MAX_LIFE_SECONDS * 1000) return false
    if (left > 0) await clock.sleep(left, signal)
    await this.#release(payment, 'not_known_and_over')
    return true
  }

  /** Whether a payment can still be settled by the time it arrives. */
  #isFresh({ valid_before }: SignedLine): boolean {
    return valid_before * 1000 - this.#options.clock.now() > FRESH_SECONDS * 1000
  }
}

/**
 * The terms that a wallet can pay, checked: USDC, at the published price, and on a test network where the service says that no
 * real money moves. Throws a TermsError.
 * @param published what the service publishes
 */
export function pinTerms(
  required: PaymentRequired,
  wallet: Wallet,
  { priceAtoms, mode }: { priceAtoms: string; mode: Capabilities['payment_mode'] },
): Terms {
  const terms = wallet.choose(required)
  if (!terms) {
    const networks = required.accepts.map(({ network }) => network).join(', ')
    throw new TermsError(`This wallet has no key for the networks on which the service is paid: ${networks}.`)
  }
  const { network, asset, amount, payTo } = terms
  if (!isUsdc(network, asset))
    throw new TermsError(`The service asks for ${asset} on ${network}, which is not USDC there.`)
  if (amount !== priceAtoms)
    throw new TermsError(`The service asks for ${amount} atomic units and publishes a price of ${priceAtoms}.`)
  if (!/^[1-9]\d*$/.test(amount)) throw new TermsError(`The service asks for ${amount}, which is no price.`)
  if (typeof payTo !== 'string' || payTo === '') throw new TermsError('The service names no recipient.')
  if (mode !== 'mainnet' && !isTestNetwork(network))
    throw new TermsError(`The service says that it is in ${mode} mode, and asks for real money on ${network}.`)
  checkSignable(terms)
  return terms
}

/** A signed payment must expire soon, because it counts as spent until then. */
function checkSignable({ maxTimeoutSeconds: life }: Terms): void {
  if (typeof life !== 'number' || !(life > 0 && life <= MAX_LIFE_SECONDS))
    throw new TermsError(
      `The service asks for payments that are good for ${life} seconds: more than ${MAX_LIFE_SECONDS}.`,
    )
}

function checkTerms(pinned: Terms, required: PaymentRequired): void {
  if (required.accepts.some((offer) => isSame(offer, pinned))) return
  const offers = required.accepts.map(
    ({ amount, asset, network, payTo }) => `${amount} of ${asset} on ${network} to ${payTo}`,
  )
  throw new TermsError(`The service now asks for other terms than those agreed on: ${offers.join('; ')}.`)
}

/** Compares the terms that decide about the money. `extra` differs between challenges, for example by a memo. */
function isSame(offer: Terms, pinned: Terms): boolean {
  return (['scheme', 'network', 'asset', 'amount', 'payTo'] as const).every((name) => offer[name] === pinned[name])
}

/**
 * The service does not know the payment, and could accept it until its end; another payment could pay for the row
 * twice.
 */
function stillOpen({ valid_before }: SignedLine): Outcome {
  const end = new Date((valid_before + SKEW_SECONDS) * 1000).toISOString()
  const message = `The service asks for a payment again. A payment on earlier terms can be taken until ${end}.`
  return {
    kind: 'unfinished',
    error: new CountersignError({ code: 'payment_open', message, retryable: true }),
    isLater: true,
  }
}

function termsOnly(terms: Terms): PaymentRequired {
  return { x402Version: 2, accepts: [terms] }
}

const NOT_A_RESULT = {
  kind: 'unfinished',
  error: new CountersignError({
    code: 'unexpected_response',
    message: 'What came is called a result, and is none.',
    retryable: true,
  }),
} as const

/** Statuses of answers about the row itself. All others are about a temporary state. */
const REFUSED: ReadonlySet<number> = new Set([400, 402, 404, 409, 410, 413, 415, 422])
/** After 409 and 410 the money may have been charged for another request, or for a result that is no longer kept. */
const NOT_CHARGED: ReadonlySet<number> = new Set([400, 402, 413, 415, 422])
/** A payment with less time left might expire before it arrives. */
const FRESH_SECONDS = 30
const SKEW_SECONDS = 60
const MAX_LIFE_SECONDS = 900
/** 150 slots, and room for slow ones. */
const BLOCKHASH_SECONDS = 120
const MAX_SIGNATURES = 3
const BUSY_PAUSE_MS = 1000
const SIGNING_MS = 60_000
