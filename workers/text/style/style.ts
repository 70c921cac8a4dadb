// The style of one element: from its attributes, the style sheets of its page and its style attribute.
import type { Element } from 'domhandler'
import { readDeclarations, type Style } from './css-declarations.ts'
import { importantRank, inlineRank, type RankedDeclaration, type RuleIndex } from './rule-index.ts'

/**
 * Finds the combined effect of attributes, the page's own sheets and the style attribute on one element, without
 * inheritance.
 */
export function openStyles(rules: RuleIndex): (element: Element) => Style {
  const inlineDeclarations = openInline()
  return (element) => {
    // A page that hides all of itself is waiting for its scripts, or is guarded against framing: readers do see it.
    if (element.name === 'html' || element.name === 'body') return unsaid
    const ruled = rules.match(element)
    const { style: inline } = element.attribs
    const declared = inline === undefined ? ruled : [...ruled, ...inlineDeclarations(inline)]
    const isHidden = isHiddenByAttribute(element)
    if (declared.length === 0) return isHidden ? none : unsaid
    const style = cascade(declared, isHidden)
    if (style.display === 'default') style.display = isHiddenByDefault(element) ? 'none' : undefined
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
  return element.attribs.hidden !== undefined || isHiddenByDefault(element)
}

/** In the sheet of the browser. The attribute `hidden` counts as the author's. */
function isHiddenByDefault({ name, attribs }: Element) {
  return attribs.popover !== undefined || (name === 'dialog' && attribs.open === undefined)
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

/** A style attribute is above all layers of the sheets. */
const inlineLayer = Number.POSITIVE_INFINITY

const reveals = (change: Style, style: Style) =>
  (style.display === 'none' && 'display' in change && change.display !== 'none') ||
  // The parent may be hidden.
  change.visible === true ||
  (style.visible === false && 'visible' in change && change.visible === undefined) ||
  (style.contentHidden === true && change.contentHidden === false)
