// What one payment buys: an answer about one claim on a page, or about several claims on it.
import type { Purchase } from '../client.ts'
import type { ClaimsInput, PurchaseResult, VerificationInput } from '../result.ts'

interface Asked {
  source_url: string
  max_age_seconds?: number
}

/** As verify-source takes it. */
export interface SourceQuestion extends Asked {
  claim: string
}

/** As verify-claims takes it. */
export interface ClaimsQuestion extends Asked {
  claims: readonly string[]
  context?: string
}

export type Question = SourceQuestion | ClaimsQuestion

/** A row of a batch. */
export interface Row extends SourceQuestion {
  /** Unique in the file: its `id` or `custom_id`, else its digest and how often that came before. */
  id: string
  /** Of the file, from 1. */
  line: number
}

/** A question under the name by which the journal knows its payment. */
export type Order = Question & {
  id: string
  /** The rows of a batch whose claims these are, where one payment buys several. */
  rows?: readonly Row[]
}

/** Atomic units that each claim after the first adds to the published price. */
export const FURTHER_CLAIM = 10_000n
/** The most claims of one purchase. */
export const MOST_CLAIMS = 10

/** Atomic units. @param first the published price, of one claim */
export function priceOf(first: bigint, question: Question): bigint {
  return first + FURTHER_CLAIM * BigInt(claimsOf(question).length - 1)
}

export function claimsOf(question: Question): readonly string[] {
  return 'claims' in question ? question.claims : [question.claim]
}

/** The body of the request. */
export function inputOf(question: SourceQuestion): VerificationInput
export function inputOf(question: ClaimsQuestion): ClaimsInput
export function inputOf(question: Question): VerificationInput | ClaimsInput {
  const { source_url, max_age_seconds } = question
  const options = max_age_seconds === undefined ? {} : { options: { max_age_seconds } }
  if (!('claims' in question)) return { source_url, claim: question.claim, ...options }
  const context = question.context === undefined ? {} : { context: question.context }
  return { source_url, claims: [...question.claims], ...context, ...options }
}

/** Whether the result has the members that are read of it, for the claims that were asked. */
export function isWhole(question: Question, { result }: Purchase<PurchaseResult>): boolean {
  const { receipt, payment } = result
  if (!Number.isSafeInteger(receipt?.attestation?.serial) || !/^\d+$/.test(payment?.amount_atomic)) return false
  if (!('claims' in question)) return !('claims' in result) && isVerdict(result)
  if (!('claims' in result) || !Array.isArray(result.claims)) return false
  const { claims } = result
  return (
    claims.length === question.claims.length &&
    claims.every((one, i) => isVerdict(one) && one.claim === question.claims[i])
  )
}

function isVerdict({ evidence, claim_support }: { evidence: unknown; claim_support: unknown }): boolean {
  return Array.isArray(evidence) && typeof claim_support === 'string'
}
