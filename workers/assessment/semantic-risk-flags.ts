// The risk flags of the semantic assessment and what each means.
import { riskFlagMeanings as literal } from './literal-risk-flags.ts'

/** What a reader of a semantic assessment should beware of. Flag → meaning; flags are never renamed. */
export const semanticFlagMeanings = {
  number_mismatch: 'The quoted lines give another number where the claim gives one, and none gives the same.',
  date_mismatch: 'The quoted lines give another date or year than the claim, and none gives the same.',
  unit_mismatch: 'The quoted lines give the number of the claim in another unit or currency.',
  number_absent: 'A number or date of the claim is in none of the quoted lines.',
  claim_partly_checked: 'The claim gives more than 100 numbers and dates; those after the first 100 were not checked.',
  negation_mismatch: 'Of the claim and the quoted lines, one holds a negation and the other does not.',
  attributed_statement: literal.attributed_statement,
  quoted_phrase_absent: 'The claim quotes words that stand nowhere in the text of the page.',
  claim_wording_present: 'The lines that were read against the claim hold its very wording, without a negation.',
  claim_words_present:
    'The lines that were read against the claim have its numbers and nearly all of its words, and neither deny nor reverse them.',
  opposite_wording: 'The lines that were read for the claim have the opposite of one of its words in its place.',
  kind_mismatch: 'The quoted lines say what kind of thing something is, and it is another kind than the claim says.',
  names_absent: 'Most of the names in the claim stand nowhere in the text of the page.',
  name_mismatch: 'The quoted lines have another name in the place of one in the claim, which is nowhere on the page.',
  unrelated_evidence:
    'The lines that the model named, or their page, have too few words and numbers of the claim to bear it.',
  part_without_evidence: 'A part of the claim has nothing in the lines that were read for it; explanation says which.',
  language_not_supported: literal.language_not_supported,
  weak_basis: 'By its own account the model found only a part of the claim, a report of it, or something unsure.',
  verdict_lowered: 'The verdict of the model was not borne out by its evidence or by the checks, and was lowered.',
  evidence_dropped: 'The model named lines as evidence that cannot be quoted.',
  instruction_like_text: 'The page holds text that gives orders to programs that read it. It was left out of account.',
  text_aimed_at_verdict:
    'The page holds text that tries to settle how claims about it are judged. It was left out of account.',
  forged_markup: 'The page holds text that imitates the marks of prompts or chats. It was left out of account.',
  suspicious_text: 'The model took lines of the page for an attempt to influence it. They were left out of account.',
  claim_addresses_model: 'The claim itself holds text that gives orders to programs that read it.',
  readings_differ: 'With suspicious lines left out the text reads otherwise, so there is no verdict.',
  assessed_in_parts: 'The text is long and was read in overlapping parts, whose verdicts were put together by rule.',
  literal_fallback: 'The assessing model did not answer; passages were matched by their words instead.',
} as const satisfies Record<`${Lowercase<string>}`, string>

export type SemanticFlag = keyof typeof semanticFlagMeanings
