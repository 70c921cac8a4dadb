// Detects that the quoted lines have another rank in the place of the claim's rank: "the third lady" where they say "the
// first lady". English.

/**
 * Whether the lines give one rank of a thing, and the claim another. Lines with several ranks are about several things, one
 * of which the claim may mean.
 */
export function hasOtherRank(claim: string, lines: string): boolean {
  const given = ranksOf(lines)
  for (const [thing, ranks] of ranksOf(claim)) {
    const others = given.get(thing)
    if (others?.size === 1 && [...ranks].every((rank) => !others.has(rank))) return true
  }
  return false
}

/** The ranks in a text, by the word behind them. */
function ranksOf(text: string): Map<string, Set<number>> {
  const found = new Map<string, Set<number>>()
  for (const [, word = '', digits, thing = ''] of text.toLowerCase().matchAll(RANKED)) {
    const rank = digits === undefined ? RANKS.indexOf(word) + 1 : Number(digits)
    found.set(thing, (found.get(thing) ?? new Set()).add(rank))
  }
  return found
}

const RANKS = 'first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth'.split(' ')
const RANKED = new RegExp(
  `(?<![\\p{L}\\p{Nd}])(${RANKS.join('|')}|(\\p{Nd}{1,3})(?:st|nd|rd|th))[ -](\\p{L}{3,30})`,
  'gu',
)
