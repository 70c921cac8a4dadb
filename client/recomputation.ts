// Compares the verdict of a result with what the local verifier makes of the same text and claim. It knows neither the model
// nor the weights: they are the package `countersign-verifier`.
import type { Check } from './checks.ts'
import { anything, integer, list, object, text } from './shape.ts'

/** What the verifier says of one claim. */
export interface Recomputed {
  claim_support: string
  explanation: string
  quotes: readonly Quote[]
  risk_flags: readonly string[]
}

interface Quote {
  quote: string
  start: number
  end: number
  stance: string
}

/** A claim of a result with the verdict that the result gives. */
export interface Judged {
  claim: string
  claim_support: string
  explanation: string
  evidence: readonly Quote[]
  risk_flags: readonly string[]
}

/** What can be recomputed. */
export interface Recomputable {
  /** The procedure as `methodology_version` names it, with the first digits of the weights' digest. */
  procedure: string
  text: string
  verdicts: readonly Judged[]
}

/** Code points. The service sends no more. */
const LONGEST_TEXT = 100_000
const LONGEST_CLAIM = 3000
const MOST_CLAIMS = 10
/** The flags that the verifier sets; others come from other parts of the service. */
const FLAGS = ['language_not_supported', 'page_checks_claims']

const quote = object({ quote: text(), start: integer(0), end: integer(0), stance: text() })
const verdict = {
  claim: text(/./s),
  claim_support: text(),
  explanation: text(),
  evidence: list(quote, 60),
  risk_flags: list(text(), 100),
}
const head = object({
  source: object({ normalized_text: text() }),
  methodology_version: text(),
  receipt: anything,
})

/** What of a parsed file can be recomputed, or one line that says why nothing can. */
export function recomputableIn(value: unknown): Recomputable | string {
  if (head(value, '') !== null) return 'Only a completed result can be recomputed, and the file holds none.'
  const result = value as Judged & {
    source: { normalized_text: string }
    methodology_version: string
    claims?: readonly (Judged & { claim_as_read?: string })[]
  }
  const shape = Object.hasOwn(result, 'claims')
    ? object({ claims: list(object(verdict), MOST_CLAIMS, 1) })
    : object(verdict)
  const fault = shape(value, '')
  if (fault !== null) return `The file holds no whole result: ${fault}.`
  const procedure = / (local-\d+\+[0-9a-f]{16})(?:\+|$)/.exec(result.methodology_version)?.[1]
  if (procedure === undefined)
    return `Another assessor gave this verdict (${result.methodology_version}); only verdicts of the local verifier can be recomputed.`
  const verdicts = (result.claims ?? [result]).map((one) => ({ ...one, claim: readClaim(one) }))
  const { normalized_text } = result.source
  if (!isReadable(normalized_text, LONGEST_TEXT) || !verdicts.every(({ claim }) => isReadable(claim, LONGEST_CLAIM)))
    return 'The text or a claim of the file is longer than the service reads, or is not well-formed Unicode.'
  return { procedure, text: normalized_text, verdicts }
}

/** With several claims, what was read may be longer than what was sent. */
function readClaim(one: Judged & { claim_as_read?: unknown }): string {
  return typeof one.claim_as_read === 'string' ? one.claim_as_read : one.claim
}

const isReadable = (given: string, most: number) =>
  given.length <= 2 * most && !/\p{Surrogate}/u.test(given) && (given.length <= most || [...given].length <= most)

/** The check `recomputed`: every difference is named. `found` has a member for each verdict, in its order. */
export function compareVerdicts({ verdicts }: Recomputable, found: readonly Recomputed[]): Check {
  const differences = verdicts.flatMap((given, i) => {
    const made = found[i]
    const where = verdicts.length > 1 ? `claim ${i + 1}: ` : ''
    return made ? differencesOf(given, made).map((difference) => where + difference) : [`${where}not recomputed`]
  })
  if (differences.length > 0) return { name: 'recomputed', ok: false, detail: differences.join('; ') }
  const said = [...new Set(found.map(({ claim_support }) => claim_support))].join(', ')
  return { name: 'recomputed', ok: true, detail: `the verifier says the same: ${said}` }
}

function differencesOf(given: Judged, made: Recomputed): string[] {
  const differences: string[] = []
  const differ = (name: string, here: string, again: string) =>
    here !== again && differences.push(`${name}: the file says ${here}, recomputed it is ${again}`)
  differ('claim_support', given.claim_support, made.claim_support)
  differ('explanation', JSON.stringify(given.explanation), JSON.stringify(made.explanation))
  differ('number of quotes', String(given.evidence.length), String(made.quotes.length))
  for (const [i, quote] of made.quotes.entries()) {
    const here = given.evidence[i]
    if (!here) continue
    differ(`quote ${i + 1}`, JSON.stringify(here.quote), JSON.stringify(quote.quote))
    differ(`stance of quote ${i + 1}`, here.stance, quote.stance)
    differ(`place of quote ${i + 1}`, `${here.start} to ${here.end}`, `${quote.start} to ${quote.end}`)
  }
  const flagsOf = (flags: readonly string[]) => FLAGS.filter((flag) => flags.includes(flag)).join(', ') || 'none'
  differ('risk flags', flagsOf(given.risk_flags), flagsOf(made.risk_flags))
  return differences
}
