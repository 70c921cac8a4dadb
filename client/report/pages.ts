// Asks the service's free quote check about the pages that a report cites: as few pages as possible, several at a time, and
// as long as the service and the day's limit allow.
import { type Clock, systemClock } from '../clock.ts'
import { CountersignError } from '../error.ts'
import type { QuoteCheck, QuoteCheckOperations } from '../operations/quote-check.ts'

/** What is known of one text on one page. */
export interface Found {
  match: 'exact' | 'typographic' | 'near' | 'absent'
  fragment_url: string | null
  nearest: { text: string; similarity: number } | null
}

/**
 * `dead`: the page cannot be reached. `unreadable`: people may be able to read it, but the service cannot. `unchecked`: it
 * was not requested, or not completely.
 */
export interface PageFailure {
  kind: 'dead' | 'unreadable' | 'unchecked'
  code: string
  message: string
}

export interface PageAnswer {
  /** Null where `failure` is not. */
  finalUrl: string | null
  failure: PageFailure | null
  found: Map<string, Found>
}

/** What is asked of one page. */
export interface Wanted {
  /** Must be answered. */
  texts: Set<string>
  /** Sent if there is space, or if there is no other text to search on the page. */
  probes: Set<string>
}

/** Answers of earlier runs; only successful ones. */
export interface AnswerStore {
  page(url: string): { finalUrl: string } | null
  text(url: string, text: string): Found | null
  keep(url: string, finalUrl: string, found: Map<string, Found>): void
}

export interface AskOptions {
  store?: AnswerStore
  onProgress?: (done: number, all: number) => void
  clock?: Clock
  signal?: AbortSignal
}

/** Pages at a time: what an account of the free tier has. */
const AT_ONCE = 4
/** Milliseconds for one answer: a host may ask for pauses of up to five minutes. */
const TIMEOUT_MS = 360_000
/** What a service asks for beyond that is not waited for. */
const MAX_PAUSE_S = 300
const MAX_TEXTS = 20
/** Of the texts of one call, in UTF-8 as JSON: a body may have 65,536. */
const MAX_BYTES = 60_000
const MAX_URL = 2048
/** Times that one call is sent again because too much is under way. */
const MAX_REFUSALS = 100
const MAX_BREAKS = 3

/**
 * The address under which the service reads a page: https, without a fragment, and a URI of RFC 3986, which escapes some
 * characters that browsers keep. Null for one it cannot read.
 */
export function pageOf(url: string): string | null {
  const page = new URL(url)
  page.hash = ''
  page.pathname = escapeForeign(page.pathname)
  if (page.search !== '') page.search = escapeForeign(page.search)
  const { href } = page
  const secure = href.replace(/^http:/, 'https:')
  return secure.length > MAX_URL ? null : secure
}

function escapeForeign(part: string): string {
  return part.replace(/[[\]\\^`{|}"<>]|%(?![0-9A-Fa-f]{2})/g, (character) => encodeURIComponent(character))
}

/** Throws the CountersignError of a service that refuses the caller or is not there. */
export async function askPages(
  service: Pick<QuoteCheckOperations, 'checkQuotes'>,
  wanted: ReadonlyMap<string, Wanted>,
  options: AskOptions = {},
): Promise<Map<string, PageAnswer>> {
  const answers = new Map<string, PageAnswer>()
  const pages = [...wanted]
  const asker = new Asker(service, options)
  const work = async () => {
    for (let next = pages.shift(); next; next = pages.shift()) {
      const [url, { texts, probes }] = next
      answers.set(url, await asker.ask(url, texts, probes))
      options.onProgress?.(answers.size, wanted.size)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return answers
}

class Asker {
  readonly #service: Pick<QuoteCheckOperations, 'checkQuotes'>
  readonly #store: AnswerStore | undefined
  readonly #clock: Clock
  readonly #signal: AbortSignal
  /** Why no further page is asked for. */
  #over: PageFailure | null = null

  constructor(service: Pick<QuoteCheckOperations, 'checkQuotes'>, { store, clock, signal }: AskOptions) {
    this.#service = service
    this.#store = store
    this.#clock = clock ?? systemClock
    this.#signal = signal ?? new AbortController().signal
  }

  async ask(url: string, texts: ReadonlySet<string>, probes: ReadonlySet<string>): Promise<PageAnswer> {
    const found = new Map<string, Found>()
    for (const text of [...texts, ...probes]) {
      const kept = this.#store?.text(url, text)
      if (kept) found.set(text, kept)
    }
    let finalUrl = this.#store?.page(url)?.finalUrl ?? null
    const missing = [...texts].filter((text) => !found.has(text))
    if (missing.length === 0 && finalUrl !== null) return { finalUrl, failure: null, found }
    const asked = batches(
      missing,
      [...probes].filter((text) => !found.has(text)),
    )
    for (const quotes of asked) {
      const answer = await this.#call(url, quotes)
      if ('kind' in answer) return { finalUrl: null, failure: answer, found }
      finalUrl = answer.source.final_url
      for (const { quote, match, fragment_url, nearest } of answer.quotes)
        found.set(quote, {
          match,
          fragment_url,
          nearest: nearest && { text: nearest.text, similarity: nearest.similarity },
        })
    }
    if (finalUrl !== null) this.#store?.keep(url, finalUrl, found)
    return { finalUrl, failure: null, found }
  }

  /** One call, repeated where the service asks for it. */
  async #call(url: string, quotes: string[]): Promise<QuoteCheck | PageFailure> {
    let refusals = 0
    let breaks = 0
    let hasRepeated = false
    for (;;) {
      if (this.#over) return this.#over
      try {
        return await this.#service.checkQuotes(
          { source_url: url, quotes },
          { timeoutMs: TIMEOUT_MS, signal: this.#signal },
        )
      } catch (error) {
        if (!(error instanceof CountersignError)) throw error
        if (error.code === 'daily_limit') {
          this.#over ??= { kind: 'unchecked', code: error.code, message: error.message }
          return this.#over
        }
        const seconds = error.retryAfter ?? 1
        const isLong = seconds > MAX_PAUSE_S
        const pause = () => this.#clock.sleep(seconds * 1000, this.#signal)
        if (error.code === 'rate_limited' && isLong) {
          const message = `${error.message} The service asks to wait ${seconds} seconds.`
          this.#over ??= { kind: 'unchecked', code: error.code, message }
          return this.#over
        }
        if (error.code === 'rate_limited' && ++refusals <= MAX_REFUSALS) await pause()
        else if (isBroken(error) && ++breaks <= MAX_BREAKS) await this.#clock.sleep(1000 * 2 ** breaks, this.#signal)
        else {
          const failure = failureOf(error)
          // A temporary failure is tried once more, so that a page that was unavailable for a moment is not reported as
          // dead.
          if (failure.kind !== 'dead' || !error.retryable || hasRepeated || isLong) return failure
          hasRepeated = true
          await pause()
        }
      }
    }
  }
}

/** Whether the service may be whole again after a pause. Another program at its address stays another program. */
const isBroken = ({ code, status, retryable }: CountersignError) =>
  code === 'network_error' || (code === 'unexpected_response' ? retryable : status !== null && status >= 500)

/** Throws the error where it is none of a page. */
function failureOf(error: CountersignError): PageFailure {
  const { code, message, status } = error
  const failure = (kind: PageFailure['kind']) => ({ kind, code, message })
  if (code === 'rate_limited' || code === 'deadline_exceeded' || code === 'execution_failed')
    return failure('unchecked')
  if (status === 400) return failure('unreadable')
  if (!code.startsWith('source_')) throw error
  return failure(failureKind(code, message))
}

/** What an error says about a page; `unchecked` where it is not about the page. */
export function failureKind(code: string, message: string): PageFailure['kind'] {
  if (!code.startsWith('source_')) return 'unchecked'
  if (code !== 'source_http_status') return DEAD.has(code) ? 'dead' : 'unreadable'
  // Answers that a person with a browser may not get.
  return /\b(401|403|407|429|451)\b/.test(message) ? 'unreadable' : 'dead'
}

const DEAD = new Set([
  'source_dns_failed',
  'source_unreachable',
  'source_timeout',
  'source_tls_invalid',
  'source_not_found',
  'source_protocol_error',
  'source_redirect_invalid',
  'source_too_many_redirects',
])

/** Calls that take all texts; probes fill the last one. */
function batches(texts: readonly string[], probes: readonly string[]): string[][] {
  const calls: string[][] = [[]]
  let bytes = 0
  const add = (text: string, mayOpen: boolean) => {
    const size = encoder.encode(JSON.stringify(text)).length
    const isFull = calls.at(-1)!.length >= MAX_TEXTS || (bytes + size > MAX_BYTES && bytes > 0)
    if (isFull && !mayOpen) return
    if (isFull) {
      calls.push([])
      bytes = 0
    }
    calls.at(-1)!.push(text)
    bytes += size
  }
  for (const text of texts) add(text, true)
  for (const text of probes) add(text, false)
  return calls.filter((call) => call.length > 0)
}

const encoder = new TextEncoder()
