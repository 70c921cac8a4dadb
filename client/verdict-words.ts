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

/** How a quote stands to the claim, for what follows "This quote". */
export const STANCE_WORDS: Readonly<Record<Stance, string>> = {
  supports: 'speaks for the claim',
  contradicts: 'speaks against the claim',
  mentions: 'comes nearest to the claim without deciding it',
}

/** The words for a verdict of any name; an unknown one is named as it is. */
export function verdictInWords(verdict: string): string {
  return Object.hasOwn(VERDICT_WORDS, verdict) ? VERDICT_WORDS[verdict as ClaimSupport] : `“${verdict}”`
}

/** The words for a stance of any name; an unknown one is named as it is. */
export function stanceInWords(stance: string): string {
  return Object.hasOwn(STANCE_WORDS, stance) ? STANCE_WORDS[stance as Stance] : `“${stance}”`
}
