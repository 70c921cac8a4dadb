// The local assessment: from a normalized text and a claim to a verdict with quotes. A pure function of the two: the same on
// every machine and in a browser, without clock, randomness or network.
import { softmax } from './arithmetic.ts'
import { codePointsBetween, explain, type LocalQuote, quotable, type Side, type Verdict } from './explanation.ts'
import { CONTRADICTS, SUPPORTS, type Verifier } from './verifier.ts'
import { chooseWindows, type Sentence, sentencesOf, type Window } from './windows.ts'
import { isKnownLanguage } from './words.ts'

export interface LocalAssessment {
  claim_support: Verdict
  explanation: string
  /** At most six, the deciding ones of each side first. */
  quotes: LocalQuote[]
  risk_flags: ('language_not_supported' | 'page_checks_claims')[]
  /** What the verdict was derived from. */
  reading: Reading
}

export interface Reading {
  /** The passages read, the nearest first, each with its logits. */
  windows: { text: string; logits: number[] }[]
  /** The largest probabilities of the two sides over all passages. */
  supports: number
  contradicts: number
  /** The side to which an undecided reading leans. */
  lean: Side | null
}

/** Assesses a claim by a text of at most 100,000 code points, both well formed. Tells `onRead` how many passages are read, from none on. */
export async function assessLocally(
  verifier: Verifier,
  text: string,
  claim: string,
  onRead: (count: number, of: number) => void = () => {},
): Promise<LocalAssessment> {
  const { settings } = verifier
  if (!isKnownLanguage(text, claim)) return unread(claim, ['language_not_supported'])
  const sentences = sentencesOf(text)
  const windows = chooseWindows(sentences, claim, settings.windows)
  const [nearest] = windows
  if (!nearest) return unread(claim, [])

  // Windows overlap, and a sentence can be a window. The model reads each passage once, because the same pair has the same logits.
  const known = new Map<string, number[]>()
  async function logitsOf(passage: string): Promise<number[]> {
    const logits = known.get(passage) ?? (await verifier.logits(claim, passage))
    known.set(passage, logits)
    return logits
  }

  const read: ReadWindow[] = []
  onRead(0, windows.length)
  for (const window of windows) {
    const logits = await logitsOf(window.text)
    read.push({ window, logits, p: softmax(logits) })
    onRead(read.length, windows.length)
  }
  const best = { supports: bestOf(read, SUPPORTS), contradicts: bestOf(read, CONTRADICTS) }
  const [supports, contradicts] = [best.supports.p[SUPPORTS] ?? 0, best.contradicts.p[CONTRADICTS] ?? 0]
  const sure = settings.thresholds
  const plain = text.toLowerCase()
  const withheld =
    supports >= sure.supports &&
    supports >= contradicts &&
    settings.page_checks_claims.some((word) => plain.includes(word))
  const claim_support = verdictOf()
  const lean = claim_support === 'insufficient_evidence' ? leanOf() : null

  function verdictOf(): Verdict {
    const both = supports >= sure.supports && contradicts >= sure.contradicts
    if (both && best.supports !== best.contradicts) return 'mixed'
    if (supports >= sure.supports && supports > contradicts && !withheld) return 'supports'
    if (contradicts >= sure.contradicts && contradicts > supports) return 'contradicts'
    return 'insufficient_evidence'
  }

  function leanOf(): Side | null {
    if (supports >= contradicts) return supports >= settings.lean ? 'supports' : null
    return contradicts >= settings.lean ? 'contradicts' : null
  }

  const chosen: { sentence: Sentence; stance: LocalQuote['stance'] }[] = []
  for (const side of ['supports', 'contradicts'] as const) {
    if (claim_support !== side && claim_support !== 'mixed') continue
    for (const { window } of decidingOf(read, side, sure[side]).slice(0, settings.quotes))
      chosen.push({ sentence: await strongest(window, side), stance: side })
  }
  if (claim_support === 'insufficient_evidence')
    chosen.push({
      sentence: lean ? await strongest(best[lean].window, lean) : sentenceAt(nearest.index),
      stance: 'mentions',
    })

  /** The sentence of a window that alone says most for a side. */
  async function strongest({ from, to }: Window, side: Side): Promise<Sentence> {
    let [found, most] = [sentenceAt(from), -1]
    if (from === to) return found
    for (const sentence of sentences.slice(from, to + 1)) {
      const p = softmax(await logitsOf(sentence.text))[indexOf(side)] ?? 0
      if (p > most) [found, most] = [sentence, p]
    }
    return found
  }

  function sentenceAt(index: number): Sentence {
    const sentence = sentences[index]
    if (!sentence) throw new RangeError('a window lies outside the text')
    return sentence
  }

  const quotes = quotesOf(text, chosen)
  const reading: Reading = {
    windows: read.map(({ window, logits }) => ({ text: window.text, logits })),
    supports,
    contradicts,
    lean,
  }
  return {
    claim_support,
    explanation: explain({ claim, verdict: claim_support, quotes, read: read.length, lean, withheld, known: true }),
    quotes,
    risk_flags: withheld ? ['page_checks_claims'] : [],
    reading,
  }
}

interface ReadWindow {
  window: Window
  logits: number[]
  p: number[]
}

const indexOf = (side: Side) => (side === 'supports' ? SUPPORTS : CONTRADICTS)

/** The first window with the largest probability of a side. */
function bestOf(read: readonly ReadWindow[], side: number): ReadWindow {
  return read.reduce((top, one) => ((one.p[side] ?? 0) > (top.p[side] ?? 0) ? one : top))
}

/** The windows that reach the threshold of a side, the surest first; equals in their order. */
function decidingOf(read: readonly ReadWindow[], side: Side, sure: number): ReadWindow[] {
  const p = (one: ReadWindow) => one.p[indexOf(side)] ?? 0
  return read.filter((one) => p(one) >= sure).sort((a, b) => p(b) - p(a))
}

/** The quotes in their order, each sentence once for each stance. */
function quotesOf(text: string, chosen: readonly { sentence: Sentence; stance: LocalQuote['stance'] }[]): LocalQuote[] {
  const quotes: LocalQuote[] = []
  let [at, codePoints] = [0, 0]
  const ordered = chosen.filter(
    ({ sentence, stance }, i) =>
      chosen.findIndex((other) => other.sentence.start === sentence.start && other.stance === stance) === i,
  )
  for (const { sentence, stance } of ordered) {
    if (sentence.start < at) [at, codePoints] = [0, 0]
    codePoints += codePointsBetween(text, at, sentence.start)
    at = sentence.start
    const quote = quotable(sentence.text)
    quotes.push({ quote, start: codePoints, end: codePoints + codePointsBetween(quote, 0, quote.length), stance })
  }
  return quotes
}

function unread(claim: string, risk_flags: LocalAssessment['risk_flags']): LocalAssessment {
  const reading: Reading = { windows: [], supports: 0, contradicts: 0, lean: null }
  const known = risk_flags.length === 0
  const verdict: Verdict = 'insufficient_evidence'
  const explanation = explain({ claim, verdict, quotes: [], read: 0, lean: null, withheld: false, known })
  return { claim_support: verdict, explanation, quotes: [], risk_flags, reading }
}
