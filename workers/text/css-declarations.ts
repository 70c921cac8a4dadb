// Reads the CSS declarations that decide whether text is visible and where its lines break. All others are ignored.

/** How an element takes part in the flow of text. */
export type Display = 'none' | 'inline' | 'block' | 'box' | 'table' | 'group' | 'row' | 'cell' | 'break'

export type WhiteSpace = 'collapse' | 'keep' | 'keep-lines'

/** The result of the cascade for one element. A property that no rule sets is absent. */
export interface Style {
  display?: Display
  /** All children are laid out as blocks. */
  blocksInside?: boolean
  visible?: boolean
  whiteSpace?: WhiteSpace
  /** Floats and absolutely positioned elements are outside the line. */
  floats?: boolean
  positioned?: boolean
  contentHidden?: boolean
}

export interface Declaration {
  property: keyof typeof meanings
  style: Style
  important: boolean
}

/**
 * The declarations of a rule or of a style attribute that matter here, in order. Invalid ones do not count, as in
 * browsers.
 */
export function readDeclarations(css: string): Declaration[] {
  const found: Declaration[] = []
  if (css.length > longestDeclarations || (!relevant.test(css) && !css.includes('\\'))) return found
  for (const part of decodeCss(css).split(';')) {
    const match = part.trim().match(declaration)
    if (!match) continue
    const [, name = '', value = '', bang] = match
    const property = name.toLowerCase() as Declaration['property']
    const style = meanings[property].get(value.toLowerCase())
    if (style) found.push({ property, style, important: bang !== undefined })
  }
  return found
}

/** Removes comments and decodes escapes, so that `d\69splay/**\/:none` reads as in a browser. */
function decodeCss(css: string) {
  return undoEscapes(
    css.includes('/*') ? css.replace(commentsOutsideStrings, (found) => (found[0] === '/' ? '' : found)) : css,
  )
}

function undoEscapes(css: string) {
  if (!css.includes('\\')) return css
  return css.replace(escapes, (_, hex: string | undefined, character: string) => {
    if (hex === undefined) return character
    const point = Number.parseInt(hex, 16)
    return point === 0 || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)
      ? '\ufffd'
      : String.fromCodePoint(point)
  })
}

/** Longer ones are images in data URLs. */
const longestDeclarations = 65_536

const relevant = /display|visibility|white-space|float|position/i
const declaration =
  /^(display|visibility|content-visibility|white-space|float|position)\s*:\s*([a-z-]+)(?:\s*(!)\s*important)?$/i
const escapes = /\\(?:([0-9a-f]{1,6})\s?|([\s\S]))/gi
export const commentsOutsideStrings = /"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|\/\*[\s\S]*?(?:\*\/|$)/g

const each = (values: string, style: Style) => values.split(' ').map((value) => [value, style] as const)

const meanings: Record<
  'display' | 'visibility' | 'content-visibility' | 'white-space' | 'float' | 'position',
  ReadonlyMap<string, Style>
> = {
  display: new Map([
    ...each('none', { display: 'none' }),
    ...each('inline contents ruby ruby-base ruby-text', { display: 'inline', blocksInside: false }),
    ...each('block list-item flow-root table-caption', { display: 'block', blocksInside: false }),
    ...each('inline-block', { display: 'box', blocksInside: false }),
    ...each('flex grid -webkit-box -webkit-flex -ms-flexbox', { display: 'block', blocksInside: true }),
    ...each('inline-flex inline-grid -webkit-inline-box', { display: 'box', blocksInside: true }),
    ...each('table inline-table', { display: 'table', blocksInside: false }),
    ...each('table-row-group table-header-group table-footer-group', { display: 'group', blocksInside: false }),
    ...each('table-row', { display: 'row', blocksInside: false }),
    ...each('table-cell', { display: 'cell', blocksInside: false }),
    ...each('table-column table-column-group', { display: 'none' }),
  ]),
  visibility: new Map([...each('visible', { visible: true }), ...each('hidden collapse', { visible: false })]),
  'content-visibility': new Map([
    ...each('hidden', { contentHidden: true }),
    ...each('visible auto', { contentHidden: false }),
  ]),
  'white-space': new Map([
    ...each('normal nowrap', { whiteSpace: 'collapse' }),
    ...each('pre pre-wrap break-spaces', { whiteSpace: 'keep' }),
    ...each('pre-line', { whiteSpace: 'keep-lines' }),
  ]),
  float: new Map([...each('left right inline-start inline-end', { floats: true }), ...each('none', { floats: false })]),
  position: new Map([
    ...each('absolute fixed', { positioned: true }),
    ...each('static relative sticky', { positioned: false }),
  ]),
}
