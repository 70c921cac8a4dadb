// For hosts of MCP servers, which connect with a client of `@modelcontextprotocol/sdk`: pays for the tool
// `service_verify_source` where a model calls it. The wallet stays in the host; the model never sees a payment.
import type { ClientErrorCode } from '../client.ts'
import { type Clock, systemClock } from '../clock.ts'
import { type CallReference, CountersignError, type PaymentRequired } from '../error.ts'
import { clientFailure, createIdempotencyKey } from '../exchange.ts'

/** A call of a tool, as the clients of the SDKs take it. */
export interface ToolCall {
  name: string
  arguments?: Record<string, unknown>
  _meta?: Record<string, unknown>
}

/** The members of a tool's result that are read here. */
export interface ToolAnswer {
  content?: unknown
  structuredContent?: unknown
  isError?: unknown
  _meta?: Record<string, unknown>
}

export interface Wallet {
  /** As `x402Client` has it: signs one payment for these terms. */
  createPaymentPayload(terms: never): Promise<object>
}

export interface PayOptions {
  wallet: Wallet
  /** How often one request is tried, each time with the same key; default 3. */
  attempts?: number
  /** Milliseconds for the whole purchase; default 180,000. */
  timeoutMs?: number
  signal?: AbortSignal
  clock?: Clock
}

/** The tool that costs money. */
export const PAID_TOOL = 'service_verify_source'

/** Members of `_meta`. */
const KEY = 'service/idempotency-key'
const TOKEN = 'service/recovery-token'
const RETRY_AFTER = 'service/retry-after-seconds'
const PAYMENT = 'x402/payment'

/**
 * Makes a `callTool` that pays. Calls of other tools go through unchanged. A call of the paid tool gets a key, is paid, and is
 * waited for; it returns the tool's last result, which is an error result where the purchase failed. The wallet signs at most
 * once for each call; what is repeated is that one payment under that one key. Throws CountersignError (`network_error`,
 * `deadline_exceeded`, `aborted`), whose `idempotencyKey`, given as the argument `idempotency_key`, goes on with the purchase.
 *
 * @param call sends one call, for example `(params) => client.callTool(params)`
 */
export function payForTools<R extends ToolAnswer>(call: (params: ToolCall) => Promise<R>, options: PayOptions) {
  return (params: ToolCall): Promise<R> =>
    params.name === PAID_TOOL ? new PaidCall(call, params, options).run() : call(params)
}

class PaidCall<R extends ToolAnswer> {
  readonly #call: (params: ToolCall) => Promise<R>
  readonly #params: ToolCall
  readonly #wallet: Wallet
  readonly #attempts: number
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #callerSignal: AbortSignal | undefined
  readonly #key: string

  constructor(call: (params: ToolCall) => Promise<R>, params: ToolCall, options: PayOptions) {
    const { wallet, attempts = 3, timeoutMs = 180_000, signal, clock = systemClock } = options
    this.#call = call
    this.#params = params
    this.#wallet = wallet
    this.#attempts = attempts
    this.#clock = clock
    const deadline = clock.deadline(timeoutMs)
    this.#signal = signal ? AbortSignal.any([signal, deadline]) : deadline
    this.#callerSignal = signal
    const given = params._meta?.[KEY] ?? params.arguments?.idempotency_key
    this.#key = typeof given === 'string' ? given : createIdempotencyKey()
  }

  async run(): Promise<R> {
    const asked = await this.#persist({})
    const terms = termsOf(asked)
    let answer = terms ? await this.#pay(terms) : asked
    while (isPending(answer)) {
      await this.#pause(retryAfterOf(answer) ?? 2)
      const token = answer._meta?.[TOKEN]
      answer = await this.#persist(typeof token === 'string' ? { [TOKEN]: token } : {})
    }
    return answer
  }

  async #pay(terms: PaymentRequired): Promise<R> {
    const payment = await this.#wallet.createPaymentPayload(terms as never)
    return this.#persist({ [PAYMENT]: payment })
  }

  /** Repeats while the connection breaks, or the service says that it cannot answer now. */
  async #persist(meta: Record<string, unknown>): Promise<R> {
    for (let attempt = 1; ; attempt++) {
      this.#checkTime()
      let seconds = 2 ** (attempt - 1)
      try {
        const answer = await this.#send(meta)
        if (!isPassing(answer) || attempt >= this.#attempts) return answer
        seconds = retryAfterOf(answer) ?? seconds
        // A host waits no longer for one call of a tool.
        if (seconds > MAX_PAUSE_S) return answer
      } catch (error) {
        this.#checkTime()
        if (attempt >= this.#attempts)
          throw this.#failure('network_error', 'The call failed. Repeat with the same key to go on.', error)
      }
      await this.#pause(seconds)
    }
  }

  #send(meta: Record<string, unknown>): Promise<R> {
    const { _meta, ...params } = this.#params
    return this.#call({ ...params, _meta: { ..._meta, [KEY]: this.#key, ...meta } })
  }

  async #pause(seconds: number): Promise<void> {
    await this.#clock.sleep(seconds * 1000, this.#signal).catch(() => this.#checkTime())
  }

  #checkTime(): void {
    if (this.#callerSignal?.aborted)
      throw this.#failure('aborted', 'The caller stopped. Repeat with the same key to go on.')
    if (this.#signal.aborted)
      throw this.#failure('deadline_exceeded', 'Not completed in time. Repeat with the same key to go on.')
  }

  #failure(code: ClientErrorCode, message: string, cause?: unknown): CountersignError {
    const reference: CallReference = { idempotencyKey: this.#key, requestId: null, recoveryToken: null }
    return new CountersignError(clientFailure(code, message, cause), reference)
  }
}

/** The error result itself contains a PaymentRequired. */
function termsOf({ isError, structuredContent }: ToolAnswer): PaymentRequired | null {
  const terms = structuredContent as PaymentRequired | undefined
  return isError && Array.isArray(terms?.accepts) && typeof terms.x402Version === 'number' ? terms : null
}

function bodyOf({ structuredContent }: ToolAnswer) {
  return structuredContent as { status?: unknown; error?: { code?: unknown; retryable?: unknown } } | undefined
}

const isPending = (answer: ToolAnswer) => bodyOf(answer)?.status === 'pending'

/** The service refused for a while, which says nothing about the purchase. */
function isPassing(answer: ToolAnswer): boolean {
  return Boolean(answer.isError) && PASSING.has(String(bodyOf(answer)?.error?.code))
}

function retryAfterOf({ _meta }: ToolAnswer): number | null {
  const seconds = _meta?.[RETRY_AFTER]
  return typeof seconds === 'number' && seconds >= 0 ? seconds : null
}

const PASSING: ReadonlySet<string> = new Set([
  'rate_limited',
  'capacity_exceeded',
  'provider_unavailable',
  'internal_error',
])
const MAX_PAUSE_S = 60
