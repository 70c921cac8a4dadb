// Verdicts on citations that a quote check cannot decide: which citations need a verdict, and their status after it.
import type { ClaimSupport } from '../result.ts'
import { headInWords } from '../verdict-words.ts'
import { groupHeld, type Judged, type Status, type Verdict } from './judgement.ts'
import { failureKind, pageOf } from './pages.ts'

/** What is asked of the service: whether the page supports the sentence. */
export interface Claim {
  source_url: string
  claim: string
}

/** Why a verdict that was wanted did not come. */
export interface NoVerdict {
  code: string
  message: string
}

/**
 * The claim that is left to verify for a citation: the sentence beside its link, or a text that could not be checked. Null
 * if the quote check has decided, if there is no sentence, or if the service does not accept such a claim.
 */
export function claimOf({ kind, status, sentence, url, parts }: Judged): Claim | null {
  const isOpen = status === 'unchecked' || (kind === 'claim' && (status === 'unverified' || status === 'moved'))
  const claim = sentence ?? parts.map(({ text }) => text).join(' … ')
  const source_url = pageOf(url)
  if (!isOpen || source_url === null || !/\p{L}|\p{N}/u.test(claim) || [...claim].length > MAX_CLAIM) return null
  return { source_url, claim }
}

/** Names a claim. Equal claims have equal names. */
export function nameOf({ source_url, claim }: Claim): string {
  return JSON.stringify([source_url, claim])
}

/** The claims that are left, each once, in the order of the report. */
export function claimsOf(judged: readonly Judged[]): Claim[] {
  const claims = judged.flatMap((one) => claimOf(one) ?? [])
  return [...new Map(claims.map((claim) => [nameOf(claim), claim])).values()]
}

/** The citations with their verdicts. A claim that `verdicts` does not name stays as it is. */
export function applyVerdicts(judged: readonly Judged[], verdicts: ReadonlyMap<string, Verdict | NoVerdict>): Judged[] {
  const all = judged.map((one) => {
    const claim = claimOf(one)
    const verdict = claim && verdicts.get(nameOf(claim))
    if (!verdict) return one
    return 'claimSupport' in verdict ? withVerdict(one, verdict) : withoutVerdict(one, verdict)
  })
  return groupHeld(all)
}

const STATUSES: Readonly<Record<ClaimSupport, Status>> = {
  supports: 'supported',
  contradicts: 'contradicted',
  mixed: 'mixed',
  insufficient_evidence: 'unsupported',
  not_assessed: 'unverified',
}

function withVerdict(one: Judged, verdict: Verdict): Judged {
  const { explanation } = verdict
  const claimSupport = verdict.isAssessed ? verdict.claimSupport : 'not_assessed'
  const { risk_flags = [], methodology_version } = verdict.result ?? {}
  const message = `${headInWords({ claim_support: claimSupport, risk_flags, methodology_version })}: ${explanation}`
  const isMoved = one.status === 'moved' && (claimSupport === 'supports' || claimSupport === 'not_assessed')
  if (isMoved) return { ...one, message: `${one.message}. ${message}`, verdict }
  return { ...one, status: STATUSES[claimSupport], code: null, message, verdict }
}

function withoutVerdict(one: Judged, { code, message }: NoVerdict): Judged {
  return { ...one, status: failureKind(code, message), code, message }
}

/** Code points of one claim: the service's limit. */
const MAX_CLAIM = 2000
