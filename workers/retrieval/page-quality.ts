// Detects pages that answer 200 and are not the requested page: robot checks, log-in walls, soft 404s, pages that are empty
// without scripts. Such a page is never charged. The gate uses only the text and the claim: a phrase makes a page suspect,
// and a suspect page is refused only if it has almost no other text and does not have the words of the claim.
import { AppError, type ErrorCode } from '../../server/errors.ts'
import { codePoints } from '../../server/interface/scalars.ts'
import { readSections } from '../text/sections.ts'
import { readClaim, termsIn } from '../text/terms.ts'
import type { PageFlag } from './risk-flags.ts'

interface Page {
  source: { normalized_text: string; decoded_bytes: number }
}

/**
 * Throws AppError `source_challenge`, `source_login_required`, `source_not_found` or `source_needs_script` when the page is
 * certainly not the requested page; otherwise returns flags for what it may be.
 */
export function judgePage(claim: string, { source }: Page): PageFlag[] {
  const { normalized_text: text, decoded_bytes: bytes } = source
  if (text.length > LONGEST_SUSPECT) return []
  const lines = text.toLowerCase().split('\n').filter(Boolean)
  const flags: PageFlag[] = []
  for (const [family, { code, flag, message }] of Object.entries(REFUSALS) as [Family, PageRefusal][]) {
    const doubt = doubtOf(family, claim, lines)
    if (doubt === 'certain') throw new AppError(code, message)
    if (doubt === 'possible') flags.push(flag)
  }
  if (isShell(text, bytes) && !flags.includes('script_shell_suspected')) flags.push('script_shell_suspected')
  return flags
}

/**
 * As `judgePage`, for several claims: throws only if the page is refused for all of them. A page that has the words of one
 * claim is the requested page, so the flags hold for every claim.
 */
export function judgePageOf(claims: readonly string[], page: Page): PageFlag[] {
  const flags = new Set<PageFlag>()
  let refusal: unknown
  let passed = false
  for (const claim of claims) {
    try {
      for (const flag of judgePage(claim, page)) flags.add(flag)
      passed = true
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      refusal ??= error
      for (const { code, flag } of Object.values(REFUSALS)) if (code === error.code) flags.add(flag)
    }
  }
  if (!passed) throw refusal
  return [...flags].sort()
}

type Family = 'challenge' | 'script' | 'missing' | 'login'

interface PageRefusal {
  code: ErrorCode
  flag: PageFlag
  message: string
}

const REFUSALS: Record<Family, PageRefusal> = {
  challenge: {
    code: 'source_challenge',
    flag: 'challenge_suspected',
    message: 'The source answered with a check for robots instead of its page. Nothing was charged.',
  },
  script: {
    code: 'source_needs_script',
    flag: 'script_shell_suspected',
    message: 'The source shows its text only to browsers that run its scripts. Nothing was charged.',
  },
  missing: {
    code: 'source_not_found',
    flag: 'soft_404_suspected',
    message: 'The source says, with status 200, that there is no such page. Nothing was charged.',
  },
  login: {
    code: 'source_login_required',
    flag: 'login_wall_suspected',
    message: 'The source shows its text only to those who log in. Nothing was charged.',
  },
}

/**
 * Certain if the page has the phrase, almost no other text, and not the words of the claim. Possible if it has the
 * phrase. A line that asks to log in for one action, such as a comment, does not count.
 */
function doubtOf(family: Family, claim: string, lines: readonly string[]): 'certain' | 'possible' | null {
  const { phrases, alone, aside, besides } = PHRASES[family]
  const suspect = lines.filter((line, i) => phrases.test(line) && !(aside && isAside(aside, line, lines[i - 1])))
  const isAlone = alone !== undefined && lines.length <= FEW_LINES && lines.some((line) => alone.test(line.trim()))
  if (suspect.length === 0 && !isAlone) return null
  if (substanceOf(sentencesWithout(phrases, lines), besides) >= MUCH_TEXT[family]) return 'possible'
  return isAbout(family, claim) || holdsWordsOf(claim, lines, phrases) ? 'possible' : 'certain'
}

/** Whether a line, or the short line above it, says that the log-in is for one action. */
function isAside(aside: RegExp, line: string, above: string | undefined): boolean {
  return aside.test(line) || (above !== undefined && above.length <= LONGEST_HEADING && aside.test(above))
}

/** Whether the claim is about such a phrase, for example "the page says that it was not found". */
function isAbout(family: Family, claim: string): boolean {
  const { phrases, alone } = PHRASES[family]
  const said = claim.toLowerCase()
  return phrases.test(said) || (alone?.test(said.trim()) ?? false)
}

/** Little text in much markup. A short page can be a normal page, so this alone never causes a refusal. */
function isShell(text: string, bytes: number): boolean {
  return text.length < 200 && bytes > 20_000 && bytes > 100 * Buffer.byteLength(text)
}

/**
 * The lower-cased lines without the sentences that have the phrase. Where several sentences share it, the line is left
 * out.
 */
function sentencesWithout(phrase: RegExp, lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    if (!phrase.test(line)) return line
    const sentences = line.split(SENTENCE_END)
    const others = sentences.filter((sentence) => !phrase.test(sentence))
    return others.length < sentences.length ? others : []
  })
}

/**
 * The amount of content in the lines, in code points of running text. A long line counts whole. A short line that states
 * something, such as a price, counts half. Menus, notices of cookies and of rights, and lines with `besides` count nothing.
 */
function substanceOf(lines: readonly string[], besides: RegExp | undefined): number {
  let substance = 0
  for (const line of lines) {
    const length = codePoints(line)
    if ((length < LONGEST_NOTICE && FURNITURE.test(line)) || (length < LONGEST_OFFER && besides?.test(line))) continue
    if (length >= (DENSE.test(line) ? LONG_LINE.dense : LONG_LINE.spaced)) substance += length
    else if (isStatement(line)) substance += length / 2
  }
  return substance
}

function isStatement(line: string): boolean {
  if (STATES.test(line)) return true
  if (DENSE.test(line)) return codePoints(line) >= (SENTENCE.test(line) ? DENSE_SENTENCE : DENSE_PHRASE)
  const words = line.match(WORD)?.length ?? 0
  return words >= (SENTENCE.test(line) ? SENTENCE_WORDS : PHRASE_WORDS)
}

/**
 * Whether the lines have at least half of the claim's content terms, by weight, with two words among them. The phrase
 * itself does not count, nor does an address: a missing page often repeats the address that was asked for.
 */
function holdsWordsOf(claim: string, lines: readonly string[], phrase: RegExp): boolean {
  const text = lines.map((line) => line.split(phrase).join(' ').replace(ADDRESS, ' ')).join('\n')
  const query = readClaim(claim)
  const present = new Set(termsIn(query, text, [{ start: 0, end: text.length }])[0]?.terms)
  const all = [...query.terms.values()]
  const found = all.filter(({ term }) => present.has(term))
  const sum = (terms: typeof all) => terms.reduce((total, { weight }) => total + weight, 0)
  const words = (terms: typeof all) => terms.filter(({ kind }) => kind !== 'number').length
  return all.length > 0 && sum(found) >= SHARE * sum(all) && words(found) >= Math.min(LEAST_WORDS, words(all))
}

function patternOf(section: string): RegExp | undefined {
  const entries = SECTIONS.get(section)
  return entries && new RegExp(entries.join('|'), 'u')
}

/** What page-phrases.txt says of a family. */
function phrasesOf(family: Family) {
  const [phrases, ...others] = ['phrases', 'alone', 'aside', 'besides'].map((name) => patternOf(`${family}: ${name}`))
  if (!phrases) throw new Error(`no phrases of the family ${family}`)
  const [alone, aside, besides] = others
  return { phrases, alone, aside, besides }
}

const SECTIONS = readSections(new URL('./page-phrases.txt', import.meta.url))
const PHRASES = {
  challenge: phrasesOf('challenge'),
  script: phrasesOf('script'),
  missing: phrasesOf('missing'),
  login: phrasesOf('login'),
}
const FURNITURE = patternOf('furniture')!
/** UTF-16 units. Pages that are not the requested page are short, footers included. */
const LONGEST_SUSPECT = 6000
const FEW_LINES = 12
const LONGEST_HEADING = 80
/** Code points of running text (see `substanceOf`) from which on a page has text of its own. */
const MUCH_TEXT: Record<Family, number> = { challenge: 400, script: 300, missing: 400, login: 200 }
const SHARE = 0.5
const LEAST_WORDS = 2
/** Code points. Menus and footers are short lines; running text has long ones. */
const LONG_LINE = { spaced: 80, dense: 35 }
/** Code points. A longer paragraph about cookies or subscriptions is text. */
const [LONGEST_OFFER, LONGEST_NOTICE] = [200, 400]
const DENSE = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}]/u
const SENTENCE_END = /(?<=[.!?…؟।]["'”’»)]?)\s+|(?<=[。！？])/u
/** A number, the cells of a row, or a name with its value. */
const STATES = /\p{Nd}.*\p{L}|\p{L}.*\p{Nd}|\t|\p{L}\s?[:：]\s?[\p{L}\p{Nd}]/u
/** With fewer words, or characters of a dense script, a line may be the name of a menu. */
const [SENTENCE_WORDS, PHRASE_WORDS] = [4, 6]
const [DENSE_SENTENCE, DENSE_PHRASE] = [7, 12]
const WORD = /\p{L}[\p{L}\p{M}'’-]*/gu
const SENTENCE = /[.!?…؟।。！？]["'”’»)]?$/u
const ADDRESS = /(?:https?:\/)?\/\S+/g
