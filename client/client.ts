// Buys verifications. It holds no wallet: the given fetch pays when it meets a 402.
import type { Answer, Refused, Settlement } from './answer.ts'
import { hex256 } from './chain/attestation.ts'
import type { Inclusion } from './chain/merkle.ts'
import { inclusionShape } from './chain/receipt.ts'
import { type Clock, systemClock } from './clock.ts'
import { CountersignError } from './error.ts'
import { clientFailure, createIdempotencyKey, Exchange, type Fetch, type WaitOptions } from './exchange.ts'
import { call } from './operations/call.ts'
import { OperationMethods, PURCHASE } from './operations/operations.ts'
import type { KeyRecord } from './operations/receipt-operations.ts'
import type { ClaimsInput, ClaimsResult, PurchaseResult, VerificationInput, VerificationResult } from './result.ts'
import { integer, list, object, type Shape, text } from './shape.ts'

export type { Settlement } from './answer.ts'
export type { PinnedKey } from './chain/keys.ts'
export type { Clock } from './clock.ts'
export { type ClientErrorCode, CountersignError, type PaymentRequired } from './error.ts'
export { createIdempotencyKey, type Fetch, type WaitOptions } from './exchange.ts'
export type * from './operations/account.ts'
export type * from './operations/call-options.ts'
export type * from './operations/citation-watch.ts'
export type * from './operations/discovery.ts'
export type * from './operations/journal.ts'
export type * from './operations/lease-operations.ts'
export { OPERATIONS, type Operation, type Operations } from './operations/operations.ts'
export type * from './operations/receipt-operations.ts'
export type * from './operations/watchdog.ts'
export type * from './operations/webhook.ts'
export type * from './result.ts'

export interface CountersignOptions {
  /** Where the service is, e.g. `https://verify.example`. */
  baseUrl: string | URL
  /** The paying fetch, such as `wrapFetchWithPayment` makes. Without it a 402 ends the purchase. */
  fetch?: Fetch
  /** The fetch for all other requests. It must not pay. Default: the global fetch. */
  plainFetch?: Fetch
  /** Key of an account, `ctk_...`: a secret. Only operations of the control toolkit send it. */
  apiKey?: string
  clock?: Clock
}

export interface PurchaseOptions extends WaitOptions {
  /** 16 to 128 characters of `A-Z a-z 0-9 _ . : -`, unpredictable. Give the same one to repeat a purchase. */
  idempotencyKey?: string
}

export interface Purchase<R extends PurchaseResult = VerificationResult> {
  /** As received, not verified: verify it with `verifyResult` and a pinned key. */
  result: R
  /** The exact bytes of `result`. Keep these. */
  bytes: Uint8Array
  /** True if this key had paid for the result before. */
  replay: boolean
  requestId: string
  /** A secret: it opens the result. */
  recoveryToken: string | null
  /** The x402 settlement, if the answer had one. A recovered result has none, but it has `payment`. */
  settlement: Settlement | null
  /** Null after `recover`. */
  idempotencyKey: string | null
}

/** An entry of `/v1/keys`, which may serve as a pinned key. */
export type PublishedKey = KeyRecord

export interface ChainHead {
  serial: number
  receipt_hash: string
  tree_size: number
  root_hash: string
  /** C2SP checkpoint; empty before the first receipt. */
  checkpoint: string
  vkey: string
}

const headShape = object({
  serial: integer(0),
  receipt_hash: hex256,
  tree_size: integer(0),
  root_hash: hex256,
  checkpoint: text(),
  vkey: text(),
})
/** Twice the height of any possible tree. */
const MAX_PROOF = 128

/**
 * A client of one service. In addition to the methods here it has one for each other operation, named and typed in
 * `Operations`; each sends one request, never pays, and does not retry.
 */
export class Countersign extends OperationMethods {
  readonly #base: string
  readonly #pay: Fetch | null
  readonly #plain: Fetch
  readonly #clock: Clock

  constructor(options: CountersignOptions) {
    const { baseUrl, fetch: pay, plainFetch = globalThis.fetch, apiKey = null, clock = systemClock } = options
    const base = String(baseUrl).replace(/\/*$/, '/')
    // Wrapped, since a browser's fetch refuses to be called as the method of another object.
    const plain: Fetch = (url, init) => plainFetch(url, init)
    super((operation, input, given) => call({ base, apiKey, fetch: plain, clock }, operation, input, given))
    this.#base = base
    this.#pay = pay ? (url, init) => pay(url, init) : null
    this.#plain = plain
    this.#clock = clock
  }

  /**
   * Buys one verification, or fetches it if this key has paid for it before, and waits until it is completed. The
   * paying fetch is called at most once, and only after the service has said that this key has no payment. Every repeat is
   * sent without payment. Throws CountersignError, which contains the key.
   */
  verifySource(input: VerificationInput, options: PurchaseOptions = {}): Promise<Purchase> {
    return this.#buy<VerificationResult>(PURCHASE.verifySource.path, input, options)
  }

  /** As `verifySource`, for 1 to 10 claims on one page: one payment, one result. */
  verifyClaims(input: ClaimsInput, options: PurchaseOptions = {}): Promise<Purchase<ClaimsResult>> {
    return this.#buy<ClaimsResult>(PURCHASE.verifyClaims.path, input, options)
  }

  async #buy<R extends PurchaseResult>(
    path: string,
    input: VerificationInput | ClaimsInput,
    options: PurchaseOptions,
  ): Promise<Purchase<R>> {
    const idempotencyKey = options.idempotencyKey ?? createIdempotencyKey()
    const exchange = this.#open({ idempotencyKey }, options)
    if (!KEY_FORM.test(idempotencyKey))
      throw exchange.error(clientFailure('invalid_idempotency_key', `Not an idempotency key: 16 to 128 of ${KEY_SET}`))
    const post = this.#post(exchange, path, JSON.stringify(input), idempotencyKey)
    const asked = await exchange.persist(() => post(this.#plain))
    const answer = isUnpaid(asked) && this.#pay ? await payOnce(exchange, post, this.#pay, this.#plain) : asked
    return this.#complete<R>(exchange, answer, () => post(this.#plain))
  }

  /** Fetches a purchase by its recovery token, waiting until it is completed. Never pays. */
  async recover<R extends PurchaseResult = VerificationResult>(
    requestId: string,
    recoveryToken: string,
    options: WaitOptions = {},
  ): Promise<Purchase<R>> {
    const exchange = this.#open({ requestId, recoveryToken }, options)
    const get = () => this.#recover(exchange)
    return this.#complete<R>(exchange, await exchange.persist(get), get)
  }

  /** The keys the service publishes. Compare them with a source independent of the service before pinning any. */
  async keys(options: { signal?: AbortSignal } = {}): Promise<PublishedKey[]> {
    const { keys } = await this.getKeys({}, options)
    if (!Array.isArray(keys)) throw unexpected('No list of keys came.')
    return keys
  }

  /** The end of the chain, as the service states it; `verifyReceipt`, `verifyChain` and `look` check it. */
  async chainHead(options: { signal?: AbortSignal } = {}): Promise<ChainHead> {
    return shaped(headShape, await this.getChainHead({}, options)) as ChainHead
  }

  /** Attestations of consecutive serials, at most 1000; unverified. */
  async chain(from: number, to: number, options: { signal?: AbortSignal } = {}): Promise<unknown[]> {
    const { attestations } = await this.getChain({ from, to }, options)
    if (!Array.isArray(attestations)) throw unexpected('No attestations came.')
    return attestations
  }

  /** Proof that a receipt is in the tree of so many. */
  async inclusion(serial: number, treeSize: number, options: { signal?: AbortSignal } = {}): Promise<Inclusion> {
    const answer = await this.getReceipt({ serial, tree_size: treeSize }, options)
    return shaped(inclusionShape, answer.inclusion) as Inclusion
  }

  /** Proof that the tree of `to` receipts continues the one of `from`: hashes in hex. */
  async consistency(from: number, to: number, options: { signal?: AbortSignal } = {}): Promise<string[]> {
    const { hashes } = await this.getConsistency({ from, to }, options)
    return shaped(list(hex256, MAX_PROOF), hashes) as string[]
  }

  #open(known: Partial<Exchange['reference']>, options: WaitOptions): Exchange {
    return new Exchange(this.#clock, { idempotencyKey: null, requestId: null, recoveryToken: null, ...known }, options)
  }

  #post(exchange: Exchange, path: string, body: string, key: string) {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key }
    const url = this.#base + path.slice(1)
    return (fetch: Fetch) => exchange.send(fetch, url, { method: 'POST', headers, body })
  }

  #recover(exchange: Exchange): Promise<Answer> {
    const { requestId, recoveryToken } = exchange.reference
    const path = PURCHASE.recover.path.replace('{request_id}', encodeURIComponent(String(requestId)))
    const url = this.#base + path.slice(1)
    return exchange.send(this.#plain, url, { headers: { authorization: `Bearer ${recoveryToken}` } })
  }

  /** Waits until a pending purchase ends; `repeat` asks again where there is no recovery token. */
  async #complete<R extends PurchaseResult>(
    exchange: Exchange,
    first: Answer,
    repeat: () => Promise<Answer>,
  ): Promise<Purchase<R>> {
    const { reference } = exchange
    let answer = first
    while (answer.state === 'pending') {
      await exchange.pause(answer)
      const recoverable = reference.requestId !== null && reference.recoveryToken !== null
      answer = await exchange.persist(recoverable ? () => this.#recover(exchange) : repeat)
    }
    if (answer.state === 'refused') throw exchange.error(answer.failure)
    const { bytes, replay, settlement } = answer
    // What the service answers to this body; `verifyResult` checks it.
    const result = answer.result as R
    const { recoveryToken, idempotencyKey } = reference
    return { result, bytes, replay, requestId: result.request_id, recoveryToken, settlement, idempotencyKey }
  }
}

function shaped(shape: Shape, value: unknown): unknown {
  const wrong = shape(value, '')
  if (wrong) throw unexpected(`What came is not what was asked for: ${wrong}.`)
  return value
}

/** The service's answer is wrong, so a repeat would get the same answer. */
function unexpected(message: string): CountersignError {
  return new CountersignError({ ...clientFailure('unexpected_response', message), retryable: false })
}

/**
 * The one call of the paying fetch. An x402 fetch signs a new authorization at every 402. Once it may have sent one, all
 * further requests go without it. If the service then knows of no payment, the signed one may still arrive: the caller
 * decides whether to sign another under the same key.
 */
async function payOnce(exchange: Exchange, post: (fetch: Fetch) => Promise<Answer>, pay: Fetch, plain: Fetch) {
  const paid = await post(pay)
  if (paid.state !== 'refused' || !paid.passing) return paid
  await exchange.pause(paid)
  const repeated = await exchange.persist(() => post(plain))
  if (!isUnpaid(repeated)) return repeated
  const failure = clientFailure(
    'payment_unresolved',
    'The paying fetch failed, and the service knows of no payment. Repeat with the same key to try again.',
    paid.failure.cause ?? paid.failure,
  )
  return { ...repeated, failure: { ...repeated.failure, ...failure } }
}

function isUnpaid(answer: Answer): answer is Refused {
  return answer.state === 'refused' && answer.failure.status === 402
}

const KEY_SET = 'A-Z a-z 0-9 _ . : -'
const KEY_FORM = /^[A-Za-z0-9_.:-]{16,128}$/
