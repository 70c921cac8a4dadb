// Finds the tokens of a text that are a claim's terms, or related to them.
import { isContentTerm, LONGEST_GRAM, type Term } from './query.ts'
import type { TokenKind } from './tokens.ts'
import { SHORTEST_PREFIX, type Stemmed, stemmed, wordSimilarity } from './word-similarity.ts'

/**
 * Calls `hit` for every content term that ends with this token; `strength` is 1, or less for a word that is only related.
 */
export type TermReader = (folded: string, kind: TokenKind, start: number, end: number, hit: HitVisitor) => void
export type HitVisitor = (term: number, strength: number) => void

/**
 * Prepares a search for terms, and returns a function that starts to read one text; its reader gets the tokens in order.
 * Each word is examined once, for all its occurrences in all texts.
 */
export function termIndex(terms: readonly Term[]): () => TermReader {
  const exact = new Map(terms.map((term, number) => [term.folded, { number, isContent: isContentTerm(term) }]))
  const findRelated = relatedTermFinder(terms)
  const relatedTerms = new Map<string, readonly RelatedTerm[]>()
  return () => openReader(exact, relatedTerms, findRelated)
}

/** A term by its number, and whether it is a content term. */
interface ExactTerm {
  number: number
  isContent: boolean
}

function openReader(
  exact: ReadonlyMap<string, ExactTerm>,
  relatedTerms: Map<string, readonly RelatedTerm[]>,
  findRelated: (word: string) => RelatedTerm[],
): TermReader {
  const readDense = denseReader(exact)
  const readJoined = joinedReader(exact)
  return (folded, kind, start, end, hit) => {
    readJoined(folded, kind, start, end, hit)
    if (kind === 'dense') return readDense(folded, kind, start, end, hit)
    const term = exact.get(folded)
    if (term?.isContent) hit(term.number, 1)
    if (term || kind === 'number') return
    let related = relatedTerms.get(folded)
    if (related === undefined) {
      related = findRelated(folded)
      relatedTerms.set(folded, related)
    }
    for (const { term: other, strength } of related) hit(other, strength)
  }
}

/** A name whose number the page writes separately, or as a subscript: CO 2 for CO2. */
function joinedReader(exact: ReadonlyMap<string, ExactTerm>): TermReader {
  let word = ''
  let wordEnd = -1
  return (folded, kind, start, end, hit) => {
    if (kind === 'number' && word !== '' && start === wordEnd + 1) {
      const term = exact.get(word + folded)
      if (term?.isContent) hit(term.number, 1)
    }
    word = kind === 'word' ? folded : ''
    wordEnd = end
  }
}

/** Looks up the sequences that end with a dense token, from the shortest to the longest. */
function denseReader(exact: ReadonlyMap<string, ExactTerm>): TermReader {
  const recent: string[] = []
  let recentEnd = -1
  return (folded, _kind, start, end, hit) => {
    if (start !== recentEnd) recent.length = 0
    recentEnd = end
    recent.push(folded)
    if (recent.length > LONGEST_GRAM) recent.shift()
    let gram = ''
    for (let i = recent.length - 1; i >= 0; i--) {
      gram = recent[i] + gram
      const term = exact.get(gram)
      if (term) hit(term.number, 1)
    }
  }
}

/** A term that a word is related to, and the strength of the relation. */
interface RelatedTerm {
  term: number
  strength: number
}

/** Finds the terms that a word is related to, among terms that begin like it. */
function relatedTermFinder(terms: readonly Term[]): (word: string) => RelatedTerm[] {
  const byBeginning = new Map<string, { term: number; form: Stemmed }[]>()
  for (const [number, term] of terms.entries()) {
    if (!isContentTerm(term)) continue
    for (const form of formsOf(term.folded)) {
      const alike = byBeginning.get(form.slice(0, SHORTEST_PREFIX)) ?? []
      // A claim whose words all begin alike must not make every word of the text expensive.
      if (alike.length < MOST_ALIKE)
        byBeginning.set(form.slice(0, SHORTEST_PREFIX), [...alike, { term: number, form: stemmed(form) }])
    }
  }
  return (word) => {
    const found: RelatedTerm[] = []
    for (const form of formsOf(word)) {
      const alike = byBeginning.get(form.slice(0, SHORTEST_PREFIX))
      if (!alike) continue
      const own = stemmed(form)
      for (const other of alike) keepNearest(found, other.term, wordSimilarity(own, other.form))
    }
    return found
  }
}

function keepNearest(found: RelatedTerm[], term: number, strength: number): void {
  if (strength === 0) return
  for (const one of found)
    if (one.term === term) {
      one.strength = Math.max(one.strength, strength)
      return
    }
  found.push({ term, strength })
}

/** The word, and in Hebrew also what is left without the particles written onto its beginning. */
function formsOf(word: string): string[] {
  const bare = word.replace(HEBREW_PARTICLES, '')
  return bare === word ? [word] : [word, bare]
}

const MOST_ALIKE = 16
const HEBREW_PARTICLES = /^[והבלכמש]{1,2}(?=[א-ת]{3})/
