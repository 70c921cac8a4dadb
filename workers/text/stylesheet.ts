// Reads the style sheets of a page: which rules it has, and which of them is stronger.
import type { Element } from 'domhandler'
import { buildLayers, type Layers } from './cascade-layers.ts'
import { type Declaration, mayDeclare, readDeclaration } from './css-declarations.ts'
import { type CssItem, cssItems } from './css-items.ts'
import { type Applies, mediaApplies } from './media-queries.ts'
import { indexRules, type Rule, type RuleIndex } from './rule-index.ts'
import { readSelectors, type Selector } from './selectors.ts'

/**
 * The rules of a page's own style elements that matter to its text. Where it cannot be told whether a rule applies
 * (some selectors, `@supports`), it may bring text to light but hides none, and beyond the limits below rules are passed
 * over: text is left out only when readers certainly do not see it.
 */
export function readStylesheet(styles: readonly Element[]): RuleIndex {
  const reading: Reading = { rules: [], layers: buildLayers() }
  let room = longestSheets
  for (const element of styles) {
    if (room === 0) break
    if (!isCss(element.attribs.type)) continue
    const media = mediaApplies(element.attribs.media ?? '')
    if (media === 'never') continue
    const css = element.children.map((child) => (child.type === 'text' ? child.data : '')).join('')
    const context = { ...outermost, certain: media === 'always' }
    if (mayDeclare(css)) readItems(cssItems(css.slice(0, room), 'sheet'), context, reading)
    room -= Math.min(room, css.length)
  }
  return indexRules(reading.rules, reading.layers)
}

const isCss = (type: string | undefined) => type === undefined || type === '' || type.toLowerCase() === 'text/css'

interface Reading {
  rules: Rule[]
  layers: Layers
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

function readItems(items: Iterable<CssItem>, context: Context, reading: Reading) {
  let declarations: Declaration[] = []
  const endDeclarations = () => {
    addRules(declarations, context, reading)
    declarations = []
  }
  for (const { prelude, body } of items) {
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
  if (context.depth >= deepestNesting || reading.rules.length >= mostRules || !mayDeclare(body)) return
  const selectors = readSelectors(prelude, context.selectors)
  if (selectors.length > 0) readBlock(body, { ...context, selectors, depth: context.depth + 1 }, reading)
}

/** Most rules have a few short declarations. Much longer blocks are images in data URLs. */
function readBlock(body: string, context: Context, reading: Reading) {
  if (body.length <= longestBlock || body.includes('{')) readItems(cssItems(body, 'block'), context, reading)
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
    const applies = conditions.get(name)?.(withoutComments(prelude)) ?? 'never'
    if (applies !== 'never') readInside(body, { ...context, certain: context.certain && applies === 'always' }, reading)
  }
}

function readInside(body: string, context: Context, reading: Reading) {
  if (context.depth >= deepestNesting || !(mayDeclare(body) || body.includes('@'))) return
  const inner = { ...context, depth: context.depth + 1 }
  readItems(cssItems(body, context.selectors ? 'block' : 'group'), inner, reading)
}

/** The paths of a list such as `base, theme.dark`; none for a layer without a name, null if it is invalid. */
function layerNames(list: string): string[][] | null {
  if (list.length > longestLayerNames) return null
  const names = withoutComments(list).trim()
  if (names === '') return []
  return /^[\w\s,.-]+$/.test(names) ? names.split(',').map((path) => path.trim().split('.')) : null
}

const withoutComments = (css: string) => (css.includes('/*') ? css.replace(/\/\*[\s\S]*?\*\//g, ' ') : css)

const conditions = new Map<string, (condition: string) => Applies>([
  ['media', mediaApplies],
  ['supports', () => 'perhaps'],
  ['container', () => 'perhaps'],
  ['scope', () => 'perhaps'],
])

function addRules(declarations: Declaration[], { selectors, certain, layer }: Context, { rules }: Reading) {
  if (declarations.length === 0) return
  for (const selector of selectors ?? []) {
    if (rules.length < mostRules) rules.push({ selector, declarations, certain: certain && selector.complete, layer })
  }
}

/**
 * Characters of style, of one block and of the names of layers, rules, and blocks within blocks: each several times what the richest real pages
 * have.
 */
const longestSheets = 1_048_576
const longestBlock = 65_536
const longestLayerNames = 1000
const mostRules = 10_000
const deepestNesting = 6
