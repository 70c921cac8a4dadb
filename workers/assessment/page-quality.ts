// Pages that answer 200 and are not what was asked for: challenges for people, log-in walls, soft 404s, shells that need
// scripts. Nobody is charged for the text of one. Purely by what the text says and how little there is besides.
import { AppError, type ErrorCode } from '../../server/errors.ts'
import { codePoints } from '../../server/verification/result.ts'
import { type Family, PHRASES } from './page-phrases.ts'
import type { PageFlag } from './page-risk-flags.ts'

interface Page {
  source: { normalized_text: string; decoded_bytes: number }
}

/**
 * Throws AppError `source_challenge`, `source_login_required`, `source_not_found` or `source_needs_script` when the page
 * is certainly no answer to what was asked; otherwise answers the flags of what it may be. A claim about exactly
 * that, such as "the page says that it was not found", is for the assessor.
 */
export function judgePage(claim: string, { source }: Page): PageFlag[] {
  const { normalized_text: text, decoded_bytes: bytes } = source
  if (text.length > LONGEST_SUSPECT) return []
  const lines = text.toLowerCase().split('\n').filter(Boolean)
  const flags: PageFlag[] = []
  for (const [family, { code, flag, message }] of Object.entries(REFUSALS) as [Family, Refusal][]) {
    const doubt = doubtOf(family, lines)
    if (!doubt) continue
    if (doubt === 'certain' && !isAbout(family, claim)) throw new AppError(code, message)
    flags.push(flag)
  }
  if (isShell(text, bytes) && !flags.includes('script_shell_suspected')) flags.push('script_shell_suspected')
  return flags
}

interface Refusal {
  code: ErrorCode
  flag: PageFlag
  message: string
}

const REFUSALS: Record<Family, Refusal> = {
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

/** Certain where the words stand and next to nothing is told besides; possible where the words stand. */
function doubtOf(family: Family, lines: readonly string[]): 'certain' | 'possible' | null {
  const { phrases, alone } = PHRASES[family]
  const telling = lines.filter((line) => !phrases.test(line))
  const isTold = telling.length < lines.length
  const isAlone = alone !== undefined && lines.length <= FEW_LINES && lines.some((line) => alone.test(line.trim()))
  if (!isTold && !isAlone) return null
  return proseLength(telling) < MUCH_PROSE[family] ? 'certain' : 'possible'
}

/** Menus and footers are short lines; what a page tells stands in long ones. */
function proseLength(lines: readonly string[]): number {
  let length = 0
  for (const line of lines) {
    const points = codePoints(line)
    if (points >= (DENSE.test(line) ? LONG_LINE.dense : LONG_LINE.spaced)) length += points
  }
  return length
}

function isAbout(family: Family, claim: string): boolean {
  const { phrases, alone } = PHRASES[family]
  const said = claim.toLowerCase()
  return phrases.test(said) || (alone?.test(said.trim()) ?? false)
}

/** Little text in much markup. Short pages are honest pages too, so this alone is never a refusal. */
function isShell(text: string, bytes: number): boolean {
  return text.length < 200 && bytes > 20_000 && bytes > 100 * Buffer.byteLength(text)
}

/** UTF-16 units; pages that are not what was asked for are short, footers included. */
const LONGEST_SUSPECT = 6000
const FEW_LINES = 12
/** Code points of running text that such a page may have besides the words that give it away. */
const MUCH_PROSE: Record<Family, number> = { challenge: 400, script: 300, missing: 400, login: 200 }
const LONG_LINE = { spaced: 80, dense: 35 }
const DENSE = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}]/u
