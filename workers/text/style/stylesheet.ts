// Reads the style sheets of a page: which rules it has, and which of them is stronger.
import type { Element } from 'domhandler'
import type { Budget, StyleBudgets } from '../budget.ts'
import { buildLayers, type Layers } from './cascade-layers.ts'
import { condense, type Declaration, mayDeclare, readDeclaration } from './css-declarations.ts'
import { type CssPlace, cssItems, withoutComments } from './css-items.ts'
import { type Applies, mediaApplies } from './media-queries.ts'
import { indexRules, type Rule, type RuleIndex } from './rule-index.ts'
import { readSelectors, type Selector } from './selectors.ts'

/**
 * The rules of a page's own style elements that matter to its text. Where it cannot be told whether a rule applies
 * (some selectors, `@supports`), it may bring text to light but hides none, and beyond the budget and the limits below
 * rules are passed over: text is left out only when readers certainly do not see it.
 */
export function readStylesheet(styles: readonly Element[], budgets: StyleBudgets): RuleIndex {
  const budget = budgets.reading
  const reading: Reading = { rules: [], layers: buildLayers(), budget }
  let room = longestSheets
  for (const element of styles) {
    if (!isCss(element.attribs.type)) continue
    const media = judge(element.attribs.media ?? '', reading)
    if (media === 'never') continue
    const css = element.children.map((child) => (child.type === 'text' ? child.data : '')).join('')
    const context = { ...outermost, certain: media === 'always' }
    if (mayDeclare(css)) {
      if (css.length > room) budget.passOver()
      readItems(css.slice(0, room), 'sheet', context, reading)
    }
    room -= Math.min(room, css.length)
  }
  return indexRules(reading.rules, reading.layers, budgets.matching)
}

const isCss = (type: string | undefined) => type === undefined || type === '' || type.toLowerCase() === 'text/css'

interface Reading {
  rules: Rule[]
  layers: Layers
  budget: Budget
}

/** The combined conditions of the rules and at-rules around an item. */
interface Context {
  /** The selectors of the style rule around; null outside of one. */
  selectors: Selector[] | null
  certain: boolean
  layer: number
  depth: number
}

const outermost: Context = { selectors: null, certain: true, layer: 0, depth: 0 }

function readItems(css: string, place: CssPlace, context: Context, reading: Reading) {
  if (!reading.budget.take(1 + css.length / charactersPerStep)) return
  let declarations: Declaration[] = []
  const endDeclarations = () => {
    addRules(declarations, context, reading)
    declarations = []
  }
  for (const { prelude, body } of cssItems(css, place)) {
    const start = prelude.startsWith('@') ? atRuleStart.exec(prelude)?.[0] : undefined
    if (start !== undefined) {
      endDeclarations()
      readAtRule(start.slice(1).toLowerCase(), prelude.slice(start.length), body, context, reading)
    } else if (body !== null) {
      endDeclarations()
      readRule(prelude, body, context, reading)
    } else if (context.selectors) declarations.push(...readDeclaration(prelude))
  }
  endDeclarations()
}

const atRuleStart = /^@[\w-]+/

function readRule(prelude: string, body: string, context: Context, reading: Reading) {
  if (context.depth >= deepestNesting || !mayDeclare(body)) return
  const selectors = readSelectors(prelude, context.selectors, reading.budget)
  if (selectors.length > 0) readBlock(body, { ...context, selectors, depth: context.depth + 1 }, reading)
}

/** Most rules have a few short declarations. Much longer blocks are images in data URLs. */
function readBlock(body: string, context: Context, reading: Reading) {
  if (body.length <= longestBlock || body.includes('{')) readItems(body, 'block', context, reading)
}

function readAtRule(name: string, prelude: string, body: string | null, context: Context, reading: Reading) {
  const { layers } = reading
  if (name === 'layer') {
    const names = layerNames(prelude)
    if (!names) return
    if (body === null) for (const path of names) layers.open(context.layer, path)
    else if (names.length <= 1)
      readInside(body, { ...context, layer: layers.open(context.layer, names[0] ?? null) }, reading)
  } else if (name === 'import') {
    const named = prelude.slice(0, longestLayerNames).match(/\blayer\(\s*([\w.-]+)\s*\)/)?.[1]
    if (named) layers.open(context.layer, named.split('.'))
  } else if (body !== null) {
    const applies = name === 'media' ? judge(prelude, reading) : unknown.has(name) ? 'perhaps' : 'never'
    if (applies !== 'never') readInside(body, { ...context, certain: context.certain && applies === 'always' }, reading)
  }
}

function readInside(body: string, context: Context, reading: Reading) {
  if (context.depth >= deepestNesting || !(mayDeclare(body) || body.includes('@'))) return
  const inner = { ...context, depth: context.depth + 1 }
  readItems(body, context.selectors ? 'block' : 'group', inner, reading)
}

/** The paths of a list such as `base, theme.dark`; none for a layer without a name, null if it is invalid. */
function layerNames(list: string): string[][] | null {
  if (list.length > longestLayerNames) return null
  const names = withoutComments(list).trim()
  if (names === '') return []
  return /^[\w\s,.-]+$/.test(names) ? names.split(',').map((path) => path.trim().split('.')) : null
}

/** A list of media queries that is longer than any in use is not read. */
function judge(media: string, { budget }: Reading): Applies {
  if (media.length > longestCondition || !budget.take(media.length * stepsPerCondition)) return 'perhaps'
  return mediaApplies(withoutComments(media))
}

/** At-rules whose condition is not computed. */
const unknown = new Set(['supports', 'container', 'scope'])

function addRules(declarations: Declaration[], { selectors, certain, layer }: Context, { rules, budget }: Reading) {
  if (declarations.length === 0) return
  const last = condense(declarations)
  for (const selector of selectors ?? []) {
    if (rules.length >= mostRules) return budget.passOver()
    rules.push({ selector, declarations: last, certain: certain && selector.complete, layer })
  }
}

/** Characters that are split into items at the cost of a step. */
const charactersPerStep = 16
/** Steps for each character of a condition. */
const stepsPerCondition = 10

/**
 * Characters of style, of one block, of the names of layers and of a condition, rules, and blocks within blocks: each several
 * times what the richest real pages have.
 */
const longestSheets = 1_048_576
const longestBlock = 65_536
const longestLayerNames = 1000
const longestCondition = 4000
const mostRules = 10_000
const deepestNesting = 6
