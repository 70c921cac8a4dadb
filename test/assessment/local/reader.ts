// The local verifier's own steps, as test/readers.ts counts them: the choice of passages, and a whole assessment with a model that costs
// nothing.
import { LIMITS } from '../../../server/interface/limits.ts'
import { assessLocally } from '../../../workers/assessment/local/assessment.ts'
import type { Verifier } from '../../../workers/assessment/local/verifier.ts'
import { settings } from '../../../workers/assessment/local/weights.ts'
import { chooseWindows, sentencesOf } from '../../../workers/assessment/local/windows.ts'
import type { Build } from '../../readers.ts'
import { fill } from '../../text/hostile-pages.ts'

/** Its logits differ between passages and sides, so that a text is quoted for both. */
const verifier: Verifier = {
  settings,
  logits: async (_claim, passage) => [(passage.length % 3) * 9, (passage.length % 5) * 6, 0],
  [Symbol.asyncDispose]: async () => {},
}

/** The longest claim that has as many terms as it can. */
const MANY_TERMS = Array.from({ length: LIMITS.claimChars / 4 }, (_, i) => i.toString(36).padStart(3, 'q')).join(' ')

/** A text in which each sentence has these few words of English, because of other languages nothing is read. */
const inEnglish = (unit: string) => (size: number) => fill(size, `The harbour was not for them. ${unit}`)

export const sentences: Readonly<Record<string, Build>> = {
  'sentences of one word': (size) => fill(size, 'The. '),
  'sentences of one term': (size) => fill(size, 'Qqq. '),
  'lines of one word': (size) => fill(size, 'the\n'),
  'one sentence': (size) => fill(size, 'the harbour '),
  'blanks after an end': (size) => fill(size, '. ', 'The harbour was there.', ' '.repeat(size / 2)),
  'many terms': (size) => fill(size, `${MANY_TERMS}. The `),
}

/** @param units parts of which a text may consist */
export const englishTexts = (units: readonly string[]): Record<string, Build> => ({
  ...sentences,
  ...Object.fromEntries(units.map((unit) => [`English with ${JSON.stringify(unit)}`, inEnglish(unit)])),
})

/** Work that a long claim costs with each sentence would hide what the number of sentences costs. */
const CLAIM = 'The harbour was opened in 1874.'

/** For a claim, what the text is costs the same with each. */
const TEXT = inEnglish('It was opened in 1874 by the county, q00 to q0z. ')(16_384)

/** Of at most as many characters as a claim has. */
export const claims: Readonly<Record<string, Build>> = {
  'terms, each another': (size) => MANY_TERMS.slice(0, size),
  'words of the text': (size) => fill(size, 'harbour opened county '),
}

const choose = (text: string, claim: string) => chooseWindows(sentencesOf(text), claim, settings.windows)

export const localReaders = {
  choice: (text: string) => choose(text, CLAIM),
  longChoice: (text: string) => [text.slice(0, LIMITS.claimChars), MANY_TERMS].map((claim) => choose(text, claim)),
  claim: (claim: string) => assessLocally(verifier, TEXT, claim.slice(0, LIMITS.claimChars)),
  assessment: (text: string) => assessLocally(verifier, text, CLAIM),
}
