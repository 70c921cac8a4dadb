// Detects that the quoted lines have another name in the place of a name of the claim: "written by Anna Berg" where the
// claim has "written by Olaf Dahl", "a French film" where it has "an American film".
import { isContentTerm, type Query } from './query.ts'
import { type Token, tokensOf } from './tokens.ts'

/** A name of the claim, and the name in its place. */
export interface Substitution {
  claimed: string
  given: string
}

/**
 * The names of a claim that are not among the words on the page, and beside which the claim has words that the quotes
 * have beside another name. `onPage` holds the numbers of the claim's terms that the page has. Titles and abbreviations
 * replace names, so they do not count as other names.
 */
export function substitutedNames(query: Query, quotes: readonly string[], onPage: ReadonlySet<number>): Substitution[] {
  const contentTerms = new Set(query.terms.filter(isContentTerm).map(({ folded }) => folded))
  const numbers = new Map(query.terms.map(({ folded }, term) => [folded, term]))
  const said = new Set(query.tokens.map(({ folded }) => folded))
  const givenBeside = namesBeside(quotes, said)
  const isBeside = placesOf(quotes, said)
  return runsOfNames(query.tokens).flatMap(({ first, last }) => {
    // The subject may have many names, and a name of which the page has a part may be another spelling.
    const run = query.tokens.slice(first, last + 1)
    if (first <= 1 || run.some(({ folded }) => onPage.has(numbers.get(folded) ?? -1))) return []
    return run.flatMap((token, i) => {
      if (!contentTerms.has(token.folded)) return []
      // If the lines have the claimed name in that place too, it is one of several there.
      const others = contextsOf(query.tokens, first + i, contentTerms)
        .filter((context) => !isBeside.has(`${token.folded}${context}`))
        .flatMap((context) => givenBeside.get(context) ?? [])
      // Lawton, Oklahoma: two names side by side name one place, or are of one list.
      const isNextTo = (one: Token) => [-1, 1].some((step) => isBeside.has(`${token.folded}${step} ${one.folded}`))
      const other = others.find((one) => !areAlike(token, one) && !isNextTo(one))
      return other ? [{ claimed: token.raw, given: other.raw }] : []
    })
  })
}

/** The names in the quotes that the claim does not have, by the one or two words on either side. */
function namesBeside(quotes: readonly string[], said: ReadonlySet<string>): Map<string, Token[]> {
  const beside = new Map<string, Token[]>()
  for (const quote of quotes) {
    const tokens = tokensOf(quote)
    for (const [at, token] of tokens.entries()) {
      if (!isName(token) || said.has(token.folded)) continue
      for (const step of [-1, 1])
        for (const count of [1, 2]) {
          const context = contextOf(tokens, at, step, count)
          const names = beside.get(context)
          if (!names) beside.set(context, [token])
          else if (names.length < MOST_BESIDE) names.push(token)
        }
    }
  }
  return beside
}

/** The names of the claim with what the quotes have beside them. */
function placesOf(quotes: readonly string[], said: ReadonlySet<string>): Set<string> {
  const places = new Set<string>()
  for (const quote of quotes) {
    const tokens = tokensOf(quote)
    for (const [at, token] of tokens.entries()) {
      if (!isName(token) || !said.has(token.folded)) continue
      for (const step of [-1, 1])
        for (const count of [1, 2]) places.add(`${token.folded}${contextOf(tokens, at, step, count)}`)
    }
  }
  return places
}

/** On either side, the words up to the first content word, which must be within two words. */
function contextsOf(tokens: readonly Token[], at: number, contentTerms: ReadonlySet<string>): string[] {
  return [-1, 1].flatMap((step) => {
    const [near, far] = [tokens[at + step]?.folded, tokens[at + 2 * step]?.folded]
    if (near === undefined) return []
    if (contentTerms.has(near)) return [contextOf(tokens, at, step, 1)]
    return far !== undefined && contentTerms.has(far) ? [contextOf(tokens, at, step, 2)] : []
  })
}

/** One or two words on one side of a place; no token has a space. */
function contextOf(tokens: readonly Token[], at: number, step: number, count: number): string {
  const words = Array.from({ length: count }, (_, i) => tokens[at + step * (i + 1)]?.folded ?? '')
  return `${step} ${words.join(' ')}`
}

/** Names in a row, by the first and the last of their tokens. */
function runsOfNames(tokens: readonly Token[]): { first: number; last: number }[] {
  const runs: { first: number; last: number }[] = []
  for (const [at, token] of tokens.entries()) {
    if (!isName(token)) continue
    const run = runs.at(-1)
    if (run && run.last === at - 1) run.last = at
    else runs.push({ first: at, last: at })
  }
  return runs
}

function isName({ raw, kind }: Token): boolean {
  return kind === 'word' && /^\p{Lu}\p{M}*\p{Ll}/u.test(raw) && !STANDS_FOR_NAME.test(raw)
}

/** Two spellings of one name, or its short form. */
function areAlike(one: Token, other: Token): boolean {
  return one.folded.slice(0, 2) === other.folded.slice(0, 2)
}

/** Most names in one context; the first that is not a spelling of the claimed name counts. */
const MOST_BESIDE = 8
const STANDS_FOR_NAME =
  /^(?:President|Prime|Minister|Chancellor|Secretary|Governor|Mayor|Senator|Representative|King|Queen|Prince|Princess|Pope|Sir|Dame|Lord|Lady|Mrs?|Ms|Dr|Professor|Judge|Justice|Captain|General|Colonel|Coach|Director|States|Kingdom|The|An?|In|On|At|By|He|She|It|They|His|Her|Its|This|That)$/
