// The words for verdicts and stances, the same on every page, in every report and on the command line.
import type { ClaimSupport, Stance } from './result.ts'

/** What a verdict says, as a sentence without its full stop. */
export const VERDICT_WORDS: Readonly<Record<ClaimSupport, string>> = {
  supports: 'The page says so',
  contradicts: 'The page says otherwise',
  mixed: 'The page says both',
  insufficient_evidence: 'The page does not say enough',
  not_assessed: 'Not judged, quotes only',
}

/** How many claims have a verdict, for what follows their number. */
const SUM_WORDS: Readonly<Record<ClaimSupport, string>> = {
  supports: 'supported',
  contradicts: 'contradicted',
  mixed: 'both supported and contradicted',
  insufficient_evidence: 'left open',
  not_assessed: 'not judged',
}

/** How a quote stands to the claim, as its caption. */
export const STANCE_WORDS: Readonly<Record<Stance, string>> = {
  supports: 'speaks for the claim',
  contradicts: 'speaks against the claim',
  mentions: 'nearest text on the page; it does not decide the claim',
}

/** The words for a verdict of any name; an unknown one is named as it is. */
export function verdictInWords(verdict: string): string {
  return Object.hasOwn(VERDICT_WORDS, verdict) ? VERDICT_WORDS[verdict as ClaimSupport] : `“${verdict}”`
}

/** `3 claims: 1 supported, 2 contradicted`. A verdict of an unknown name is named as it is. */
export function verdictsInWords(verdicts: readonly string[]): string {
  const counts = [...new Set(verdicts)].map((verdict) => {
    const { length } = verdicts.filter((other) => other === verdict)
    return `${length} ${Object.hasOwn(SUM_WORDS, verdict) ? SUM_WORDS[verdict as ClaimSupport] : `“${verdict}”`}`
  })
  return `${verdicts.length} claims: ${counts.join(', ')}`
}

/** The words for a stance of any name; an unknown one is named as it is. */
export function stanceInWords(stance: string): string {
  return Object.hasOwn(STANCE_WORDS, stance) ? STANCE_WORDS[stance as Stance] : `“${stance}”`
}
