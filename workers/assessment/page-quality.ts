// Detects pages that answer 200 and are not the requested page: robot checks, log-in walls, soft 404s, pages that are empty
// without scripts. Such a page is never charged. The gate uses only the text and the claim: a phrase makes a page suspect,
// and a suspect page is refused only if it has almost no other text and does not have the words of the claim.
import { AppError, type ErrorCode } from '../../server/errors.ts'
import { type Family, PHRASES } from './page-phrases.ts'
import type { PageFlag } from './page-risk-flags.ts'
import { holdsWordsOf, sentencesWithout, substanceOf } from './page-substance.ts'

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

/** UTF-16 units. Pages that are not the requested page are short, footers included. */
const LONGEST_SUSPECT = 6000
const FEW_LINES = 12
const LONGEST_HEADING = 80
/** Code points of running text (see `substanceOf`) from which on a page has text of its own. */
const MUCH_TEXT: Record<Family, number> = { challenge: 400, script: 300, missing: 400, login: 200 }
