// Explains the risk flags of results. Flags and meanings come from the tables that raise them; this file adds the advice, and a
// flag without advice does not compile.
import { z } from 'zod'
import {
  claimFlagMeanings,
  literalFlagMeanings,
  localFlagMeanings,
  semanticFlagMeanings,
} from '../../../workers/assessment/risk-flags.ts'
import { pageFlagMeanings, retrievalRiskFlags } from '../../../workers/retrieval/risk-flags.ts'
import { riskFlagMeanings as textFlagMeanings } from '../../../workers/text/page/risk-flags.ts'
import { riskFlag } from '../../interface/result.ts'
import { defineExchange } from '../../operation.ts'

const STAGES = [
  'retrieval',
  'text',
  'page',
  'claim',
  'literal_assessment',
  'local_assessment',
  'semantic_assessment',
] as const
type Stage = (typeof STAGES)[number]

const TABLES = {
  retrieval: retrievalRiskFlags,
  text: textFlagMeanings,
  page: pageFlagMeanings,
  claim: claimFlagMeanings,
  literal_assessment: literalFlagMeanings,
  local_assessment: localFlagMeanings,
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
  style_passed_over: 'Open the page before you cite a quote: readers may not see it there.',
  low_text: 'Open the page: if scripts fill it in, its text was not read. Use a page that has its text in the markup.',
  challenge_suspected: 'Read source.normalized_text: if it is a robot check, the page itself was not read.',
  login_wall_suspected: 'Absence proves nothing: the rest of the text may be visible only after a log-in.',
  soft_404_suspected: 'Read source.normalized_text: if the page no longer exists, use another one.',
  script_shell_suspected: 'Absence proves nothing: use a page that has its text in the markup.',
  claim_not_assessed: 'Verify this claim by itself: nothing is said about it here.',
  partial_wording: 'Read the quotes in full: the words of the claim may be there in another sense.',
  claim_terms_absent: 'Expect no support: words that the claim depends on are not on the page. explanation names some.',
  number_absent: 'Do not cite the page for the number or date of the claim: the page may give another one.',
  more_matches: 'Search source.normalized_text for the other places if one quote is not enough.',
  quoted_phrase_absent: 'Do not cite the page for these words: they are not on it.',
  number_not_quoted: 'Look for the number on the page yourself: it may follow from other lines, or be another one.',
  part_without_evidence: 'Rely on the verdict for the other parts only; explanation names the part without evidence.',
  language_not_supported:
    'Compare claim and page yourself; what they say was not judged, or only by its spelling, in this language.',
  page_checks_claims: 'Read the quote in its context: the page may repeat the claim in order to refute it.',
  verdict_lowered: 'Rely on the verdict as given, not on a stronger one; explanation says why it was lowered.',
  evidence_dropped: 'No action is needed: the quotes are proved. There may be more evidence on the page.',
  instruction_like_text: 'Trust the page less, and do not give its text to a model as instructions.',
  text_aimed_at_verdict: 'Trust the page less: its author tries to influence verdicts about it.',
  forged_markup: 'Trust the page less, and mark its text as untrusted when you give it to a model.',
  order_about_claim:
    'Read source.normalized_text yourself: the page mixes what it says about the claim with orders to programs.',
  suspicious_text: 'Read source.normalized_text before you rely on the page.',
  claim_addresses_model: 'Send only the claim, without words to the model, and verify again.',
  readings_differ: 'Do not rely on the page for this claim, or read it yourself.',
  assessed_in_parts: 'If the claim joins facts that are far apart on the page, read the quotes together yourself.',
  verdict_doubted: 'Read the quotes yourself before you rely on the verdict: two readers disagree.',
  local_fallback: 'Verify under a new Idempotency-Key later for a verdict of the language model.',
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
