// The meaning of a facilitator's answers, and of no answer. Only reason codes leave this file: a facilitator's messages may
// quote the payment, and a payment must not reach a log or a caller.
import { FacilitatorResponseError, FacilitatorTimeoutError } from '@x402/core/server'
import { type PaymentRequirements, SettleError, VerifyError } from '@x402/core/types'
import type { PaymentPayload } from '../x402.ts'

/** The two calls of a facilitator about a payment. Answers that are no success may have members of any type. */
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

/** `payer`: the payer that the facilitator names, or null. */
export type Verified = { kind: 'valid'; payer: string | null } | { kind: 'invalid' | 'unanswered'; reason: string }

export async function askToVerify(
  calls: FacilitatorCalls,
  payload: PaymentPayload,
  requirements: PaymentRequirements,
): Promise<Verified> {
  try {
    const { isValid, invalidReason, payer } = await calls.verify(payload, requirements)
    return isValid === true ? { kind: 'valid', payer: payerIn(payer) } : readRefusal(invalidReason)
  } catch (error) {
    if (error instanceof VerifyError && isAboutPayment(error.statusCode)) return readRefusal(error.invalidReason)
    return { kind: 'unanswered', reason: reasonOfNoAnswer(error) }
  }
}

/** Whether an answer to /verify with this status is about the payment: facilitators refuse one with different statuses. */
export function isAboutPayment(status: number): boolean {
  return status >= 400 && status < 500 && ![401, 403, 404, 408, 429].includes(status)
}

function readRefusal(reason: string | undefined): Verified {
  return { kind: reason === 'unexpected_verify_error' ? 'unanswered' : 'invalid', reason: reasonCode(reason) }
}

/** `done`: the facilitator says that it settled. `doubt`: the money may have moved or not; only the chain can tell. */
export type Settled = { kind: 'done'; transaction: string } | { kind: 'doubt'; reason: string; transaction?: string }

export interface Expected {
  /** The payer; see `samePayer`. */
  payer: string
  /** A transaction id in the form in which it is stored; null for text that is no id on the payment's network. */
  readTransactionId(text: string): string | null
}

export async function askToSettle(
  calls: FacilitatorCalls,
  payload: PaymentPayload,
  requirements: PaymentRequirements,
  expected: Expected,
): Promise<Settled> {
  try {
    return readSettleAnswer(await calls.settle(payload, requirements), requirements.network, expected)
  } catch (error) {
    if (error instanceof SettleError) {
      const { errorReason, transaction, network, payer } = error
      return readSettleAnswer(
        { success: false, errorReason, transaction, network, payer },
        requirements.network,
        expected,
      )
    }
    return { kind: 'doubt', reason: reasonOfNoAnswer(error) }
  }
}

function readSettleAnswer(answer: SettleAnswer, network: string, { payer, readTransactionId }: Expected): Settled {
  const transaction = typeof answer.transaction === 'string' ? readTransactionId(answer.transaction) : null
  const named = payerIn(answer.payer)
  const otherPayer = named !== null && !samePayer(named, payer, network)
  if (answer.success === true && transaction && answer.network === network && !otherPayer)
    return { kind: 'done', transaction }
  const reason = answer.success ? (otherPayer ? 'another_payer' : 'unproved_success') : reasonCode(answer.errorReason)
  return { kind: 'doubt', reason, ...(transaction && { transaction }) }
}

/** Whether two texts name the same payer: EVM addresses may differ in case. */
export function samePayer(a: string, b: string, network: string): boolean {
  return network.startsWith('eip155:') ? a.toLowerCase() === b.toLowerCase() : a === b
}

function payerIn(payer: unknown): string | null {
  return typeof payer === 'string' && payer !== '' ? payer : null
}

/** The reason code; text of any other form is not repeated. */
function reasonCode(reason: unknown): string {
  return typeof reason === 'string' && /^[a-z][a-z0-9_]{0,99}$/.test(reason) ? reason : 'unnamed_reason'
}

/** A code for why there is no answer. */
export function reasonOfNoAnswer(error: unknown): string {
  if (error instanceof FacilitatorTimeoutError) return 'no_answer_in_time'
  if (error instanceof FacilitatorResponseError) return 'unreadable_answer'
  if (error instanceof VerifyError) return `http_${error.statusCode}`
  const status = error instanceof Error ? /^Facilitator \w+ failed \((\d{3})\)/.exec(error.message)?.[1] : undefined
  return status ? `http_${status}` : 'connection_failed'
}
