// The risk flags of the literal assessment and what each means.
/** Flag → meaning, for readers of an assessment. Flags are never renamed. */
export const riskFlagMeanings = {
  partial_wording: "No passage holds the claim's whole wording; the passages share a part of its words.",
  claim_terms_absent:
    'Some content words of the claim, and words related to them, do not occur in the text of the page.',
  number_absent: 'A number or date of the claim is in none of the passages, and there is no other to compare it with.',
  number_mismatch: 'The first passage gives another number where the claim gives one, and no passage gives the same.',
  date_mismatch: 'The first passage gives another date or year than the claim, and no passage gives the same.',
  unit_mismatch: 'The first passage gives the number of the claim in another unit or currency.',
  negation_mismatch: 'Only one of the claim and the first passage has a negation.',
  attributed_statement: 'The first passage attributes a statement to a speaker; the claim gives it as a fact.',
  language_not_supported:
    'The claim or the page is in a language whose numbers, dates and negations the service cannot read; they were compared by their spelling.',
  more_matches: "The claim's wording occurs in more places than are shown.",
} as const satisfies Record<`${Lowercase<string>}`, string>

export type RiskFlag = keyof typeof riskFlagMeanings
