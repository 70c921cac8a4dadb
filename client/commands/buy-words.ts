// What a purchase prints for people: verdict, quotes with links, flags, receipt, and whether the result is proved.
import { visible } from '../arguments.ts'
import type { Bought } from '../batch/purchase.ts'
import { textFragmentUrl } from '../citation.ts'
import { inWords } from '../document-words.ts'
import { flagInWords } from '../flag-words.ts'
import type { ClaimSupport } from '../result.ts'
import { verdictInWords } from '../verdict-words.ts'
import { paint } from './output.ts'
import type { Proof } from './trust.ts'

type Paint = (colour: 'green' | 'red' | 'yellow' | 'bold', text: string) => string

const COLOURS: Record<ClaimSupport, 'green' | 'red' | 'yellow'> = {
  supports: 'green',
  contradicts: 'red',
  mixed: 'yellow',
  insufficient_evidence: 'yellow',
  not_assessed: 'yellow',
}

export function wordsOf({ result, isEarlier, costUsd }: Bought, proof: Proof, colour: Paint = paint): string {
  const { claim_support, claim, source, explanation, evidence, risk_flags, checked_at, payment, receipt } = result
  const lines = proof.ok
    ? []
    : [colour('red', 'This result does not verify. Do not trust what it says:'), `  ${visible(proof.words)}`, '']
  const head = colour(COLOURS[claim_support] ?? 'yellow', visible(claim_support))
  lines.push(`${head}: ${visible(verdictInWords(claim_support))}`, '')
  lines.push(`Claim:   ${visible(claim)}`, `Page:    ${visible(source.final_url)}`)
  lines.push(`Read on: ${dateOf(checked_at)}`, '', visible(explanation))
  for (const quote of evidence) {
    lines.push('', `  ${colour('bold', visible(quote.stance))}: “${visible(quote.quote)}”`)
    lines.push(`  ${visible(textFragmentUrl(result, quote))}`)
  }
  if (risk_flags.length > 0) lines.push('', 'What raises doubt:')
  for (const flag of risk_flags) lines.push(`  ${visible(flagInWords(flag))} (${visible(flag)})`)
  const money = payment.simulated ? `${payment.mode} mode: no money moved` : `${costUsd} USDC`
  lines.push(
    '',
    `Receipt: serial ${receipt.attestation.serial}, ${visible(money)}${isEarlier ? '; bought before, nothing is paid now' : ''}`,
  )
  if (proof.ok) lines.push(`Proved:  ${visible(proof.words)}`)
  return `${lines.join('\n')}\n`
}

function dateOf(checkedAt: string): string {
  const date = new Date(checkedAt)
  return Number.isNaN(date.getTime()) ? visible(checkedAt) : inWords.format(date)
}
