// Reads the style sheets of a page and finds the rules for an element.
import { load } from 'cheerio/slim'
import type { Document, Element } from 'domhandler'
import { commentsOutsideStrings, type Declaration, readDeclarations } from './css-declarations.ts'
import { type Compound, matches, readSelectors, type Selector } from './selectors.ts'

/**
 * The rules of a page's own style elements that matter to its text. Where it cannot be told whether a rule applies
 * (some selectors, most media queries), it may bring text to light but hides none, and beyond the limits below rules
 * are passed over: text is left out only when readers certainly do not see it.
 */
export interface Stylesheet {
  /** What the rules say of this element, in no order. */
  match(element: Element): RankedDeclaration[]
}

export interface RankedDeclaration extends Declaration {
  /** The higher one wins. */
  rank: number
  /** Whether the rule applies for certain. */
  certain: boolean
}

export function readStylesheet(document: Document): Stylesheet {
  const rules: Rule[] = []
  let room = longestSheets
  const $ = load(document)
  for (const element of $('style').get()) {
    if (room === 0) break
    const media = mediaApplies(element.attribs.media ?? '')
    if (media === 'never') continue
    const css = element.children.map((child) => (child.type === 'text' ? child.data : '')).join('')
    readRules(css.slice(0, room), media === 'always', rules)
    room -= Math.min(room, css.length)
  }
  return buildIndex(rules)
}

interface Rule {
  selector: Selector
  declarations: Declaration[]
  certain: boolean
}

function readRules(css: string, certain: boolean, rules: Rule[], depth = 0) {
  for (const { prelude, body } of blocks(depth === 0 ? withoutComments(css) : css)) {
    const atRule = prelude.match(/^\s*@([\w-]+)([\s\S]*)/)
    if (atRule) {
      const [, name = '', condition = ''] = atRule
      const applies = conditions.get(name.toLowerCase())?.(condition) ?? 'never'
      if (applies !== 'never' && depth < deepestNesting)
        readRules(body, certain && applies === 'always', rules, depth + 1)
      continue
    }
    const declarations = readDeclarations(ownDeclarations(body))
    if (declarations.length === 0) continue
    for (const selector of readSelectors(prelude)) {
      if (rules.length < mostRules) rules.push({ selector, declarations, certain: certain && selector.complete })
    }
  }
}

const withoutComments = (css: string) =>
  css.replace(commentsOutsideStrings, (found) => (found.startsWith('/*') ? ' ' : found))

/**
 * The blocks on the outermost level, each with the text before it. A bracket of any kind encloses everything up to its
 * own end.
 */
function* blocks(css: string) {
  const closers: string[] = []
  let start = 0
  let open = 0
  let prelude: 'unknown' | 'at-rule' | 'selector' = 'unknown'
  for (const { 0: token, index } of css.matchAll(structure)) {
    const closer = closerOf[token]
    if (closer) {
      if (closers.push(closer) === 1) open = token === '{' ? index : -1
    } else if (closers.length > 0) {
      if (token !== closers.at(-1)) continue
      closers.pop()
      if (closers.length > 0 || open < 0) continue
      yield { prelude: css.slice(start, open), body: css.slice(open + 1, index) }
      start = index + 1
      prelude = 'unknown'
    } else if (separators.has(token)) {
      // A semicolon ends an at-rule without a block but is only a mistake in a selector; `<!--` may occur between
      // rules.
      if (prelude === 'unknown') prelude = kindOf(css.slice(start, index).trimStart(), token)
      if (prelude === 'selector' || (prelude === 'at-rule' && token !== ';')) continue
      start = index + token.length
      prelude = 'unknown'
    }
  }
  if (closers.length > 0 && open >= 0) yield { prelude: css.slice(start, open), body: css.slice(open + 1) }
}

const structure =
  /[{}()[\];]|<!--|-->|\\[\s\S]|url\(\s*[^"'\s)][^)]*\)?|"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?/gi
const closerOf: Record<string, string | undefined> = { '{': '}', '(': ')', '[': ']' }
const separators = new Set([';', '<!--', '-->'])

function kindOf(begun: string, separator: string) {
  if (begun.startsWith('@')) return 'at-rule'
  return begun === '' && separator !== ';' ? 'unknown' : 'selector'
}

/** Nested rules belong to other elements. */
const ownDeclarations = (body: string) => {
  const nested = body.indexOf('{')
  return nested < 0 ? body : body.slice(0, body.lastIndexOf(';', nested) + 1)
}

type Applies = 'always' | 'perhaps' | 'never'

const conditions = new Map<string, (condition: string) => Applies>([
  ['media', mediaApplies],
  ['layer', () => 'always'],
  ['supports', () => 'perhaps'],
  ['container', () => 'perhaps'],
])

function mediaApplies(query: string): Applies {
  const media = query.trim().toLowerCase()
  if (['', 'all', 'screen', 'only screen'].includes(media)) return 'always'
  return /^(?:only )?(?:print|speech|aural|braille|embossed|handheld|projection|tty|tv)\b[^,]*$/.test(media)
    ? 'never'
    : 'perhaps'
}

/**
 * Finds the rules for an element by its id, its classes and its tag name, and ranks what they say as the cascade does.
 */
function buildIndex(rules: Rule[]): Stylesheet {
  const byKey = new Map<string, RankedRule[]>()
  for (const [order, rule] of rules.entries()) {
    const key = keyOf(rule.selector.units[0]![0]!)
    const ranked = { selector: rule.selector, declarations: rankDeclarations(rule, order) }
    if (!byKey.get(key)?.push(ranked)) byKey.set(key, [ranked])
  }
  const budget = { steps: mostSteps }
  const classKeys = new Map<string, string[]>()

  return {
    match(element) {
      if (rules.length === 0) return []
      const found: RankedDeclaration[] = []
      for (const key of keysOf(element, classKeys)) {
        budget.steps--
        for (const rule of byKey.get(key) ?? []) {
          if (budget.steps <= 0) return []
          if (!matches(element, rule.selector, budget)) continue
          budget.steps -= costOfMatch
          found.push(...rule.declarations)
        }
      }
      return found
    },
  }
}

interface RankedRule {
  selector: Selector
  declarations: RankedDeclaration[]
}

function rankDeclarations({ selector, declarations, certain }: Rule, order: number): RankedDeclaration[] {
  const rank = selector.specificity * 100_000 + order
  return declarations.map((declaration) => ({
    ...declaration,
    certain,
    rank: declaration.important ? rank + importantRank : rank,
  }))
}

/** The one name that every element of this description has. */
function keyOf({ tag, attributes }: Compound) {
  const value = (name: string, action: string) =>
    attributes.find((wanted) => wanted.name === name && wanted.action === action)?.value
  const id = value('id', 'equals')
  const word = value('class', 'element')
  if (id !== undefined) return `#${id}`
  return word === undefined ? (tag ?? '*') : `.${word}`
}

/**
 * A class attribute is taken apart once, however many elements the parser has copied it to, and names longer than any
 * in use are passed over: otherwise a few bytes of markup could cost megabytes of comparisons each.
 */
function keysOf({ name, attribs }: Element, classKeys: Map<string, string[]>) {
  const keys = [name, '*']
  if (attribs.id !== undefined && attribs.id.length <= longestName) keys.push(`#${attribs.id}`)
  const list = attribs.class
  if (list === undefined) return keys
  let words = classKeys.get(list)
  if (!words) {
    words = [...new Set(list.split(blanks, mostClasses))].filter((word) => word !== '' && word.length <= longestName)
    words = words.map((word) => `.${word}`)
    classKeys.set(list, words)
  }
  return [...keys, ...words]
}

const blanks = /[ \t\n\f\r]+/
const longestName = 256
const mostClasses = 256

/** Above every selector, and above every style attribute. */
export const inlineRank = 1e13
export const importantRank = 1e14

/**
 * Characters of style, rules, nested conditions and comparisons: each several times what the richest real pages have.
 */
const longestSheets = 1_048_576
const mostRules = 10_000
const deepestNesting = 4
const mostSteps = 2_000_000

/** In comparisons, for putting what was found in order. */
const costOfMatch = 10
