// Names of a claim in whose place the quoted lines have another: "written by Anna Berg" where the claim has "written by
// Olaf Dahl", "a French film" where it has "an American film".
import { isTelling, type Query } from './query.ts'
import { type Token, tokensOf } from './tokens.ts'

/** A name of the claim, and the one that stands in its place. */
export interface Substitution {
  claimed: string
  given: string
}

/**
 * The names of a claim that are not among the words on the page, and beside which the claim has words that the quotes
 * have beside another name. `onPage` holds the numbers of the claim's terms that the page has. Titles and abbreviations
 * stand for names, so they are no others.
 */
export function substitutedNames(query: Query, quotes: readonly string[], onPage: ReadonlySet<number>): Substitution[] {
  const telling = new Set(query.terms.filter(isTelling).map(({ folded }) => folded))
  const numbers = new Map(query.terms.map(({ folded }, term) => [folded, term]))
  const said = new Set(query.tokens.map(({ folded }) => folded))
  const given = quotes.map((quote) => tokensOf(quote))
  const isAnyOnPage = (first: number, last: number) =>
    query.tokens.slice(first, last + 1).some(({ folded }) => onPage.has(numbers.get(folded) ?? -1))
  return query.tokens.flatMap((token, at) => {
    if (!isName(token) || !telling.has(token.folded)) return []
    const [first, last] = runOfNames(query.tokens, at)
    // The subject goes by many names, and a name of which the page has a part is another spelling.
    if (first <= 1 || isAnyOnPage(first, last)) return []
    const contexts = contextsOf(query.tokens, at, telling)
    for (const tokens of given)
      for (const [j, other] of tokens.entries()) {
        if (!isName(other) || said.has(other.folded) || areAlike(token, other)) continue
        if (contexts.some(({ step, words }) => words.every((word, i) => tokens[j + step * (i + 1)]?.folded === word)))
          return [{ claimed: token.raw, given: other.raw }]
      }
    return []
  })
}

/** On either side the words up to the first that tells, of which there is one within two. `step` is their direction. */
function contextsOf(tokens: readonly Token[], at: number, telling: ReadonlySet<string>) {
  return [-1, 1].flatMap((step) => {
    const [near, far] = [tokens[at + step]?.folded, tokens[at + 2 * step]?.folded]
    if (near === undefined) return []
    if (telling.has(near)) return [{ step, words: [near] }]
    return far !== undefined && telling.has(far) ? [{ step, words: [near, far] }] : []
  })
}

/** The first and the last of the names in a row to which one belongs. */
function runOfNames(tokens: readonly Token[], at: number): [first: number, last: number] {
  let [first, last] = [at, at]
  while (first > 0 && isName(tokens[first - 1]!)) first--
  while (last + 1 < tokens.length && isName(tokens[last + 1]!)) last++
  return [first, last]
}

function isName({ raw, kind }: Token): boolean {
  return kind === 'word' && /^\p{Lu}\p{M}*\p{Ll}/u.test(raw) && !STANDS_FOR_NAME.test(raw)
}

/** Two spellings of one name, or its short form. */
function areAlike(one: Token, other: Token): boolean {
  return one.folded.slice(0, 2) === other.folded.slice(0, 2)
}

const STANDS_FOR_NAME =
  /^(?:President|Prime|Minister|Chancellor|Secretary|Governor|Mayor|Senator|Representative|King|Queen|Prince|Princess|Pope|Sir|Dame|Lord|Lady|Mrs?|Ms|Dr|Professor|Judge|Justice|Captain|General|Colonel|Coach|Director|States|Kingdom|The|An?|In|On|At|By|He|She|It|They|His|Her|Its|This|That)$/
