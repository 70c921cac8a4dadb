// Whether lines that are named for a claim say enough of it, by a sum of weighted shares. The weights were fitted on claims
// whose evidence others have marked: `node bench/eval/weights.ts` fits them again and prints how they hold on other pages.
import { type Coverage, nearnessOf, type Strengths, weightOf } from './coverage.ts'

/**
 * What is weighed, each from 0 to 1: the claim's words and numbers that are absent in a place, as a share of all and a few
 * more, because what is absent of a short claim tells little.
 */
export const ABSENCES = ['wordsNearby', 'wordsOnPage', 'numbersInLines', 'numbersNearby'] as const
export type Absences = Record<(typeof ABSENCES)[number], number>

export function absencesOf({ words, numbers, inLines, nearby, onPage }: Coverage): Absences {
  const all = weightOf(words)
  const absentWords = (found: Strengths) => (all - nearnessOf(words, found)) / (all + FURTHER_WORDS)
  const absentNumbers = (found: number) => (numbers - found) / (numbers + FURTHER_NUMBERS)
  return {
    wordsNearby: absentWords(nearby.terms),
    wordsOnPage: absentWords(onPage.terms),
    numbersInLines: absentNumbers(inLines.numbers),
    numbersNearby: absentNumbers(nearby.numbers),
  }
}

/** Falls with what is absent; below `LEAST_BEARING` the lines hardly support the claim. */
export function bearing(absences: Absences): number {
  return ABSENCES.reduce((sum, name) => sum - WEIGHTS[name] * absences[name], INTERCEPT)
}

const INTERCEPT = 2.04
const WEIGHTS: Absences = { wordsNearby: 4.25, wordsOnPage: 2.39, numbersInLines: 2.44, numbersNearby: 1.97 }
/** Of lines that do support their claim two in a hundred are below it, and three in four of those that do not. */
export const LEAST_BEARING = -1.3
const [FURTHER_WORDS, FURTHER_NUMBERS] = [2, 1]
