// The style of one element: from its attributes, the style sheets of its page and its style attribute.
import type { Element } from 'domhandler'
import { readDeclarations, type Style } from './css-declarations.ts'
import { importantRank, inlineRank, type RankedDeclaration, type Stylesheet } from './stylesheet.ts'

/** What attributes, the page's own sheets and the style attribute come to for one element, nothing inherited. */
export function styleOf(element: Element, stylesheet: Stylesheet): Style {
  // A page that hides all of itself is waiting for its scripts, or is guarded against framing: readers do see it.
  if (element.name === 'html' || element.name === 'body') return unsaid
  const isHidden = isHiddenByAttribute(element)
  const declared = stylesheet.match(element).concat(inlineDeclarations(element))
  if (declared.length === 0) return isHidden ? none : unsaid

  const style: Style = isHidden ? { display: 'none' } : {}
  for (const declaration of declared.sort((a, b) => a.rank - b.rank)) {
    if (declaration.certain || reveals(declaration.style, style)) Object.assign(style, declaration.style)
  }
  return style
}

const none: Style = Object.freeze({ display: 'none' })
const unsaid: Style = Object.freeze({})

/** Authors may overrule each of these, as `display` does. */
function isHiddenByAttribute({ name, attribs }: Element) {
  if (attribs.hidden !== undefined || attribs.popover !== undefined) return true
  return name === 'dialog' && attribs.open === undefined
}

function inlineDeclarations({ attribs }: Element): RankedDeclaration[] {
  if (attribs.style === undefined) return []
  return readDeclarations(attribs.style).map((declaration) => ({
    ...declaration,
    rank: inlineRank + (declaration.important ? importantRank : 0),
    certain: true,
  }))
}

const reveals = (change: Style, style: Style) =>
  (style.display === 'none' && change.display !== undefined && change.display !== 'none') ||
  (style.visible === false && change.visible === true) ||
  (style.contentHidden === true && change.contentHidden === false)
