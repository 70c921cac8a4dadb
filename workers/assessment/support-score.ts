// Decides by a sum of weighted shares whether the cited lines have enough of a claim's words and numbers. The weights are
// fitted on data sets with annotated evidence: `node bench/eval/weights.ts` fits them again and prints how they perform on
// other pages.
import { type Coverage, nearnessOf, type Strengths, weightOf } from './coverage.ts'

/**
 * The weighted values, each from 0 to 1: the share of the claim's words and numbers that are absent in a place. The
 * denominator has a few more than all, because an absent word of a short claim means little.
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

/** Decreases with what is absent. Below `LEAST_SUPPORT_SCORE` the lines hardly support the claim. */
export function supportScore(absences: Absences): number {
  return ABSENCES.reduce((sum, name) => sum - WEIGHTS[name] * absences[name], INTERCEPT)
}

const INTERCEPT = 2.04
const WEIGHTS: Absences = { wordsNearby: 4.25, wordsOnPage: 2.39, numbersInLines: 2.44, numbersNearby: 1.97 }
/** Two in a hundred of the lines that support their claim are below it, and three in four of the lines that do not. */
export const LEAST_SUPPORT_SCORE = -1.3
const [FURTHER_WORDS, FURTHER_NUMBERS] = [2, 1]
