// What a card shows of a result: its claims, each with verdict, quotes and doubts, and where and by what it was read. Read from a
// parsed file of any origin, or from an answer of the service.
import { headInWords, verdictsInWords } from '../../verdict-words.ts'
import { type Quoted, quotedIn } from './passages.ts'

/** A claim with its verdict. A result of `source_claims` has several, any other one. */
export interface CardClaim extends Quoted {
  claim: string
  /** What was judged, where the context of the request changed the claim's words. */
  claim_as_read?: string
  claim_support: string
  /** The verdict in words, or why there is none. */
  head: string
  explanation: string
  risk_flags: string[]
}

export interface CardResult {
  source: Quoted['source']
  claims: CardClaim[]
  /** How many of several claims have which verdict. */
  overview: string
  /** Flags that every one of several claims has: they are about the page. Empty for one claim, which has its own. */
  shared_flags: string[]
  /** ISO 8601. */
  checked_at: string
  /** Whole seconds after `checked_at`, if the page was not visited for this result: an earlier reading was used again. Else null. */
  reused_after: number | null
  /** Undefined in an answer that names no methodology. */
  methodology_version: string | undefined
  assessment_scope: string | undefined
}

/**
 * Null for a value that is no completed result.
 * @param value a result of `source` or `source_claims`, or an answer of `POST /try` with the claim that was asked
 */
export function cardOf(value: unknown): CardResult | null {
  if (!isObject(value)) return null
  const { source, checked_at, methodology_version } = value
  const given = value.claims ?? [value]
  if (!Array.isArray(given) || given.length === 0 || given.length > MAX_CLAIMS) return null
  const method = isText(methodology_version) ? methodology_version : undefined
  const claims = given.map((one) => claimOf(one, source, method))
  const [first] = claims
  if (!first || !isText(checked_at) || Number.isNaN(Date.parse(checked_at)) || !claims.every((one) => one !== null))
    return null
  const isShared = (flag: string) => claims.length > 1 && claims.every(({ risk_flags }) => risk_flags.includes(flag))
  const shared = first.risk_flags.filter(isShared)
  const scope = isObject(given[0]) ? given[0].assessment_scope : undefined
  return {
    source: first.source,
    claims: claims.map((one) => ({ ...one, risk_flags: one.risk_flags.filter((flag) => !shared.includes(flag)) })),
    overview: verdictsInWords(claims.map((one) => ({ ...one, methodology_version: method }))),
    shared_flags: shared,
    checked_at,
    reused_after: reusedAfter(value.cache),
    methodology_version: method,
    assessment_scope: isText(scope) ? scope : undefined,
  }
}

/** An answer of a free look has no such member. */
function reusedAfter(cache: unknown): number | null {
  if (!isObject(cache) || cache.hit !== true) return null
  return Number.isSafeInteger(cache.age_seconds) ? (cache.age_seconds as number) : null
}

/** More than a service takes in one request. */
const MAX_CLAIMS = 10
const MAX_FLAGS = 100

function claimOf(value: unknown, source: unknown, methodology_version: string | undefined): CardClaim | null {
  if (!isObject(value)) return null
  const { claim, claim_as_read, claim_support, explanation, risk_flags, evidence } = value
  const quoted = quotedIn({ source, evidence })
  const isWhole = isText(claim) && isText(claim_support) && isText(explanation) && quoted
  if (!isWhole || !Array.isArray(risk_flags) || risk_flags.length > MAX_FLAGS || !risk_flags.every(isText)) return null
  return {
    ...quoted,
    claim,
    ...(isText(claim_as_read) && { claim_as_read }),
    claim_support,
    head: headInWords({ claim_support, risk_flags, methodology_version }),
    explanation,
    risk_flags: [...new Set(risk_flags)],
  }
}

/** The page, and the claim if there is one alone: what to ask to check it anew. */
export function questionOf({ source, claims }: CardResult): { source_url: string; claim?: string } {
  const [first, ...others] = claims
  return { source_url: source.final_url, ...(first && others.length === 0 && { claim: first.claim }) }
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** What judged a result, in words, and the name of its procedure, which `/accuracy` lists. */
export function assessorOf({ methodology_version = '', assessment_scope }: CardResult): {
  words: string
  name: string | null
} {
  const [, kind, version = ''] = / (literal|local|semantic)-(\d+(?:\+[^+ ]+)?)/.exec(methodology_version) ?? []
  if (kind === 'literal' || (!kind && assessment_scope === 'literal_quotation_only'))
    return {
      words: 'words were compared and nothing judged the claim',
      name: kind ? `literal-${version.split('+')[0]}` : null,
    }
  if (kind === 'local')
    return { words: 'judged by the small model that comes with the service', name: `local-${version}` }
  return { words: 'judged by a language model', name: kind ? `semantic-${version}` : null }
}
