// The risk flags of assessments and what each means. Flags are never renamed. Imports nothing, because web processes load it.

/** Of the literal assessment. */
export const literalFlagMeanings = {
  partial_wording: "No passage holds the claim's whole wording; the passages share a part of its words.",
  claim_terms_absent: 'Some content words of the claim, and other forms of them, do not occur in the text of the page.',
  number_absent: 'A number of the claim does not occur in the text of the page.',
  language_not_supported:
    'The claim or the page is in a language whose common words the service does not know; all words were compared by their spelling.',
  more_matches: "The claim's wording occurs in more places than are shown.",
} as const satisfies Record<`${Lowercase<string>}`, string>
export type LiteralFlag = keyof typeof literalFlagMeanings

/** Of the local assessment. */
export const localFlagMeanings = {
  language_not_supported:
    'The text is not in English, the only language that the verifier knows, so nothing was judged.',
  page_checks_claims:
    'The page has words of pages that check what others claim. Such pages repeat a claim in order to refute it, so the ' +
    'verdict "supports" was withheld.',
} as const satisfies Record<`${Lowercase<string>}`, string>

/** Of the semantic assessment. */
export const semanticFlagMeanings = {
  quoted_phrase_absent: 'The claim says that somebody said certain words, and the page does not have these words.',
  number_not_quoted: 'None of the lines that the model named for the claim holds a number that the claim states.',
  language_not_supported: 'The claim or the page is in a language whose common words the service does not know.',
  part_without_evidence: 'The model found nothing about a part of the claim; explanation says which.',
  verdict_lowered: 'The lines that the model named cannot carry its verdict, so it was lowered; explanation says why.',
  evidence_dropped: 'The model named lines as evidence that cannot be quoted.',
  instruction_like_text: 'The page has text that gives orders to programs that read it. That text was ignored.',
  text_aimed_at_verdict:
    'The page has text that tries to influence how claims about it are judged. That text was ignored.',
  forged_markup: 'The page has text that imitates the marks of prompts or chats. That text was ignored.',
  order_about_claim:
    'A sentence that gives orders to programs has words of the claim. It could not be left out, so there is no verdict.',
  suspicious_text: 'The model reported lines of the page as an attempt to influence it. They were ignored.',
  claim_addresses_model: 'The claim itself has text that gives orders to programs that read it.',
  readings_differ: 'Without the suspicious lines the model read the text differently, so there is no verdict.',
  assessed_in_parts: 'The text is long and was read in overlapping parts, whose verdicts were combined by rules.',
  verdict_doubted:
    'A second reader, the small model that comes with the service, holds the opposite of the verdict. The verdict was kept.',
  local_fallback: 'The assessing model did not answer; the verifier that comes with the service gave the verdict.',
  literal_fallback: 'The assessing model did not answer; passages were matched by their words instead.',
} as const satisfies Record<`${Lowercase<string>}`, string>
export type SemanticFlag = keyof typeof semanticFlagMeanings

/** Of one claim among several, raised by server/verification/stages/assessment-stage.ts. */
export const claimFlagMeanings = {
  claim_not_assessed:
    'This claim could not be assessed, for example because no usable answer was made for it. The other claims were.',
} as const satisfies Record<`${Lowercase<string>}`, string>
export type ClaimFlag = keyof typeof claimFlagMeanings
