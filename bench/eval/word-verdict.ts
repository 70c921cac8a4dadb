// The peer of verdicts: BM25 with words. It takes the best sentence of BM25 and compares its words with the claim's; it has no
// model.
import { bm25, stemsOf } from './peers.ts'

export type WordVerdict = 'supports' | 'contradicts' | 'insufficient_evidence'

/**
 * `supports` where the best sentence has all words of the claim and as many negations. `contradicts` where it has all words and
 * the negations differ, or all words but numbers and other numbers in their place. Else `insufficient_evidence`.
 */
export function wordVerdict(claim: string, text: string): WordVerdict {
  const [best] = bm25(claim, text).sentences(1)
  if (!best) return 'insufficient_evidence'
  const sentence = text.slice(best.start, best.end)
  const [asked, said] = [stemsOf(claim), new Set(stemsOf(sentence))]
  const missing = asked.filter((stem) => !NEGATION.test(stem) && !said.has(stem))
  const sameSense = isNegated(claim) === isNegated(sentence)
  if (missing.length === 0) return sameSense ? 'supports' : 'contradicts'
  const others = [...said].filter((stem) => isNumber(stem) && !asked.includes(stem))
  return missing.every(isNumber) && others.length > 0 ? 'contradicts' : 'insufficient_evidence'
}

const NEGATION = /^(?:not?|never|without|nobodi|noth|none|cannot|neither|nor)$/
const isNumber = (stem: string) => /^\d/.test(stem)
const isNegated = (text: string) =>
  (text.toLowerCase().match(/\b(?:not?|never|without|nobody|nothing|none|cannot|neither|nor)\b|n['’]t\b/g) ?? [])
    .length %
    2 ===
  1
