// What a facilitator's answers mean, and what its silences do. Only a closed set of words leaves this file: a facilitator's
// own messages may quote the payment it was sent, and a payment must not reach a log or a caller.
import { FacilitatorResponseError, FacilitatorTimeoutError } from '@x402/core/server'
import { type PaymentRequirements, SettleError, VerifyError } from '@x402/core/types'
import type { PaymentPayload } from './x402.ts'

/** The two calls of a facilitator, as @x402/core's HTTPFacilitatorClient has them. */
export interface FacilitatorCalls {
  verify(
    payload: PaymentPayload,
    requirements: PaymentRequirements,
  ): Promise<{ isValid: boolean; invalidReason?: string; payer?: string }>
  settle(payload: PaymentPayload, requirements: PaymentRequirements): Promise<SettleAnswer>
}

interface SettleAnswer {
  success: boolean
  errorReason?: string
  transaction: string
  network: string
  payer?: string
}

/** `payer`: whom the facilitator names; null when it names none. */
export type Verified = { kind: 'valid'; payer: string | null } | { kind: 'invalid' | 'unanswered'; reason: string }

export async function askToVerify(
  calls: FacilitatorCalls,
  payload: PaymentPayload,
  requirements: PaymentRequirements,
): Promise<Verified> {
  try {
    const { isValid, invalidReason, payer } = await calls.verify(payload, requirements)
    return isValid === true ? { kind: 'valid', payer: nameOf(payer) } : judge(invalidReason)
  } catch (error) {
    if (error instanceof VerifyError && error.statusCode === 400) return judge(error.invalidReason)
    return { kind: 'unanswered', reason: silenceOf(error) }
  }
}

function judge(reason: string | undefined): Verified {
  return { kind: reason === 'unexpected_verify_error' ? 'unanswered' : 'invalid', reason: wordOf(reason) }
}

/** `done`: the facilitator says that it settled. In `doubt`, the money may have moved or not: only the chain can tell. */
export type Settled = { kind: 'done'; transaction: string } | { kind: 'doubt'; reason: string; transaction?: string }

export interface Expected {
  /** Who pays, in the form of `samePayer`. */
  payer: string
  /** A transaction id in the one form it is kept in; null for text that is none on the payment's network. */
  readTransactionId(text: string): string | null
}

export async function askToSettle(
  calls: FacilitatorCalls,
  payload: PaymentPayload,
  requirements: PaymentRequirements,
  expected: Expected,
): Promise<Settled> {
  try {
    return weigh(await calls.settle(payload, requirements), requirements.network, expected)
  } catch (error) {
    if (error instanceof SettleError)
      return weigh({ ...error, success: false } as SettleAnswer, requirements.network, expected)
    return { kind: 'doubt', reason: silenceOf(error) }
  }
}

function weigh(answer: SettleAnswer, network: string, { payer, readTransactionId }: Expected): Settled {
  const transaction = typeof answer.transaction === 'string' ? readTransactionId(answer.transaction) : null
  const named = nameOf(answer.payer)
  const ofAnother = named !== null && !samePayer(named, payer, network)
  if (answer.success === true && transaction && answer.network === network && !ofAnother)
    return { kind: 'done', transaction }
  const reason = answer.success ? (ofAnother ? 'another_payer' : 'unproved_success') : wordOf(answer.errorReason)
  return { kind: 'doubt', reason, ...(transaction && { transaction }) }
}

/** Whether two texts name one payer: EVM addresses may differ in case. */
export function samePayer(a: string, b: string, network: string): boolean {
  return network.startsWith('eip155:') ? a.toLowerCase() === b.toLowerCase() : a === b
}

function nameOf(payer: unknown): string | null {
  return typeof payer === 'string' && payer !== '' ? payer : null
}

/** A reason code as it came; anything that is not one is not repeated. */
function wordOf(reason: string | undefined): string {
  return reason && /^[a-z][a-z0-9_]{0,99}$/.test(reason) ? reason : 'unnamed_reason'
}

/** Why there is no answer. */
export function silenceOf(error: unknown): string {
  if (error instanceof FacilitatorTimeoutError) return 'no_answer_in_time'
  if (error instanceof FacilitatorResponseError) return 'unreadable_answer'
  if (error instanceof VerifyError) return `http_${error.statusCode}`
  const status = error instanceof Error ? /^Facilitator \w+ failed \((\d{3})\)/.exec(error.message)?.[1] : undefined
  return status ? `http_${status}` : 'connection_failed'
}
