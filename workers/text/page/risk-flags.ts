// The risk flags of text extraction and what each means.
import type { CharsetSource } from './charset.ts'

/** What to know about how a text came to be. Flag → meaning. A flag is never renamed or reused. */
export const riskFlagMeanings = {
  charset_guessed: 'The page declares no charset and is not UTF-8; it was read as windows-1252.',
  replacement_characters: 'Bytes that are invalid in the charset became U+FFFD.',
  hidden_text:
    'Text that markup or in-page style hides was left out; it is at least a tenth as long as the visible text.',
  invisible_characters:
    'Characters that can carry unseen content (tags, overrides of direction, controls) were removed.',
  text_truncated: 'The text is longer than 100,000 code points; only its beginning was kept.',
  style_passed_over:
    'The style sheets inside the page take more work than a page may; they were read in part, and text that they hide may be included.',
  low_text: 'The page shows less than 200 code points of text; what it is about may come from scripts.',
} as const

export type RiskFlag = keyof typeof riskFlagMeanings

/** Lengths are in UTF-16 units but for `length`, the code points kept. */
export function riskFlags(seen: {
  source: CharsetSource
  replacements: number
  text: string
  hidden: number
  unseen: number
  truncated: boolean
  passedOver: boolean
  length: number
}): RiskFlag[] {
  const applies: Record<RiskFlag, boolean> = {
    charset_guessed: seen.source === 'default',
    replacement_characters: seen.replacements > 0,
    hidden_text: seen.hidden * 10 >= seen.text.length,
    invisible_characters: seen.unseen > 0,
    text_truncated: seen.truncated,
    style_passed_over: seen.passedOver,
    low_text: seen.length < 200,
  }
  return (Object.keys(applies) as RiskFlag[]).filter((flag) => applies[flag])
}
