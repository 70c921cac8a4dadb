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
  ): Promise<{ isValid: boolean; invalidReason?: string }>
  settle(payload: PaymentPayload, requirements: PaymentRequirements): Promise<SettleAnswer>
}

interface SettleAnswer {
  success: boolean
  errorReason?: string
  transaction: string
  network: string
}

export type Verified = { kind: 'valid' } | { kind: 'invalid' | 'unanswered'; reason: string }

export async function askToVerify(
  calls: FacilitatorCalls,
  payload: PaymentPayload,
  requirements: PaymentRequirements,
): Promise<Verified> {
  try {
    const { isValid, invalidReason } = await calls.verify(payload, requirements)
    return isValid ? { kind: 'valid' } : judge(invalidReason)
  } catch (error) {
    if (error instanceof VerifyError && error.statusCode === 400) return judge(error.invalidReason)
    return { kind: 'unanswered', reason: silenceOf(error) }
  }
}

function judge(reason: string | undefined): Verified {
  return { kind: reason === 'unexpected_verify_error' ? 'unanswered' : 'invalid', reason: wordOf(reason) }
}

/** `done` is the only answer that is believed. In `doubt`, the chain is asked: the money may have moved or not. */
export type Settled = { kind: 'done'; transaction: string } | { kind: 'doubt'; reason: string; transaction?: string }

/** @param isTransaction whether this is what transaction ids look like on the payment's network */
export async function askToSettle(
  calls: FacilitatorCalls,
  payload: PaymentPayload,
  requirements: PaymentRequirements,
  isTransaction: (id: string) => boolean,
): Promise<Settled> {
  try {
    return weigh(await calls.settle(payload, requirements), requirements.network, isTransaction)
  } catch (error) {
    if (error instanceof SettleError)
      return weigh({ ...error, success: false } as SettleAnswer, requirements.network, isTransaction)
    return { kind: 'doubt', reason: silenceOf(error) }
  }
}

function weigh(answer: SettleAnswer, network: string, isTransaction: (id: string) => boolean): Settled {
  const named = typeof answer.transaction === 'string' && isTransaction(answer.transaction)
  if (answer.success && named && answer.network === network) return { kind: 'done', transaction: answer.transaction }
  const reason = answer.success ? 'unproved_success' : wordOf(answer.errorReason)
  return { kind: 'doubt', reason, ...(named && { transaction: answer.transaction }) }
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
