// What a purchase prints for people: verdicts, quotes with links, flags, receipt, and whether the result is proved.
import { visible } from '../../arguments.ts'
import type { Bought } from '../../batch/purchase.ts'
import { textFragmentUrl } from '../../citation.ts'
import { inWords } from '../../document-words.ts'
import { flagInWords } from '../../flag-words.ts'
import type { ClaimResult, ClaimSupport, PurchaseResult } from '../../result.ts'
import { headInWords } from '../../verdict-words.ts'
import { paint } from '../output.ts'
import type { Proof } from '../trust.ts'

type Paint = (colour: 'green' | 'red' | 'yellow' | 'bold', text: string) => string

const COLOURS: Record<ClaimSupport, 'green' | 'red' | 'yellow'> = {
  supports: 'green',
  contradicts: 'red',
  mixed: 'yellow',
  insufficient_evidence: 'yellow',
  not_assessed: 'yellow',
}

export function wordsOf({ result, isEarlier, costUsd }: Bought, proof: Proof, colour: Paint = paint): string {
  const warning = [
    colour('red', 'This result does not verify. Do not trust what it says:'),
    `  ${visible(proof.words)}`,
  ]
  if (!proof.isReadable) return `${warning.join('\n')}\n`
  const { payment, receipt } = result
  const lines = proof.ok ? [] : [...warning, '']
  lines.push(...('claims' in result ? manyInWords(result, colour) : oneInWords(result, colour)))
  const money = payment.simulated ? `${payment.mode} mode: no money moved` : `${costUsd} USDC`
  lines.push(
    '',
    `Receipt: serial ${receipt.attestation.serial}, ${visible(money)}${isEarlier ? '; bought before, nothing is paid now' : ''}`,
  )
  if (proof.ok) lines.push(`Proved:  ${visible(proof.words)}`)
  return `${lines.join('\n')}\n`
}

function oneInWords(result: Extract<PurchaseResult, { claim: string }>, colour: Paint): string[] {
  return [
    headOf(result, result, colour),
    '',
    `Claim:   ${visible(result.claim)}`,
    ...pageInWords(result),
    '',
    ...findingInWords(result, result, colour),
  ]
}

function manyInWords(result: Extract<PurchaseResult, { claims: unknown }>, colour: Paint): string[] {
  const { claims, context } = result
  const sums = new Map<string, number>()
  for (const { claim_support } of claims) sums.set(claim_support, (sums.get(claim_support) ?? 0) + 1)
  const found = [...sums].map(([verdict, times]) => `${times} ${visible(verdict)}`).join(', ')
  const lines = [`${claims.length} ${claims.length === 1 ? 'claim' : 'claims'}: ${found}`, '', ...pageInWords(result)]
  if (context !== undefined) lines.push(`Context: ${visible(context)}`)
  for (const [i, one] of claims.entries()) {
    lines.push('', `${i + 1}. ${headOf(result, one, colour)}`, `Claim:   ${visible(one.claim)}`)
    if (one.claim_as_read !== undefined) lines.push(`Read as: ${visible(one.claim_as_read)}`)
    lines.push(...findingInWords(result, one, colour))
  }
  return lines
}

function headOf(
  { methodology_version }: PurchaseResult,
  { claim_support, risk_flags }: Pick<ClaimResult, 'claim_support' | 'risk_flags'>,
  colour: Paint,
): string {
  const words = headInWords({ claim_support, risk_flags, methodology_version })
  return `${colour(COLOURS[claim_support] ?? 'yellow', visible(claim_support))}: ${visible(words)}`
}

function pageInWords({ source, checked_at }: PurchaseResult): string[] {
  return [`Page:    ${visible(source.final_url)}`, `Read on: ${dateOf(checked_at)}`]
}

/** Explanation, quotes and flags. */
function findingInWords(
  result: PurchaseResult,
  { explanation, evidence, risk_flags }: Pick<ClaimResult, 'explanation' | 'evidence' | 'risk_flags'>,
  colour: Paint,
): string[] {
  const lines = [visible(explanation)]
  for (const quote of evidence) {
    lines.push('', `  ${colour('bold', visible(quote.stance))}: “${visible(quote.quote)}”`)
    lines.push(`  ${visible(textFragmentUrl(result, quote))}`)
  }
  if (risk_flags.length > 0) lines.push('', 'What raises doubt:')
  for (const flag of risk_flags) lines.push(`  ${visible(flagInWords(flag))} (${visible(flag)})`)
  return lines
}

function dateOf(checkedAt: string): string {
  const date = new Date(checkedAt)
  return Number.isNaN(date.getTime()) ? visible(checkedAt) : inWords.format(date)
}
