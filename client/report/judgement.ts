// The finding for each citation of a report, from what the pages say.
import type { ClaimSupport, VerificationResult } from '../result.ts'
import type { Citation } from './citations.ts'
import { type Found, type PageAnswer, pageOf, type Wanted } from './pages.ts'
import type { Part } from './pairing.ts'

/**
 * `ok`: the page has the words. `typographic`: it has them but for white space, quotation marks, dashes and case. `wrong`: it does
 * not have them. `dead`: the page cannot be reached. `moved`: it is at another address, and has the words, if any.
 * `unverified`: a sentence or a bare link; the page exists. `unreadable`: the service cannot read the page. `unchecked`:
 * the check did not reach it. By a verdict: `supported`, `contradicted`, `mixed`, and `unsupported` where the page has not
 * enough evidence.
 */
export type Status =
  | 'ok'
  | 'typographic'
  | 'supported'
  | 'unverified'
  | 'moved'
  | 'unreadable'
  | 'mixed'
  | 'wrong'
  | 'dead'
  | 'contradicted'
  | 'unsupported'
  | 'unchecked'

export type Level = 'error' | 'warning' | 'note' | 'none'

export const LEVELS: Readonly<Record<Status, Level>> = {
  ok: 'none',
  typographic: 'none',
  supported: 'none',
  unverified: 'note',
  moved: 'warning',
  unreadable: 'warning',
  mixed: 'warning',
  wrong: 'error',
  dead: 'error',
  contradicted: 'error',
  unsupported: 'error',
  unchecked: 'error',
}

/** A verdict that was bought, now or earlier. */
export interface Verdict {
  claimSupport: ClaimSupport
  /** False where the service only looked for quotations, and says nothing about the claim. */
  isAssessed: boolean
  explanation: string
  /** The best quote, and a link that marks it on its page. */
  quote: string | null
  fragmentUrl: string | null
  requestId: string
  receiptSerial: number
  /** RFC 3339; when the page was read. */
  checkedAt: string
  /** Whether it was bought by this run. */
  isNew: boolean
  /** What the service answered, for the page of the check. */
  result?: VerificationResult
}

export interface JudgedPart extends Part {
  /** Null if the page could not be reached. */
  found: Found | null
}

export interface Judged extends Omit<Citation, 'parts'> {
  parts: JudgedPart[]
  status: Status
  /** One sentence for people, without a full stop where it ends in words of a page. */
  message: string
  /** The code of what went wrong with the page. */
  code: string | null
  finalUrl: string | null
  /** Null where none was bought. */
  verdict: Verdict | null
}

/** The texts to search on each page. Pages that the service cannot read are left out. */
export function wantedOf(citations: readonly Citation[]): Map<string, Wanted> {
  const wanted = new Map<string, Wanted>()
  for (const citation of citations) {
    const page = pageOf(citation.url)
    if (page === null) continue
    const { texts, probes } = wanted.get(page) ?? { texts: new Set(), probes: new Set() }
    for (const { text } of citation.parts) texts.add(text)
    if (citation.parts.length === 0) probes.add(probeOf(citation))
    wanted.set(page, { texts, probes })
  }
  return wanted
}

/**
 * A text to search on a page that is only checked for existence. A sentence that the page has word for word counts as
 * `ok`.
 */
function probeOf({ sentence, url }: Citation): string {
  return [...(sentence ?? decoded(new URL(url)))].slice(0, MAX_PROBE).join('')
}

const MAX_PROBE = 1000

/** The words of an address, for a link that stands alone. */
function decoded({ hostname, pathname }: URL): string {
  try {
    return `${hostname} ${decodeURIComponent(pathname)}`
      .replace(/[/_+-]+/g, ' ')
      .trim()
      .toWellFormed()
  } catch {
    return hostname
  }
}

export function judge(citations: readonly Citation[], answers: ReadonlyMap<string, PageAnswer>): Judged[] {
  return groupHeld(citations.map((citation) => judgeOne(citation, answers.get(pageOf(citation.url) ?? ''))))
}

/** Of the pages cited for one quotation, one must have it. */
export function groupHeld(judged: readonly Judged[]): Judged[] {
  const held = new Set(judged.flatMap((one) => (one.group !== null && isHeld(one) ? [one.group] : [])))
  return judged.map((one) => {
    const isAway = one.status === 'wrong' || one.status === 'unsupported'
    if (one.group === null || !isAway || !held.has(one.group)) return one
    return { ...one, status: 'unverified', message: 'The quotation is on another of the pages cited for it.' }
  })
}

const HELD: ReadonlySet<Status> = new Set(['ok', 'typographic', 'moved', 'supported'])
const isHeld = ({ parts, status }: Judged) => parts.length > 0 && HELD.has(status)

function judgeOne(citation: Citation, answer: PageAnswer | undefined): Judged {
  const found = (text: string) => answer?.found.get(text) ?? null
  const parts = citation.parts.map((part) => ({ ...part, found: found(part.text) }))
  const { failure = null, finalUrl = null } = answer ?? {}
  const base = { ...citation, parts, code: failure?.code ?? null, finalUrl, verdict: null }
  if (!answer) return { ...base, status: 'unreadable', message: 'The address is longer than the service reads.' }
  // An answer of an earlier run may still be valid for a page that was not requested in this run.
  if (failure?.kind === 'unchecked' && parts.length > 0 && parts.every((part) => part.found))
    return { ...base, ...wordsHold(parts) }
  if (failure) return { ...base, status: failure.kind, message: failure.message }
  const words = citation.parts.length > 0 ? judgeParts(parts, citation) : judgeSentence(found(probeOf(citation)))
  const isMoved = finalUrl !== null && !isSamePage(pageOf(citation.url) ?? '', finalUrl)
  if (words.status === 'wrong' || !isMoved) return { ...base, ...words }
  return { ...base, status: 'moved', message: `The page is now at ${finalUrl}` }
}

type Judgement = Pick<Judged, 'status' | 'message'>

function judgeParts(parts: readonly JudgedPart[], { mayBeTitle, kind }: Citation): Judgement {
  const failing = parts.find(({ found }) => found?.match === 'near' || found?.match === 'absent' || !found)
  if (!failing) return wordsHold(parts)
  const { found } = failing
  if (mayBeTitle && (found?.nearest?.similarity ?? 0) < LIKE_A_QUOTATION)
    return { status: 'unverified', message: 'The page has no such words; they may be a title.' }
  const what = kind === 'fragment' ? 'The page does not have the text of the fragment' : 'The page does not say this'
  return { status: 'wrong', message: found?.nearest ? `${what}; it says: ${found.nearest.text}` : `${what}.` }
}

/** From this similarity on, words that may be a title are a quotation that was changed. */
const LIKE_A_QUOTATION = 0.8

function wordsHold(parts: readonly JudgedPart[]): Judgement {
  if (parts.every(({ found }) => found?.match === 'exact'))
    return { status: 'ok', message: 'The page has these words.' }
  return {
    status: 'typographic',
    message: 'The page has these words but for white space, quotation marks, dashes or case.',
  }
}

function judgeSentence(found: Found | null): Judgement {
  if (found?.match === 'exact' || found?.match === 'typographic')
    return { status: found.match === 'exact' ? 'ok' : 'typographic', message: 'The page says this word for word.' }
  return { status: 'unverified', message: 'The page is there. Whether it says this was not verified.' }
}

/** Equal but for `www.`, a slash or `index.html` at the end, the query and the fragment. */
function isSamePage(one: string, other: string): boolean {
  return placeOf(one) === placeOf(other)
}

function placeOf(url: string): string {
  const { host, pathname } = new URL(url)
  const path = pathname.replace(/\/(?:index\.html?)?$/, '').replace(/%[\da-f]{2}/gi, (octet) => octet.toUpperCase())
  return `${host.replace(/^www\./, '')}${path}`
}
