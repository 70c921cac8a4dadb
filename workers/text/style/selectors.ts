// Reads CSS selectors and matches them against elements, at a cost that a budget bounds. The package css-select has no bound: on the
// page "rules up the tree" of test/text/hostile-pages.ts, at 32 and 64 kB of the 8 MB that a page may have, its matching takes 2.5 and
// 10.6 s of CPU, and our whole extraction 0.2 s and less.
import { type AttributeSelector, parse, type Selector as Token } from 'css-what'
import type { Element } from 'domhandler'
import type { Budget } from '../budget.ts'
import { isValid, isWellFormed } from './selector-validity.ts'

/** The tag names, ids, classes, attributes and combinators of ancestors in a selector. */
export interface Selector {
  /**
   * From the element upwards: each unit matches some ancestor above the unit before it, and its compounds match parent by
   * parent. It is enough to take the nearest match of each unit, so a match costs no more than the path to the root.
   */
  units: [Unit, ...Unit[]]
  /** Whether `units` are all conditions of the selector. */
  complete: boolean
  specificity: number
}

/** Compounds from an element upwards, parent by parent. */
type Unit = [Compound, ...Compound[]]

export interface Compound {
  tag: string | null
  attributes: AttributeSelector[]
}

/**
 * The selectors of a rule, without those that match nothing on a page without interaction: pseudo-elements, `:hover` and
 * similar. As in browsers there are none if one of them is invalid. `parents` are those of the rule around it, for a nested
 * rule. None where the budget does not suffice.
 */
export function readSelectors(list: string, parents: readonly Selector[] | null, budget: Budget): Selector[] {
  if (list.length > longestList || !budget.take(list.length) || !isWellFormed(list)) return []
  const isNested = parents !== null
  const parsed = parseList(withNests(list, isNested ? `[${nestName}]` : ':scope'))
  if (!parsed?.every((tokens) => isValid(tokens, isNested))) return []
  const selectors = parsed.map((tokens) => readSelector(isNested ? anchor(tokens) : tokens))
  const atRest = selectors.filter((selector) => selector !== null)
  if (!parents) return atRest
  const nested: Selector[] = []
  for (const selector of atRest) {
    if (nested.length >= mostOfNested) break
    if (budget.take(costOfNesting(selector, parents))) nested.push(...withParents(selector, parents))
  }
  return nested.slice(0, mostOfNested)
}

function parseList(list: string) {
  try {
    return parse(list)
  } catch {
    return null
  }
}

function readSelector(tokens: Token[]): Selector | null {
  let compound = emptyCompound()
  let unit: Unit = [compound]
  const selector: Selector = { units: [unit], complete: true, specificity: 0 }
  for (const token of tokens.toReversed()) {
    selector.specificity += weigh(token)
    if (token.type === 'tag') compound.tag = token.name.toLowerCase()
    else if (token.type === 'attribute') compound.attributes.push(token)
    else if (token.type === 'child') {
      compound = emptyCompound()
      unit.push(compound)
    } else if (token.type === 'descendant') {
      compound = emptyCompound()
      unit = [compound]
      selector.units.push(unit)
    } else if (token.type === 'pseudo-element' || (token.type === 'pseudo' && notAtRest.has(token.name))) return null
    else if (token.type !== 'universal') selector.complete = false
    // The part before a sibling combinator describes other elements than the ancestors of this one.
    if (token.type === 'sibling' || token.type === 'adjacent') break
  }
  return selector
}

const emptyCompound = (): Compound => ({ tag: null, attributes: [] })

/** The specificity as browsers count it, each kind up to 99: ids, then classes and attributes, then names. */
function weigh(token: Token): number {
  if (token.type === 'tag' || token.type === 'pseudo-element') return 1
  if (token.type === 'attribute') return token.name === 'id' && token.action === 'equals' ? 10_000 : 100
  if (token.type !== 'pseudo') return 0
  if (token.name === 'where') return 0
  if (!Array.isArray(token.data)) return 100
  return Math.max(0, ...token.data.map((inner) => inner.reduce((sum, part) => sum + weigh(part), 0)))
}

const notAtRest = new Set(
  'hover active focus focus-within focus-visible target target-within before after first-line first-letter'.split(' '),
)

/** Most brackets inside brackets. Real lists have far fewer; the parser of selectors recurses into brackets. */
const longestList = 4000

// `&` stands for the selectors of the rule around, and outside of rules for the root. The parser of selectors does not know
// it and gets an attribute.

const nestName = '-nest-'
const withNests = (list: string, nest: string) =>
  list.includes('&') ? list.replace(opaqueOrNest, (found) => (found === '&' ? nest : found)) : list
const opaqueOrNest = /"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|\/\*[\s\S]*?(?:\*\/|$)|\\[\s\S]|&/g

const isNest = (token: { type: string; name?: string }) => token.type === 'attribute' && token.name === nestName

/** A nested selector without `&` means an element inside the parent, or beside it. */
function anchor(tokens: Token[]): Token[] {
  if (tokens.some(isNest) || tokens.some(holdsNest)) return tokens
  const [nest = []] = parse(`[${nestName}]`)
  const isRelative = tokens.findIndex(({ type }) => ['child', 'sibling', 'adjacent'].includes(type)) === 0
  return isRelative ? [...nest, ...tokens] : [...nest, { type: 'descendant' } as Token, ...tokens]
}

const holdsNest = (token: Token): boolean =>
  token.type === 'pseudo' && JSON.stringify(token.data ?? '').includes(nestName)

const countNests = ({ units }: Selector) => units.flat().filter(({ attributes }) => attributes.some(isNest)).length

/** Steps for each parent: the parts of both selectors are put together. */
function costOfNesting(selector: Selector, parents: readonly Selector[]) {
  const own = sizeOf(selector)
  return parents.reduce((steps, parent) => steps + 4 + own + sizeOf(parent), 0)
}

function sizeOf({ units }: Selector) {
  let size = 0
  for (const unit of units) for (const { attributes } of unit) size += 1 + attributes.length
  return size
}

/** One selector for each parent: the parent replaces `&`. */
function withParents(selector: Selector, parents: readonly Selector[]): Selector[] {
  const nests = countNests(selector)
  if (nests === 0) return [{ ...selector, complete: false }]
  const heaviest = Math.max(...parents.map(({ specificity }) => specificity))
  const specificity = selector.specificity + nests * (heaviest - nestWeight)
  const isTopmost = nests === 1 && selector.units.at(-1)?.at(-1)?.attributes.some(isNest)
  return parents.map((parent) => {
    const units = replaceNests(selector, parent)
    const complete = selector.complete && parent.complete
    const [own, ...above] = parent.units
    // What is above the parent's own element can only be asked for where nothing else is above `&`.
    if (!isTopmost) return { units, complete: complete && above.length === 0 && own.length === 1, specificity }
    // A selector has at least one unit.
    units.at(-1)!.push(...own.slice(1))
    units.push(...above)
    return { units, complete, specificity }
  })
}

const nestWeight = 100

/** The units of a selector as new lists. */
function replaceNests({ units: [own, ...above] }: Selector, parent: Selector): Selector['units'] {
  const replaced = ([first, ...rest]: Unit): Unit => [
    replaceNest(first, parent),
    ...rest.map((compound) => replaceNest(compound, parent)),
  ]
  return [replaced(own), ...above.map(replaced)]
}

function replaceNest(compound: Compound, { units }: Selector): Compound {
  if (!compound.attributes.some(isNest)) return compound
  const parent = units[0][0]
  const attributes = [...compound.attributes.filter((wanted) => !isNest(wanted)), ...parent.attributes]
  // No element has two names, and none has an empty one.
  const isImpossible = compound.tag !== null && parent.tag !== null && compound.tag !== parent.tag
  return { tag: isImpossible ? '' : (compound.tag ?? parent.tag), attributes }
}

/** Selectors of one nested rule, combined with each of its parents. */
const mostOfNested = 1000

/** Whether the element and its ancestors match the units. Once the budget is spent nothing matches. */
export function matches(element: Element, { units }: Selector, budget: Budget): boolean {
  let place: Element | null = element
  let isFirst = true
  for (const unit of units) {
    if (!isFirst) place = parentOf(place)
    while (place && !matchesUnit(place, unit, budget)) place = isFirst ? null : parentOf(place)
    for (let up = 1; place && up < unit.length; up++) place = parentOf(place)
    if (!place) return false
    isFirst = false
  }
  return true
}

function matchesUnit(element: Element, unit: Compound[], budget: Budget): boolean {
  let place: Element | null = element
  for (const compound of unit) {
    if (!place || !matchesCompound(place, compound, budget)) return false
    place = parentOf(place)
  }
  return true
}

function matchesCompound({ name, attribs }: Element, { tag, attributes }: Compound, budget: Budget): boolean {
  if (!budget.take(1) || (tag !== null && tag !== name)) return false
  for (const wanted of attributes) {
    const actual = attribs[wanted.name]
    if (actual === undefined || !budget.take(costOf(wanted, actual)) || !compare(wanted, actual)) return false
  }
  return true
}

/** Steps. A search may compare the value with every place of the attribute. */
function costOf({ action, value, ignoreCase }: AttributeSelector, actual: string) {
  const folding = ignoreCase === true ? (actual.length + value.length) >> 3 : 0
  if (action === 'any') return 1 + folding + (actual.length * value.length) / comparisonsPerStep
  if (action === 'element') return 1 + folding + (actual.length * (value.length + 8)) / comparisonsPerStep
  return 1 + folding + (value.length >> 6)
}

const comparisonsPerStep = 256

function compare({ action, value, ignoreCase }: AttributeSelector, actual: string) {
  if (ignoreCase !== true) return comparisons[action](actual, value)
  return comparisons[action](actual.toLowerCase(), value.toLowerCase())
}

const comparisons: Record<AttributeSelector['action'], (actual: string, value: string) => boolean> = {
  exists: () => true,
  equals: (actual, value) => actual === value,
  not: () => false,
  start: (actual, value) => value !== '' && actual.startsWith(value),
  end: (actual, value) => value !== '' && actual.endsWith(value),
  any: (actual, value) => value !== '' && actual.includes(value),
  hyphen: (actual, value) => actual === value || actual.startsWith(`${value}-`),
  element: (actual, value) => hasWord(actual, value),
}

/** Whether a list separated by blanks, such as a class attribute, has the word. */
function hasWord(list: string, word: string) {
  if (word === '' || blank.test(word)) return false
  for (let i = list.indexOf(word); i >= 0; i = list.indexOf(word, i)) {
    if (isEdge(list, i - 1) && isEdge(list, i + word.length)) return true
    blanks.lastIndex = i
    i = blanks.exec(list)?.index ?? list.length
  }
  return false
}

const blank = /[ \t\n\f\r]/
const blanks = /[ \t\n\f\r]/g
const isEdge = (list: string, i: number) => i < 0 || i >= list.length || isBlank(list.charCodeAt(i))
const isBlank = (unit: number) => unit === 0x20 || (unit >= 0x09 && unit <= 0x0d && unit !== 0x0b)

const parentOf = ({ parent }: Element): Element | null => (parent && 'attribs' in parent ? parent : null)
