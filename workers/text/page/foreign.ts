// What SVG, MathML and lists of options show. Browsers draw characters in few of their elements, and many of them hide what is inside;
// nothing that a style says changes most of it.
import type { Element } from 'domhandler'
import type { Style } from '../style/css-declarations.ts'

/**
 * What is drawn directly inside an element. `all`: characters and elements. `elements`: those alone. `text` and `span`: characters, and
 * the few elements that SVG allows among them. `nothing`: neither, at any depth.
 */
export type Draws = 'all' | 'elements' | 'text' | 'span' | 'nothing'

/** @param outer of the parent */
export function drawsOf(element: Element, style: Style, outer: Draws): Draws {
  const { name, namespace } = element
  if (outer === 'nothing') return 'nothing'
  if (namespace === SVG) return drawsInSvg(element, outer)
  if (namespace !== MATHML)
    return name === 'select' || (name === 'optgroup' && outer === 'elements') ? 'elements' : 'all'
  if (name === 'mspace') return 'nothing'
  // With another display it is laid out as HTML.
  return withCharacters.has(name) || 'display' in style ? 'all' : 'elements'
}

function drawsInSvg({ name, parent }: Element, outer: Draws): Draws {
  if (outer === 'text' || outer === 'span') {
    if (name === 'a') return parent && 'name' in parent && parent.name === 'a' ? 'nothing' : outer
    return name === 'tspan' || (name === 'textPath' && outer === 'text') ? 'span' : 'nothing'
  }
  if (containers.has(name)) return 'elements'
  if (name === 'text') return 'text'
  return name === 'foreignObject' ? 'all' : 'nothing'
}

/** Whether only the first child is shown that may be: of `switch` by no style, else unless a style shows the others. */
export function firstAlone({ name, namespace }: Element): 'always' | 'by default' | null {
  if (namespace === SVG) return name === 'switch' ? 'always' : null
  return namespace === MATHML && (name === 'maction' || name === 'semantics') ? 'by default' : null
}

/** Whether a child of `switch` is passed over for some readers, so that the next one is shown. */
export const isConditional = ({ attribs }: Element): boolean =>
  attribs.systemLanguage !== undefined || attribs.requiredExtensions !== undefined

export const isSvg = ({ namespace }: Element): boolean => namespace === SVG
export const isHtml = ({ namespace }: Element): boolean => namespace !== SVG && namespace !== MATHML
/** Takes the room of its content, and does not show it. */
export const isPhantom = ({ name, namespace }: Element): boolean => name === 'mphantom' && namespace === MATHML

const SVG = 'http://www.w3.org/2000/svg'
const MATHML = 'http://www.w3.org/1998/Math/MathML'
const containers: ReadonlySet<string> = new Set(['svg', 'g', 'a', 'switch'])
const withCharacters: ReadonlySet<string> = new Set(['mi', 'mn', 'mo', 'ms', 'mtext', 'mtable', 'mtr', 'mtd'])
