// Splits CSS into rules, at-rules and declarations, by the CSS Syntax Module. Linear in the length of its input.
import { GrowingText } from '../growing-text.ts'

/** A rule or at-rule with a block, or, where `body` is null, a declaration or an at-rule without one. */
export interface CssItem {
  /** The text before the block, or all text if there is no block. Comments stay. */
  prelude: string
  body: string | null
}

/** The context of items: a style sheet, an at-rule with rules, a rule, or a style attribute. */
export type CssPlace = 'sheet' | 'group' | 'block' | 'attribute'

/**
 * The items on the outermost level. A group holds rules only, and a style attribute declarations only. A bracket of any
 * kind encloses everything up to its own end.
 */
export function* cssItems(css: string, place: CssPlace): Generator<CssItem> {
  const closers: number[] = []
  const holdsDeclarations = place === 'block' || place === 'attribute'
  let kind: 'none' | 'at-rule' | 'property' | 'other' = 'none'
  let start = 0
  let open = -1
  for (let i = 0; i < css.length; i++) {
    const unit = css.charCodeAt(i)
    if (kind === 'none') {
      if (unit <= space || unit === semicolon) {
        // A semicolon between the rules of a sheet is a mistake in the selector that follows.
        if (unit <= space || holdsDeclarations) continue
      }
      const after =
        place === 'sheet' ? afterComment(css, i, unit) || afterMark(css, i, unit) : afterComment(css, i, unit)
      if (after > 0) {
        i = after - 1
        continue
      }
      start = i
      kind = kindOf(css, i, place)
    }
    switch (unit) {
      case openBrace:
        // The value of a custom property may hold blocks.
        if (closers.length === 0 && kind !== 'property') open = i
        closers.push(closeBrace)
        break
      case openParenthesis: {
        const end = afterUrl(css, i)
        if (end > 0) i = end - 1
        else closers.push(closeParenthesis)
        break
      }
      case openBracket:
        closers.push(closeBracket)
        break
      case closeBrace:
      case closeParenthesis:
      case closeBracket:
        if (unit !== closers.at(-1)) break
        closers.pop()
        if (closers.length > 0 || open < 0) break
        yield { prelude: css.slice(start, open), body: css.slice(open + 1, i) }
        kind = 'none'
        open = -1
        break
      case semicolon:
        if (closers.length > 0 || (!holdsDeclarations && kind !== 'at-rule')) break
        yield { prelude: css.slice(start, i), body: null }
        kind = 'none'
        break
      case doubleQuote:
      case singleQuote:
        i = afterString(css, i, unit) - 1
        break
      case slash:
        i = Math.max(i, afterComment(css, i, unit) - 1)
        break
      case backslash:
        i++
        break
    }
  }
  if (kind === 'none') return
  if (open >= 0) yield { prelude: css.slice(start, open), body: css.slice(open + 1) }
  else if (holdsDeclarations || kind === 'at-rule') yield { prelude: css.slice(start), body: null }
}

function kindOf(css: string, i: number, place: CssPlace) {
  if (place === 'attribute') return 'property'
  if (css.charCodeAt(i) === at) return 'at-rule'
  return place === 'block' && css.startsWith('--', i) ? 'property' : 'other'
}

/** With a space for each comment that ends. */
export function withoutComments(css: string): string {
  let begin = css.indexOf('/*')
  if (begin < 0) return css
  const plain = new GrowingText()
  let start = 0
  while (begin >= 0) {
    const end = css.indexOf('*/', begin + 2)
    if (end < 0) break
    plain.add(css.slice(start, begin))
    plain.add(' ')
    start = end + 2
    begin = css.indexOf('/*', start)
  }
  plain.add(css.slice(start))
  return plain.toString()
}

/** Where a comment that begins here ends, or 0. */
function afterComment(css: string, i: number, unit: number) {
  if (unit !== slash || css.charCodeAt(i + 1) !== asterisk) return 0
  const end = css.indexOf('*/', i + 2)
  return end < 0 ? css.length : end + 2
}

/** Sheets may be inside HTML comment marks, which have no effect. */
function afterMark(css: string, i: number, unit: number) {
  if (unit === lessThan && css.startsWith('<!--', i)) return i + 4
  return unit === hyphen && css.startsWith('-->', i) ? i + 3 : 0
}

/** A line feed ends a string that has no end mark. */
function afterString(css: string, start: number, mark: number) {
  for (let i = start + 1; i < css.length; i++) {
    const unit = css.charCodeAt(i)
    if (unit === backslash) i++
    else if (unit === mark || unit === lineFeed) return i + 1
  }
  return css.length
}

/** Where a URL without quotation marks ends whose parenthesis opens here, or 0. */
function afterUrl(css: string, i: number) {
  if (i < 3 || css.slice(i - 3, i).toLowerCase() !== 'url') return 0
  let next = i + 1
  while (css.charCodeAt(next) <= space) next++
  const unit = css.charCodeAt(next)
  if (unit === doubleQuote || unit === singleQuote) return 0
  for (; next < css.length; next++) {
    const here = css.charCodeAt(next)
    if (here === backslash) next++
    else if (here === closeParenthesis) return next + 1
  }
  return css.length
}

const lineFeed = 0x0a
const space = 0x20
const doubleQuote = 0x22
const singleQuote = 0x27
const openParenthesis = 0x28
const closeParenthesis = 0x29
const asterisk = 0x2a
const hyphen = 0x2d
const slash = 0x2f
const semicolon = 0x3b
const lessThan = 0x3c
const at = 0x40
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d
