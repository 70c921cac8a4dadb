// Finds the rules of a page's style sheets for an element.
import type { Element } from 'domhandler'
import type { Budget } from '../budget.ts'
import type { Layers } from './cascade-layers.ts'
import type { Declaration } from './css-declarations.ts'
import { type Compound, matches, type Selector } from './selectors.ts'

export interface Rule {
  selector: Selector
  declarations: Declaration[]
  certain: boolean
  /** The number of its layer. */
  layer: number
}

export interface RuleIndex {
  /** Whether there is any rule. */
  isEmpty: boolean
  /** The declarations of the rules for this element, in no order. */
  match(element: Element): readonly RankedDeclaration[]
}

export interface RankedDeclaration extends Declaration {
  /** The higher one wins. */
  rank: number
  /** Whether the rule applies for certain. */
  certain: boolean
  /** The position of its layer in the order of the cascade. */
  layer: number
}

/**
 * Finds the rules for an element by its id, its classes and its tag name, and ranks their declarations as the cascade does.
 * Once the budget is spent no rule applies.
 */
export function indexRules(rules: readonly Rule[], layers: Layers, budget: Budget): RuleIndex {
  if (rules.length === 0) return { isEmpty: true, match: () => nothing }
  const byKey = new Map<string, RankedRule[]>()
  for (const ranked of rankRules(rules, layers.order())) {
    const key = keyOf(ranked.selector.units[0][0])
    if (!byKey.get(key)?.push(ranked)) byKey.set(key, [ranked])
  }
  const candidates = openCandidates(byKey)

  return {
    isEmpty: false,
    match(element) {
      if (budget.isSpent) return nothing
      const lists = candidates(element)
      if (lists.length === 0) return nothing
      const found: RankedDeclaration[] = []
      for (const list of lists)
        for (const { selector, declarations } of list) {
          if (matches(element, selector, budget) && budget.take(costOfMatch * declarations.length))
            found.push(...declarations)
          if (budget.isSpent) return nothing
        }
      return found
    },
  }
}

const nothing: readonly RankedDeclaration[] = []

interface RankedRule {
  selector: Selector
  declarations: RankedDeclaration[]
}

/**
 * Ranks depend on layer, specificity and order. Important declarations rank above all others, with their layers
 * reversed.
 */
function rankRules(rules: readonly Rule[], places: readonly number[]): RankedRule[] {
  // The layers that the rules name have a place each.
  const ranked = rules.map((rule) => ({ ...rule, layer: places[rule.layer]!, rank: 0, important: 0 }))
  // Sorting keeps the order of equal rules.
  const inOrder = (direction: 1 | -1) =>
    ranked.toSorted((a, b) => direction * (a.layer - b.layer) || a.selector.specificity - b.selector.specificity)
  for (const [place, rule] of inOrder(1).entries()) rule.rank = place
  for (const [place, rule] of inOrder(-1).entries()) rule.important = importantRank + place
  return ranked.map(({ selector, declarations, certain, layer, rank, important }) => ({
    selector,
    declarations: declarations.map((declaration) => ({
      ...declaration,
      certain,
      layer,
      rank: declaration.important ? important : rank,
    })),
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
 * The lists of rules that an element's tag name, id and classes admit. Most elements share these with others before them.
 */
function openCandidates(byKey: ReadonlyMap<string, RankedRule[]>) {
  const known = new Map<string, Map<string, Lists>>()
  const everywhere = byKey.get('*')
  return ({ name, attribs }: Element): Lists => {
    const classes = attribs.class ?? ''
    const ofName = known.get(name) ?? new Map<string, Lists>()
    if (ofName.size === 0) known.set(name, ofName)
    let found = ofName.get(classes)
    if (!found) {
      const lists = [byKey.get(name), everywhere, ...wordsOf(classes).map((word) => byKey.get(`.${word}`))]
      found = lists.filter((list) => list !== undefined)
      ofName.set(classes, found)
    }
    const { id } = attribs
    const ofId = id === undefined || id.length > longestName ? undefined : byKey.get(`#${id}`)
    return ofId ? [...found, ofId] : found
  }
}

type Lists = readonly (readonly RankedRule[])[]

/**
 * Names longer than any in use are passed over: otherwise a few bytes of markup could cost megabytes of comparisons
 * each.
 */
const wordsOf = (classes: string) => {
  const words = classes.split(blanks, mostClasses).filter((word) => word !== '' && word.length <= longestName)
  return [...new Set(words)]
}

const blanks = /[ \t\n\f\r]+/
const longestName = 256
const mostClasses = 256

/** Ranks above every selector, and above every style attribute. */
export const inlineRank = 1e6
export const importantRank = 1e7

/** Steps for sorting and applying a declaration that was found. */
const costOfMatch = 10
