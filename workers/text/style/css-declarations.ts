// Reads the CSS declarations that decide whether text is visible and where its lines break. All others are ignored.
import { cssItems } from './css-items.ts'

/** How an element is laid out in the flow of text. */
export type Display = 'none' | 'inline' | 'block' | 'box' | 'table' | 'group' | 'row' | 'cell' | 'break'

export type WhiteSpace = 'collapse' | 'keep' | 'keep-lines'

/**
 * The result of the cascade for one element. A property that no rule sets is absent; one that is undefined is what the
 * browser makes of the element, or what it inherits, when nothing is said.
 */
export interface Style {
  /** `default` is what the browser's own sheet says; of `contents` there is no box. */
  display?: Display | 'contents' | 'inherit' | 'default'
  /** All children are laid out as blocks. */
  blocksInside?: boolean
  visible?: boolean
  whiteSpace?: WhiteSpace | 'inherit'
  /** Floats and absolutely positioned elements are outside the line. */
  floats?: boolean
  positioned?: boolean
  contentHidden?: boolean
}

export interface Declaration {
  property: string
  style: Style
  important: boolean
  /** The value is the one of the layers below (`revert-layer`); `style` names its properties. */
  revertsLayer?: true
}

/** Of each property the last declaration of each kind, in order: the others have no effect. */
export function condense(declarations: readonly Declaration[]): Declaration[] {
  if (declarations.length < 2) return [...declarations]
  const last = new Map<string, Declaration>()
  for (const declaration of declarations) {
    const { property, important, revertsLayer = false } = declaration
    const kind = `${property} ${important} ${revertsLayer}`
    last.delete(kind)
    last.set(kind, declaration)
  }
  return [...last.values()]
}

/** The declarations of a style attribute that matter here, in order. Invalid ones do not count, as in browsers. */
export function readDeclarations(css: string): Declaration[] {
  if (css.length > longestDeclarations || !mayDeclare(css)) return []
  const found: Declaration[] = []
  for (const { prelude } of cssItems(css, 'attribute')) found.push(...readDeclaration(prelude))
  return condense(found)
}

/** Whether a piece of CSS can hold a declaration that matters. */
export const mayDeclare = (css: string) => relevant.test(css) || css.includes('\\')

/** One declaration as an item of a block. The result has more than one for `all`, and none for a name unknown here. */
export function readDeclaration(item: string): Declaration[] {
  if (item.length > longestDeclaration || !mayDeclare(item)) return []
  const text = decode(item)
  const colon = text.indexOf(':')
  const name = text.slice(0, colon).trim().toLowerCase()
  const properties = name === 'all' ? names : names.filter((property) => property === name)
  if (properties.length === 0) return []
  const declared = text.slice(colon + 1).trim()
  const value = declared.replace(importance, '')
  const word = value.trim().toLowerCase().replace(/\s+/g, ' ')
  return properties.flatMap((property) => {
    const style = styleOf(property, word, name === 'all')
    if (!style) return []
    const found: Declaration = { property, style, important: value !== declared }
    return word === 'revert-layer' ? { ...found, revertsLayer: true } : found
  })
}

function styleOf(property: Property, value: string, isShorthand: boolean): Style | undefined {
  const { words, initial, unset, reverted }: Meaning = meanings[property]
  switch (value) {
    case 'initial':
      return initial
    case 'unset':
      return unset ?? initial
    case 'revert':
    case 'revert-layer':
      return reverted
    case 'inherit':
      return property === 'display' ? inheritedDisplay : (unset ?? initial)
  }
  // The value of a function is not computed. The element may be visible.
  if (substitution.test(value)) return property === 'display' ? unknownDisplay : reverted
  return isShorthand ? undefined : words.get(value)
}

/** Removes comments and decodes escapes, so that `d\69splay/**\/:none` reads as in a browser. */
function decode(css: string) {
  const plain = css.includes('/*')
    ? css.replace(commentsOutsideStrings, (found) => (found[0] === '/' ? ' ' : found))
    : css
  return plain.includes('\\') ? plain.replace(escapes, unescaped) : plain
}

/** An escaped character is always part of a name. One that cannot be in the names known here becomes U+FFFD. */
function unescaped(escaped: string, hex: string | undefined) {
  const found = hex === undefined ? escaped.slice(1) : codePoint(Number.parseInt(hex, 16))
  return /^[\w-]$/.test(found) ? found : '\ufffd'
}

const codePoint = (point: number) => (point < 0x80 ? String.fromCharCode(point) : '\ufffd')

/** Longer values are images in data URLs. */
const longestDeclarations = 65_536
const longestDeclaration = 1000

type Property = keyof typeof meanings

const relevant = /display|visibility|white-space|float|position|all\s*(?:\/\*|:)/i
const importance = /!\s*important$/i
const escapes = /\\(?:([0-9a-f]{1,6})\s?|[\s\S])/gi
const substitution = /\b(?:var|env|attr|if|inherit)\(|^--[\w-]+\(/
const commentsOutsideStrings = /"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|\/\*[\s\S]*?(?:\*\/|$)/g

const each = (values: string, style: Style) => values.split(' ').map((value) => [value, style] as const)

/** `block flex`, `flex block`, and the one word that means the same. */
function* pairs() {
  for (const [outside, flow, box] of [
    ['block', 'block', 'block'],
    ['inline', 'inline', 'box'],
  ] as const) {
    const inside: [string, Style][] = [
      ['flow', { display: flow, blocksInside: false }],
      ['flow-root', { display: box, blocksInside: false }],
      ['flex', { display: box, blocksInside: true }],
      ['grid', { display: box, blocksInside: true }],
      ['table', { display: 'table', blocksInside: false }],
      ['ruby', { display: flow, blocksInside: false }],
      ['math', { display: flow, blocksInside: false }],
      ['list-item', { display: flow, blocksInside: false }],
      ['flow list-item', { display: flow, blocksInside: false }],
    ]
    for (const [word, style] of inside) {
      yield [`${outside} ${word}`, style] as const
      yield [`${word} ${outside}`, style] as const
    }
  }
}

const inheritedDisplay: Style = { display: 'inherit' }
const unknownDisplay: Style = { display: undefined, blocksInside: undefined }

interface Meaning {
  words: ReadonlyMap<string, Style>
  initial: Style
  /** Absent where it is the initial value. */
  unset?: Style
  reverted: Style
}

const whiteSpace: Meaning = {
  words: new Map([
    ...each('normal nowrap wrap collapse', { whiteSpace: 'collapse' }),
    ...each('pre pre-wrap break-spaces preserve', { whiteSpace: 'keep' }),
    ...each('pre-line preserve-breaks', { whiteSpace: 'keep-lines' }),
    ...['wrap', 'nowrap'].flatMap((wrap) => [
      [`collapse ${wrap}`, { whiteSpace: 'collapse' }] as const,
      [`preserve ${wrap}`, { whiteSpace: 'keep' }] as const,
      [`preserve-breaks ${wrap}`, { whiteSpace: 'keep-lines' }] as const,
    ]),
  ]),
  initial: { whiteSpace: 'collapse' },
  unset: { whiteSpace: 'inherit' },
  reverted: { whiteSpace: undefined },
}

const meanings = {
  display: {
    words: new Map([
      ...each('none', { display: 'none' }),
      ...each('contents', { display: 'contents' }),
      ...each('inline ruby ruby-text math flow', { display: 'inline', blocksInside: false }),
      ...each('block list-item flow-root table-caption', { display: 'block', blocksInside: false }),
      ...each('inline-block', { display: 'box', blocksInside: false }),
      ...each('flex grid -webkit-box -webkit-flex', { display: 'block', blocksInside: true }),
      ...each('inline-flex inline-grid -webkit-inline-box -webkit-inline-flex', { display: 'box', blocksInside: true }),
      ...each('table inline-table', { display: 'table', blocksInside: false }),
      ...each('table-row-group table-header-group table-footer-group', { display: 'group', blocksInside: false }),
      ...each('table-row', { display: 'row', blocksInside: false }),
      ...each('table-cell', { display: 'cell', blocksInside: false }),
      ...each('table-column table-column-group', { display: 'none' }),
      ...pairs(),
    ]),
    initial: { display: 'inline', blocksInside: false },
    reverted: { display: 'default', blocksInside: undefined },
  },
  visibility: {
    words: new Map([...each('visible', { visible: true }), ...each('hidden collapse', { visible: false })]),
    initial: { visible: true },
    unset: { visible: undefined },
    reverted: { visible: undefined },
  },
  'content-visibility': {
    words: new Map([...each('hidden', { contentHidden: true }), ...each('visible auto', { contentHidden: false })]),
    initial: { contentHidden: false },
    reverted: { contentHidden: false },
  },
  'white-space': whiteSpace,
  'white-space-collapse': whiteSpace,
  float: {
    words: new Map([
      ...each('left right inline-start inline-end', { floats: true }),
      ...each('none', { floats: false }),
    ]),
    initial: { floats: false },
    reverted: { floats: false },
  },
  position: {
    words: new Map([
      ...each('absolute fixed', { positioned: true }),
      ...each('static relative sticky', { positioned: false }),
    ]),
    initial: { positioned: false },
    reverted: { positioned: false },
  },
} satisfies Record<string, Meaning>

const names = Object.keys(meanings) as Property[]
