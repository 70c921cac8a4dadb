// The parts of a claim that each need evidence: "it opened in 1874 and burned down in 1901" is two statements. A part has
// its own content words; an addition, such as the second of two names, belongs to the part before it.
import { agreeAcrossUnits } from './measures.ts'
import { quantitiesOf } from './quantities.ts'
import { isContentTerm, readClaim } from './query.ts'
import { searchText } from './search.ts'
import { sentencesOf } from './sentences.ts'

/** The claim, split into its statements, in order. A claim with one statement is one part. */
export function claimParts(claim: string): string[] {
  const parts: string[] = []
  for (const { start, end } of sentencesOf(claim).slice(0, MOST_PARTS)) {
    let begun = ''
    for (const piece of claim.slice(start, end).split(SEAM)) {
      begun += piece
      if (countContentTerms(begun) < LEAST_OF_PART) continue
      parts.push(begun)
      begun = ''
    }
    if (begun !== '') parts.push((parts.pop() ?? '') + begun)
  }
  return parts.slice(0, MOST_PARTS).map((part) => part.replace(ENDS, ''))
}

/** The parts of which the lines have neither a content word nor a number. For a claim with one part: none, or this part. */
export function partsWithout(claim: string, lines: string): string[] {
  const parts = claimParts(claim)
  if (parts.length < 2) return []
  const given = quantitiesOf(lines).slice(0, MOST_GIVEN)
  const sentences = sentencesOf(lines)
  return parts.filter((part) => {
    const query = readClaim(part)
    const { frequencies } = searchText(query, lines, sentences)
    if (query.terms.some((term, i) => isContentTerm(term) && (frequencies[i] ?? 0) > 0)) return false
    return !quantitiesOf(part)
      .slice(0, MOST_OF_PART)
      .some((one) => given.some((other) => agreeAcrossUnits(one, other)))
  })
}

function countContentTerms(text: string): number {
  return readClaim(text).terms.filter(isContentTerm).length
}

/** The place before the mark or word that adds another statement, or after the mark if no space follows it. */
const SEAM =
  /(?<=[;:；：，、])|(?=,? (?:and|but|while|whereas|although|though|because|who|whose|which|und|aber|während|obwohl|weil|et|mais|tandis|bien que|parce que|y|pero|mientras|aunque|porque|e|mas|enquanto|embora)(?= ))|(?<=,)(?= )/u
const ENDS = /^[\s,;:；：，、]+|[\s,;:；：，、.!?。]+$/gu
/** Content terms. */
const LEAST_OF_PART = 3
const MOST_PARTS = 12
/** Most quantities of a part, and of the lines that each is compared with. */
const [MOST_OF_PART, MOST_GIVEN] = [8, 200]
