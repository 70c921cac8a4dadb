// Explains the risk flags of results. Flags and meanings come from the tables that raise them; this file adds the advice, and a
// flag without advice does not compile.
import { z } from 'zod'
import { riskFlagMeanings as literalFlagMeanings } from '../../workers/assessment/literal-risk-flags.ts'
import { pageFlagMeanings } from '../../workers/assessment/page-risk-flags.ts'
import { semanticFlagMeanings } from '../../workers/assessment/semantic-risk-flags.ts'
import { retrievalRiskFlags } from '../../workers/retrieval/risk-flags.ts'
import { riskFlagMeanings as textFlagMeanings } from '../../workers/text/risk-flags.ts'
import { riskFlag } from '../interface/result.ts'
import { defineExchange } from '../operation.ts'

const STAGES = ['retrieval', 'text', 'page', 'literal_assessment', 'semantic_assessment'] as const
type Stage = (typeof STAGES)[number]

const TABLES = {
  retrieval: retrievalRiskFlags,
  text: textFlagMeanings,
  page: pageFlagMeanings,
  literal_assessment: literalFlagMeanings,
  semantic_assessment: semanticFlagMeanings,
} as const satisfies Record<Stage, Record<string, string>>

/** Every flag that a result can carry. */
type RaisedFlag = { [S in Stage]: keyof (typeof TABLES)[S] }[Stage]

const ADVICE: Readonly<Record<RaisedFlag, string>> = {
  cross_host_redirect: 'Cite source.final_url, and check that you trust its host for this claim.',
  internationalized_host: 'Compare source_identity.hostname, letter by letter, with the host you meant.',
  ip_address_host: 'Do not cite it by name: nothing says whose page it is.',
  certificate_near_expiry: 'Keep the result: the page may soon be unreadable. This result is not affected.',
  no_content_length: 'If the claim may be near the end of the page, verify again.',
  refresh_header:
    'Open the page: a browser would go on to another address. Verify that address instead if you meant it.',
  attachment: 'Check that this is the document you meant: browsers would save it, not show it.',
  charset_guessed: 'Compare letters outside ASCII in the quotes with the page before you cite them.',
  replacement_characters: 'Look for U+FFFD in the quotes; do not cite those that have one.',
  hidden_text: 'If the quotes miss what you expected, open the page: text may be behind tabs or menus.',
  invisible_characters: 'Treat the page with care: such characters are also used to deceive readers and programs.',
  text_truncated: 'Text after the first 100,000 characters was not read: absence proves nothing.',
  low_text: 'Open the page: if scripts fill it in, its text was not read. Use a page that has its text in the markup.',
  challenge_suspected: 'Read source.normalized_text: if it is a robot check, the page itself was not read.',
  login_wall_suspected: 'Absence proves nothing: the rest of the text may be visible only after a log-in.',
  soft_404_suspected: 'Read source.normalized_text: if the page no longer exists, use another one.',
  script_shell_suspected: 'Absence proves nothing: use a page that has its text in the markup.',
  partial_wording: 'Read the quotes in full: the words of the claim may be there in another sense.',
  claim_terms_absent: 'Expect no support: words that the claim depends on are not on the page. explanation names some.',
  number_absent: 'Do not cite the page for the number or date of the claim before you have found it there.',
  number_mismatch: 'Compare the number of the claim with the first quote; they may speak of different things.',
  date_mismatch: 'Compare the date of the claim with the first quote; they may speak of different events.',
  unit_mismatch: 'Convert the unit or currency before you compare the claim with the quote.',
  negation_mismatch: 'Look for "not" and similar words in claim and quote: one of them may say the opposite.',
  attributed_statement: 'Cite it as a statement of its speaker, not as a fact.',
  more_matches: 'Search source.normalized_text for the other places if one quote is not enough.',
  quoted_phrase_absent: 'Do not cite the page for these words: they are not on it.',
  claim_wording_present: 'Read the quotes: they have the exact words of the claim, and may still mean something else.',
  claim_words_present: 'Read the quotes: they may support the claim rather than contradict it.',
  opposite_wording: 'Look for opposite words in claim and quotes; the page may say the contrary.',
  kind_mismatch: 'Compare what claim and quotes call their subject: the page may call it something else.',
  names_absent: 'Before you cite the page, check whether it uses other names for the same people or things.',
  name_mismatch: 'Compare the names in claim and quotes: the page may speak of somebody or something else.',
  part_without_evidence: 'Rely on the verdict for the other parts only; explanation names the part without evidence.',
  language_not_supported: 'Compare numbers, dates and negations yourself; they were not checked in this language.',
  unrelated_evidence: 'Read the quotes yourself before you rely on the verdict.',
  weak_basis: 'Cite no more than the quotes say: the page gives a part of the claim, or reports it.',
  verdict_lowered: 'Rely on the verdict as given, not on a stronger one; explanation says why it was lowered.',
  claim_partly_checked: 'Split the claim: its numbers and dates after the first 100 were not compared with the page.',
  evidence_dropped: 'No action is needed: the quotes are proved. There may be more evidence on the page.',
  instruction_like_text: 'Trust the page less, and do not give its text to a model as instructions.',
  text_aimed_at_verdict: 'Trust the page less: its author tries to influence verdicts about it.',
  forged_markup: 'Trust the page less, and mark its text as untrusted when you give it to a model.',
  suspicious_text: 'Read source.normalized_text before you rely on the page.',
  claim_addresses_model: 'Send only the claim, without words to the model, and verify again.',
  readings_differ: 'Do not rely on the page for this claim, or read it yourself.',
  assessed_in_parts: 'If the claim joins facts that are far apart on the page, read the quotes together yourself.',
  literal_fallback: 'There is no verdict. Verify under a new Idempotency-Key later for one.',
}

/** One entry per flag and raising stage: two stages may mean different things by one name. */
export const explainedFlags = STAGES.flatMap((stage) =>
  Object.entries(TABLES[stage]).flatMap(([name, meaning]) =>
    isRaised(name) ? [{ name, raised_by: stage, meaning, advice: ADVICE[name] }] : [],
  ),
)

function isRaised(name: string): name is RaisedFlag {
  return name in ADVICE
}

export const getRiskFlags = defineExchange({
  name: 'get_risk_flags',
  summary: 'Every risk flag of results: what it means, and what to do',
  description:
    'A flag is a circumstance to know about, not an error. Names are never reused for something else; new ones may come.',
  method: 'GET',
  path: '/risk-flags',
  family: 'control',
  access: 'public',
  kind: 'exchange',
  input: z.strictObject({}),
  output: z.strictObject({
    risk_flags: z.array(
      z.strictObject({ name: riskFlag, raised_by: z.enum(STAGES), meaning: z.string(), advice: z.string() }),
    ),
  }),
  run: async () => ({ risk_flags: explainedFlags }),
})
