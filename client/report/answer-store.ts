// The answers of quote checks that a caller keeps between runs: only successful ones, and only for a limited time.
import type { AnswerStore, Found } from './pages.ts'

interface Entry {
  final_url: string
  /** Texts of the page, each `exact` or `typographic`. */
  texts: Record<string, { match: 'exact' | 'typographic'; fragment_url: string | null; kept_at: string }>
  kept_at: string
}

interface Stored {
  version: 1
  service: string
  pages: Record<string, Entry>
}

/** Days for which an answer is kept. */
export const KEEP_DAYS = 7

/** Answers in memory, read from and written as JSON text. */
export class KeptAnswers implements AnswerStore {
  readonly #service: string
  readonly #now: number
  readonly #oldest: number
  readonly #pages = new Map<string, Entry>()

  /** Loads the recent answers of this service from `text`. Throws a SyntaxError for a text that is of something else. */
  constructor(text: string, service: string, now = Date.now(), keepDays = KEEP_DAYS) {
    this.#service = service
    this.#now = now
    this.#oldest = now - keepDays * 86_400_000
    for (const [url, entry] of Object.entries(readStored(text, service)?.pages ?? {})) {
      if (!isEntry(entry)) continue
      const texts = Object.entries(entry.texts).filter(([, kept]) => isHeld(kept) && this.#isYoung(kept.kept_at))
      if (this.#isYoung(entry.kept_at)) this.#pages.set(url, { ...entry, texts: Object.fromEntries(texts) })
    }
  }

  page(url: string): { finalUrl: string } | null {
    const entry = this.#pages.get(url)
    return entry ? { finalUrl: entry.final_url } : null
  }

  text(url: string, text: string): Found | null {
    const texts = this.#pages.get(url)?.texts
    const kept = texts && Object.hasOwn(texts, text) ? texts[text] : undefined
    return kept ? { match: kept.match, fragment_url: kept.fragment_url, nearest: null } : null
  }

  keep(url: string, finalUrl: string, found: ReadonlyMap<string, Found>): void {
    const kept_at = new Date(this.#now).toISOString()
    const old = this.#pages.get(url)?.texts ?? {}
    // A text that was kept before keeps its age.
    const fresh = [...found].flatMap(([text, { match, fragment_url }]) =>
      (match === 'exact' || match === 'typographic') && !Object.hasOwn(old, text)
        ? [[text, { match, fragment_url, kept_at }] as const]
        : [],
    )
    this.#pages.set(url, { final_url: finalUrl, texts: { ...old, ...Object.fromEntries(fresh) }, kept_at })
  }

  toText(): string {
    const stored: Stored = { version: 1, service: this.#service, pages: Object.fromEntries(this.#pages) }
    return `${JSON.stringify(stored, null, 1)}\n`
  }

  #isYoung(keptAt: string): boolean {
    const time = Date.parse(keptAt)
    return time > this.#oldest && time <= this.#now
  }
}

/** Null for an empty text, and for answers of another service or version. */
function readStored(text: string, service: string): Stored | null {
  if (text.trim() === '') return null
  const stored = JSON.parse(text) as Partial<Stored> | null
  if (typeof stored?.version !== 'number') throw new SyntaxError('it does not hold the answers of a check')
  return stored.version === 1 && stored.service === service && typeof stored.pages === 'object'
    ? (stored as Stored)
    : null
}

function isEntry(entry: unknown): entry is Entry {
  const { final_url, texts, kept_at } = (entry ?? {}) as Partial<Entry>
  return (
    typeof final_url === 'string' &&
    URL.canParse(final_url) &&
    typeof texts === 'object' &&
    texts !== null &&
    typeof kept_at === 'string'
  )
}

function isHeld(kept: unknown): boolean {
  const { match, fragment_url, kept_at } = (kept ?? {}) as Partial<Entry['texts'][string]>
  const isLink = fragment_url === null || typeof fragment_url === 'string'
  return (match === 'exact' || match === 'typographic') && isLink && typeof kept_at === 'string'
}
