// The calls of a facilitator over HTTP, as the protocol's version 2 has them. The client of @x402/core is not used: it reads answers of
// any length, follows redirects, and prints words of the facilitator, which may quote a payment.
import { setTimeout as sleep } from 'node:timers/promises'
import { FacilitatorResponseError, FacilitatorTimeoutError } from '@x402/core/server'
import {
  type PaymentRequirements,
  SettleError,
  type SettleResponse,
  VerifyError,
  type VerifyResponse,
} from '@x402/core/types'
import { z } from 'zod'
import { readBody, TooLongError } from '../../../client/bytes.ts'
import type { PaymentPayload } from '../x402.ts'
import type { FacilitatorCalls } from './facilitator-answers.ts'

/** Far more than the longest list of networks. */
const MAX_ANSWER_BYTES = 1_048_576
/** Of /supported, while the facilitator answers 429. */
const TRIES = 3
const PAUSE_MS = 1000

const word = z
  .string()
  .nullish()
  .transform((value) => value ?? undefined)
const verification = z.object({ isValid: z.boolean(), invalidReason: word, payer: word })
const settlement = z.object({
  success: z.boolean(),
  errorReason: word,
  transaction: z.string(),
  network: z.string(),
  payer: word,
})
const support = z.object({
  kinds: z.array(
    z.object({
      x402Version: z.number(),
      scheme: z.string(),
      network: z.string(),
      extra: z.record(z.string(), z.unknown()).optional().catch(undefined),
    }),
  ),
})

export interface FacilitatorClient extends FacilitatorCalls {
  getSupported(): Promise<z.output<typeof support>>
}

type Call = 'verify' | 'settle' | 'supported'

export interface ClientOptions {
  url: string
  /** Milliseconds for a whole call. */
  timeoutMs: number
  /** Headers with credentials, by call. */
  authorize?: (() => Promise<Record<Call, Record<string, string>>>) | undefined
  /** Milliseconds before /supported is asked again. */
  pauseMs?: number
}

/**
 * Every method throws FacilitatorTimeoutError, FacilitatorResponseError for an answer that is too long or of another form, and an Error
 * with the status for another answer that is no success. `verify` and `settle` throw VerifyError and SettleError where it is about the
 * payment.
 */
export function openFacilitatorClient(options: ClientOptions): FacilitatorClient {
  const { pauseMs = PAUSE_MS } = options
  return {
    async verify(payload, requirements) {
      const { status, ok, said } = await ask(options, 'verify', bodyOf(payload, requirements))
      if (ok) return readAs(verification, said, 'verify')
      if (isAbout<VerifyResponse>(said, 'isValid')) throw new VerifyError(status, said)
      throw failed('verify', status)
    },
    async settle(payload, requirements) {
      const { status, ok, said } = await ask(options, 'settle', bodyOf(payload, requirements))
      if (ok) return readAs(settlement, said, 'settle')
      if (isAbout<SettleResponse>(said, 'success')) throw new SettleError(status, said)
      throw failed('settle', status)
    },
    async getSupported() {
      for (let tries = 1; ; tries++) {
        const { status, ok, said } = await ask(options, 'supported')
        if (ok) return readAs(support, said, 'supported')
        if (status !== 429 || tries === TRIES) throw failed('supported', status)
        await sleep(pauseMs * tries)
      }
    },
  }
}

/** What the facilitator said: JSON, or undefined for other text. */
async function ask({ url, timeoutMs, authorize }: ClientOptions, call: Call, body?: string) {
  const credentials = (await authorize?.())?.[call]
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const answer = await fetch(`${url.replace(/\/$/, '')}/${call}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...credentials },
      ...(body !== undefined && { body }),
      // A redirect would carry the payment to an address that the operator has not chosen.
      redirect: 'manual',
      signal,
    })
    const bytes = await readBody(answer, MAX_ANSWER_BYTES)
    return { status: answer.status, ok: answer.ok, said: parse(new TextDecoder().decode(bytes)) }
  } catch (error) {
    if (signal.aborted) throw new FacilitatorTimeoutError(call, timeoutMs)
    if (error instanceof TooLongError) throw new FacilitatorResponseError(`The answer to ${call} is too long.`)
    throw error
  }
}

function bodyOf(paymentPayload: PaymentPayload, paymentRequirements: PaymentRequirements): string {
  return JSON.stringify({ x402Version: paymentPayload.x402Version, paymentPayload, paymentRequirements })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function readAs<T>(shape: z.ZodType<T>, said: unknown, call: Call): T {
  const read = shape.safeParse(said)
  if (!read.success) throw new FacilitatorResponseError(`The answer to ${call} is of another form.`)
  return read.data
}

/** Whether a refusal is of the form for one payment. Its other members are judged where they are used. */
function isAbout<Said>(said: unknown, member: keyof Said): said is Said {
  return typeof said === 'object' && said !== null && member in said
}

/** The words are read in `reasonOfNoAnswer`. */
function failed(call: Call, status: number): Error {
  return new Error(`Facilitator ${call} failed (${status})`)
}
