// The style of one element: from its attributes, the style sheets of its page and its style attribute.
import type { Element } from 'domhandler'
import { isHtml, isSvg } from '../page/foreign.ts'
import { readDeclaration, readDeclarations, type Style } from './css-declarations.ts'
import { importantRank, inlineRank, type RankedDeclaration, type RuleIndex } from './rule-index.ts'

/**
 * Finds the combined effect of attributes, the page's own sheets and the style attribute on one element, without
 * inheritance. The function returned takes whether the sheet of the browser hides the element because of its place.
 */
export function openStyles(rules: RuleIndex): (element: Element, isHiddenByPlace?: boolean) => Style {
  const inlineDeclarations = openInline()
  const presented = openPresentation()
  return (element, isHiddenByPlace = false) => {
    // A page that hides all of itself is waiting for its scripts, or is guarded against framing: readers do see it.
    if (element.name === 'html' || element.name === 'body') return unsaid
    const ruled = rules.match(element)
    const { style: inline } = element.attribs
    const styled = inline === undefined ? ruled : [...ruled, ...inlineDeclarations(inline)]
    const declared = isSvg(element) ? [...presented(element), ...styled] : styled
    const isHidden = isHiddenByPlace || isHiddenByAttribute(element)
    if (declared.length === 0) return isHidden ? none : unsaid
    const style = cascade(declared, isHidden)
    if (style.display === 'default') style.display = isHiddenByPlace || isHiddenByDefault(element) ? 'none' : undefined
    return style
  }
}

const none: Style = Object.freeze({ display: 'none' })
const unsaid: Style = Object.freeze({})

function cascade(declared: readonly RankedDeclaration[], isHidden: boolean): Style {
  let style: Style = isHidden ? { display: 'none' } : {}
  let below = style
  let layer = -1
  const inOrder = declared.length === 1 ? declared : declared.toSorted((a, b) => a.rank - b.rank)
  for (const declaration of inOrder) {
    if (declaration.layer !== layer) {
      layer = declaration.layer
      below = style
    }
    const change = declaration.revertsLayer ? only(declaration.style, below) : declaration.style
    if (declaration.certain || reveals(change, style)) style = { ...style, ...change }
  }
  return style
}

/** The same properties in another style; the browser's own value where that style does not set one. */
function only(style: Style, other: Style): Style {
  return { ...style, ...Object.fromEntries(Object.entries(other).filter(([name]) => name in style)) }
}

/** Authors may overrule each of these, as `display` does. */
function isHiddenByAttribute(element: Element) {
  return isHtml(element) && (element.attribs.hidden !== undefined || isHiddenByDefault(element))
}

/** In the sheet of the browser. The attribute `hidden` counts as the author's. */
function isHiddenByDefault(element: Element) {
  const { name, attribs } = element
  return isHtml(element) && (attribs.popover !== undefined || (name === 'dialog' && attribs.open === undefined))
}

/** Reads each style attribute once: formatting is copied with its attributes from one paragraph to the next. */
function openInline() {
  const known = new Map<string, RankedDeclaration[]>()
  return (css: string): RankedDeclaration[] => {
    const found = known.get(css) ?? readInline(css)
    known.set(css, found)
    return found
  }
}

const readInline = (css: string): RankedDeclaration[] =>
  readDeclarations(css).map((declaration) => ({
    ...declaration,
    rank: declaration.important ? 2 * importantRank : inlineRank,
    layer: inlineLayer,
    certain: true,
  }))

/** Reads the attributes of SVG that are declarations. They rank below every rule. */
function openPresentation() {
  const known = new Map<string, RankedDeclaration[]>()
  return ({ attribs }: Element): RankedDeclaration[] =>
    presentational.flatMap((property) => {
      const value = attribs[property]
      if (value === undefined) return []
      const item = `${property}:${value}`
      const found =
        known.get(item) ??
        readDeclaration(item)
          .filter(({ important }) => !important)
          .map((declaration) => ({ ...declaration, rank: -1, layer: -1, certain: true }))
      known.set(item, found)
      return found
    })
}

const presentational = ['display', 'visibility'] as const

/** A style attribute is above all layers of the sheets. */
const inlineLayer = Number.POSITIVE_INFINITY

const reveals = (change: Style, style: Style) =>
  (style.display === 'none' && 'display' in change && change.display !== 'none') ||
  // The parent may be hidden.
  change.visible === true ||
  (style.visible === false && 'visible' in change && change.visible === undefined) ||
  (style.contentHidden === true && change.contentHidden === false)
