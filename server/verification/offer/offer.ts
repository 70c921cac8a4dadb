// The description of the offer. Every text that a buyer reads before paying is composed of these sentences, and they depend on
// the configuration alone, so that no text promises what the configuration does not do.

import { FRESH_RIGHT_OF_100 } from '../../../client/verdict-words.ts'
import { RIGHT_OF_100 } from '../../../workers/assessment/local/explanation.ts'
import { settings } from '../../../workers/assessment/local/weights.ts'
import { LOCAL_PROCEDURE } from '../../../workers/assessment/procedure.ts'
import type { Config } from '../../config.ts'
import type { AssessmentKind } from '../../interface/assessment.ts'
import { type Resource, resourceUrl, type Through } from '../../payments/discovery.ts'

export interface Offer {
  assessment: AssessmentKind
  /** What one purchase buys; short enough for the header of a 402. */
  summary: string
  /** The same for several claims on one page. */
  claimsSummary: string
  /** The possible values of `claim_support`, and their meaning. */
  outcomes: string
  /** What a result does not say about the claim. */
  caveat: string
  /** What a result does not say at all. */
  scope: string
  /** Why nothing can be bought at present; null if it can. */
  closed: string | null
  /** Whether MCP has the paid tool. */
  tool: boolean
}

export type OfferConfig = Pick<Config, 'assessment' | 'verificationEnabled' | 'mcpVerificationEnabled'>

export function describeOffer({ assessment, verificationEnabled, mcpVerificationEnabled }: OfferConfig): Offer {
  const { kind, fallback } = assessment
  const { summary, outcomes, caveat } = SENTENCES[kind]
  return {
    assessment: kind,
    summary: summary('one claim'),
    claimsSummary: summary('each of 1 to 10 claims'),
    outcomes: kind === 'semantic' && fallback !== 'none' ? `${outcomes} ${FALLBACKS[fallback]}` : outcomes,
    caveat,
    scope: `${caveat} ${IDENTITY}`,
    closed: verificationEnabled ? null : CLOSED,
    tool: mcpVerificationEnabled,
  }
}

/** The resource that is sold, by protocol. @param baseUrl this service's public address */
export function describeResource(
  { config, baseUrl }: { config: OfferConfig; baseUrl: string },
  through: Through,
): Resource {
  const { summary, claimsSummary, assessment } = describeOffer(config)
  const description = through === 'claims' || through === 'mcpClaims' ? claimsSummary : summary
  return { url: resourceUrl(through, baseUrl), description, assessment }
}

/** The assessment in force, for operators: in the start banner, the log and `doctor`. */
export function describeAssessment({ assessment, model }: Pick<Config, 'assessment' | 'model'>): string {
  if (!model && assessment.kind === 'local')
    return `local: the verifier ${LOCAL_PROCEDURE} gives the verdict, without a key or a network`
  if (!model) return 'literal: no model is asked, passages are quoted, no verdict is given'
  // Only the origin: a URL may contain a password.
  const at = model.baseUrl === undefined ? 'Anthropic' : new URL(model.baseUrl).origin
  const without = {
    none: '',
    local: '; while it does not answer, the local verifier gives one',
    literal: '; while it does not answer, passages are quoted without one',
  }[assessment.fallback]
  return `semantic: ${model.model} at ${at} gives the verdict${without}`
}

/** The first figures are of claims about web pages that nothing was trained on; half of those claims set the thresholds. */
const LOCAL_ACCURACY = `On unseen pages ${RIGHT_OF_100.supports} of 100 verdicts for a claim and ${RIGHT_OF_100.contradicts} of 100 against one were right (on fresh public sets ${FRESH_RIGHT_OF_100.supports} and ${FRESH_RIGHT_OF_100.contradicts}); most claims get insufficient_evidence.`

interface Sentences extends Pick<Offer, 'outcomes' | 'caveat'> {
  summary(claims: string): string
}

const SENTENCES: Record<AssessmentKind, Sentences> = {
  literal: {
    summary: (claims) =>
      `Reads one public HTTPS page and quotes the passages that best match ${claims}, with code-point offsets, SHA-256 ` +
      'digests and a signed receipt. No model is asked and no verdict is given.',
    outcomes:
      'claim_support is not_assessed where passages match the words of the claim and are quoted, and ' +
      'insufficient_evidence where none does; assessment_scope is literal_quotation_only.',
    caveat:
      'A quote shows what the retrieved text says and where it says it. Whether that supports the claim is for its reader ' +
      'to judge, and a source may support a claim without the claim being true.',
  },
  local: {
    summary: (claims) =>
      `Reads one public HTTPS page and says whether its text supports ${claims}: the verdict of the local verifier ` +
      `${settings.methodology}, which anyone can recompute, exact quotes with offsets and SHA-256 digests, and a signed receipt. ${LOCAL_ACCURACY}`,
    outcomes:
      'claim_support is supports, contradicts, mixed or insufficient_evidence; assessment_scope is ' +
      'source_local_semantic_support. The verifier knows English only: pages in another language get ' +
      'insufficient_evidence and the risk flag language_not_supported.',
    caveat:
      'A verdict states only what the retrieved text says: a source may support a claim without the claim being true. The ' +
      'weights of the verifier are at /model/, its measured accuracy is at /accuracy.',
  },
  semantic: {
    summary: (claims) =>
      `Reads one public HTTPS page and says whether its text supports ${claims}: the verdict of a language model, exact ` +
      'quotes with code-point offsets and SHA-256 digests, and a signed receipt.',
    outcomes:
      'claim_support is supports, contradicts, mixed or insufficient_evidence; assessment_scope is ' +
      'source_local_semantic_support.',
    caveat:
      'A verdict states only what the retrieved text says: a source may support a claim without the claim being true.',
  },
}

const FALLBACKS = {
  local:
    'While the model does not answer, the local verifier gives the verdict, at the same price, and the risk flag local_fallback says so.',
  literal:
    'While the model does not answer, no verdict is given, at the same price: passages are quoted by their words, ' +
    'claim_support is not_assessed or insufficient_evidence, assessment_scope is literal_quotation_only, and the risk flag ' +
    'literal_fallback says so.',
}

const IDENTITY = 'TLS identifies the host that answered, not the credibility of its publisher.'

const CLOSED =
  'New verifications are switched off here at present: they answer 503, and nothing is charged. Results that were bought ' +
  'are still served.'
