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

/**
 * Why there is no verdict, by the flag that says so. A page that does not say enough is another thing: these words stand in the place of
 * that sentence. Not every flag of a doubt is here, only those with which a verdict was withheld.
 */
const WITHHELD: readonly (readonly [flag: string, verdict: ClaimSupport, method: RegExp, words: string])[] = [
  ['order_about_claim', 'insufficient_evidence', /./, 'the page gives orders to programs in words of the claim'],
  ['readings_differ', 'insufficient_evidence', /./, 'the reading changes without the suspicious text'],
  ['page_checks_claims', 'insufficient_evidence', /./, 'the page checks what others claim'],
  // A language model is asked in any language.
  ['language_not_supported', 'insufficient_evidence', / local-/, 'the verifier does not know the language'],
  ['claim_not_assessed', 'not_assessed', /./, 'this claim could not be assessed'],
]

/**
 * Verdicts of this verifier on six public sets that nothing was trained or tuned on: how many were right, of how many, and the interval
 * of their true share in hundredths, for 95 of 100. `docs/accuracy.json` has the counts. What it explains has other figures, of claims
 * by its own makers, of which half set its thresholds.
 */
export const FRESH_VERDICTS = {
  procedure: 'local-1+ed47a71c255aed0a',
  supports: { right: 19, of: 27, low: 52, high: 84 },
  contradicts: { right: 19, of: 31, low: 44, high: 76 },
} as const

/** The same as shares of 100. */
export const FRESH_RIGHT_OF_100 = {
  supports: shareOf(FRESH_VERDICTS.supports),
  contradicts: shareOf(FRESH_VERDICTS.contradicts),
} as const

function shareOf({ right, of }: { right: number; of: number }): number {
  return Math.round((100 * right) / of)
}

/** How many claims have a verdict, for what follows their number. */
const SUM_WORDS: Readonly<Record<ClaimSupport, string>> = {
  supports: 'supported',
  contradicts: 'contradicted',
  mixed: 'both supported and contradicted',
  insufficient_evidence: 'left open',
  not_assessed: 'not judged',
}
const SUM_WITHHELD = 'without a verdict'

/** How a quote stands to the claim, as its caption. */
export const STANCE_WORDS: Readonly<Record<Stance, string>> = {
  supports: 'speaks for the claim',
  contradicts: 'speaks against the claim',
  mentions: 'nearest text on the page; it does not decide the claim',
}

/** What is known of a verdict from its result. */
export interface Verdict {
  claim_support: string
  risk_flags: readonly string[]
  /** Undefined in an answer that names none. */
  methodology_version?: string | undefined
}

/** Why the service withheld a verdict; null where it gave one, or where the page does not say enough. */
export function withheldInWords({ claim_support, risk_flags, methodology_version = '-' }: Verdict): string | null {
  const found = WITHHELD.find(
    ([flag, verdict, method]) =>
      verdict === claim_support && risk_flags.includes(flag) && method.test(methodology_version),
  )
  return found ? `No verdict, because ${found[3]}` : null
}

/** A verdict as the head of its result. */
export function headInWords(verdict: Verdict): string {
  return withheldInWords(verdict) ?? verdictInWords(verdict.claim_support)
}

/** The words for a verdict of any name; an unknown one is named as it is. */
function verdictInWords(verdict: string): string {
  return Object.hasOwn(VERDICT_WORDS, verdict) ? VERDICT_WORDS[verdict as ClaimSupport] : `“${verdict}”`
}

/** `3 claims: 1 supported, 2 contradicted`. A verdict of an unknown name is named as it is. */
export function verdictsInWords(verdicts: readonly Verdict[]): string {
  const sums = verdicts.map((one) =>
    one.claim_support === 'insufficient_evidence' && withheldInWords(one) ? SUM_WITHHELD : sumWords(one.claim_support),
  )
  const counts = [...new Set(sums)].map((words) => `${sums.filter((other) => other === words).length} ${words}`)
  return `${verdicts.length} claims: ${counts.join(', ')}`
}

const sumWords = (verdict: string) =>
  Object.hasOwn(SUM_WORDS, verdict) ? SUM_WORDS[verdict as ClaimSupport] : `“${verdict}”`

/** The words for a stance of any name; an unknown one is named as it is. */
export function stanceInWords(stance: string): string {
  return Object.hasOwn(STANCE_WORDS, stance) ? STANCE_WORDS[stance as Stance] : `“${stance}”`
}
