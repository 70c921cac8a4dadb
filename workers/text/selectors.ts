// Reads CSS selectors and matches them against elements.
import { type AttributeSelector, parse, type Selector as Token } from 'css-what'
import type { Element } from 'domhandler'

/** A selector as far as tag names, ids, classes, attributes and descent go. */
export interface Selector {
  /**
   * From the element upwards: each unit somewhere above the one before it, its compounds parent by parent. To take the
   * nearest place for each unit is enough, so that a match costs no more than the way to the root.
   */
  units: Compound[][]
  /** Whether matching `units` is all that the selector asks for. */
  complete: boolean
  specificity: number
}

export interface Compound {
  tag: string | null
  attributes: AttributeSelector[]
}

/** The selectors of a list, without those that match nothing on a page at rest: pseudo-elements, `:hover` and such. */
export function readSelectors(list: string): Selector[] {
  if (list.length > longestList) return []
  try {
    return parse(list)
      .map(readSelector)
      .filter((selector) => selector !== null)
  } catch {
    // Browsers drop a whole rule, too, when one of its selectors is invalid.
    return []
  }
}

function readSelector(tokens: Token[]): Selector | null {
  const selector: Selector = { units: [[emptyCompound()]], complete: true, specificity: 0 }
  for (const token of tokens.toReversed()) {
    const unit = selector.units.at(-1)!
    const compound = unit.at(-1)!
    selector.specificity += weigh(token)
    if (token.type === 'tag') compound.tag = token.name.toLowerCase()
    else if (token.type === 'attribute') compound.attributes.push(token)
    else if (token.type === 'child') unit.push(emptyCompound())
    else if (token.type === 'descendant') selector.units.push([emptyCompound()])
    else if (token.type === 'pseudo-element' || (token.type === 'pseudo' && notAtRest.has(token.name))) return null
    else if (token.type !== 'universal') selector.complete = false
    // The part before a sibling combinator describes other elements than the ancestors of this one.
    if (token.type === 'sibling' || token.type === 'adjacent') break
  }
  return selector
}

const emptyCompound = (): Compound => ({ tag: null, attributes: [] })

function weigh(token: Token) {
  if (token.type === 'tag') return 1
  if (token.type === 'attribute') return token.name === 'id' && token.action === 'equals' ? 10_000 : 100
  return token.type === 'pseudo' ? 100 : 0
}

const notAtRest = new Set(
  'hover active focus focus-within focus-visible target target-within before after first-line first-letter'.split(' '),
)

/** Real lists stay far below; the parser of selectors recurses into brackets. */
const longestList = 4000

/** Work that may still be spent on matching; one is about a comparison. */
export interface Budget {
  steps: number
}

/** Whether the element and those above it are what the units ask for. */
export function matches(element: Element, { units }: Selector, budget: Budget): boolean {
  let place: Element | null = element
  for (let i = 0; i < units.length; i++) {
    const unit = units[i]!
    if (i > 0) place = parentOf(place)
    while (place && !matchesUnit(place, unit, budget)) place = i === 0 ? null : parentOf(place)
    for (let up = 1; place && up < unit.length; up++) place = parentOf(place)
    if (!place) return false
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
  budget.steps--
  if (tag !== null && tag !== name) return false
  return attributes.every((wanted) => {
    const actual = attribs[wanted.name]
    if (actual === undefined) return wanted.action === 'not'
    budget.steps -= actual.length >> 6
    const fold = wanted.ignoreCase === true
    return comparisons[wanted.action](
      fold ? actual.toLowerCase() : actual,
      fold ? wanted.value.toLowerCase() : wanted.value,
    )
  })
}

const comparisons: Record<AttributeSelector['action'], (actual: string, value: string) => boolean> = {
  exists: () => true,
  equals: (actual, value) => actual === value,
  not: (actual, value) => actual !== value,
  start: (actual, value) => value !== '' && actual.startsWith(value),
  end: (actual, value) => value !== '' && actual.endsWith(value),
  any: (actual, value) => value !== '' && actual.includes(value),
  hyphen: (actual, value) => actual === value || actual.startsWith(`${value}-`),
  element: (actual, value) => hasWord(actual, value),
}

/** Whether a list parted by blanks, such as a class attribute, holds the word. */
function hasWord(list: string, word: string) {
  if (word === '' || blank.test(word)) return false
  for (let i = list.indexOf(word); i >= 0; i = list.indexOf(word, i + 1)) {
    if (isEdge(list, i - 1) && isEdge(list, i + word.length)) return true
  }
  return false
}

const blank = /[ \t\n\f\r]/
const isEdge = (list: string, i: number) => i < 0 || i >= list.length || blank.test(list.charAt(i))

const parentOf = ({ parent }: Element): Element | null => (parent && 'attribs' in parent ? parent : null)
