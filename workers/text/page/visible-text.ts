// Collects the visible text of an HTML page.
import type { ChildNode, Document, Element } from 'domhandler'
import { openBudgets } from '../budget.ts'
import { markCharacters, type Unseen } from '../characters.ts'
import { pieceLength, piecesOf } from '../pieces.ts'
import type { Display, Style, WhiteSpace } from '../style/css-declarations.ts'
import { openStyles } from '../style/style.ts'
import { readStylesheet } from '../style/stylesheet.ts'
import { displayOf, isDropped, isPreformatted, isReplaced } from './elements.ts'
import { type Draws, drawsOf, firstAlone, isConditional, isPhantom, isSvg } from './foreign.ts'
import type { Lines } from './lines.ts'
import { parsePage } from './markup.ts'

/**
 * All text that a page shows, in the order of its markup, like `innerText` of a browser without scripts and external
 * style sheets. Iterative: nesting costs no stack. Counts text that markup or style hides, in UTF-16 units.
 */
export function addVisibleText(
  html: string,
  lines: Lines,
  unseen: Unseen,
  hidden: { length: number },
  budgets = openBudgets(),
) {
  const { document, styles, moved } = parsePage(html)
  const sheets = new Map<Document, StyleOf>()
  const styleIn = (root: Document): StyleOf => {
    const known = sheets.get(root) ?? openStyles(readStylesheet(styles.get(root) ?? [], budgets))
    sheets.set(root, known)
    return known
  }
  const open: Frame[] = []
  let frame = outermost(document)
  for (;;) {
    const node = frame.next
    if (node === null) {
      leave(frame, lines)
      const outer = open.pop()
      if (!outer) return
      frame = outer
      continue
    }
    frame.next = node.next
    if (node.type === 'text') {
      if (node.data.length <= pieceLength) hidden.length += addText(markCharacters(node.data, unseen), frame, lines)
      else
        for (const piece of piecesOf(node.data)) hidden.length += addText(markCharacters(piece, unseen), frame, lines)
    } else if ('attribs' in node) {
      const passedBy = isPassedBy(node, frame)
      if (isDropped(node.name) || isReplaced(node)) continue
      open.push(frame)
      const root = moved.get(node) ?? frame.root
      const style = frame.hidden ? {} : passedBy === 'always' ? none : styleIn(root)(node, passedBy !== null)
      frame = enter(node, style, frame, lines)
      frame.root = root
    }
  }
}

const none: Style = Object.freeze({ display: 'none' })

type StyleOf = ReturnType<typeof openStyles>

/** An element that has begun and not ended. */
interface Frame {
  name: string
  /** The child to read next. */
  next: ChildNode | null
  /** Of the tree that it is in: its style sheets count. */
  root: Document
  display: Display
  /** Not laid out, with all its descendants. */
  hidden: boolean
  /** Laid out, but not visible; elements inside may be visible. */
  visible: boolean
  blocksInside: boolean
  whiteSpace: WhiteSpace
  draws: Draws
  /** Which of its children are shown is decided by their order. */
  firstAlone: ReturnType<typeof firstAlone>
  /** Whether the first of these children has come. */
  hasFirst: boolean
  box: ReturnType<Lines['beginBox']> | null
}

const outermost = (document: Document): Frame => ({
  name: '',
  next: first(document),
  root: document,
  display: 'block',
  hidden: false,
  visible: true,
  blocksInside: false,
  whiteSpace: 'collapse',
  draws: 'all',
  firstAlone: null,
  hasFirst: false,
  box: null,
})

const first = (parent: Document | Element) => (parent.children[0] as ChildNode | undefined) ?? null

/** Returns the length of the hidden text. */
function addText(text: string, { display, hidden, visible, whiteSpace, draws }: Frame, lines: Lines): number {
  if (hidden || !visible || draws === 'elements') return text.trim().length
  if (whiteSpace === 'collapse') lines.text(text)
  // Between the parts of a table no text is laid out, not even blanks that are kept.
  else if (!tableParts.has(display) || text.trim() !== '') lines.preformatted(text, whiteSpace)
  return 0
}

const tableParts: ReadonlySet<Display> = new Set(['table', 'group', 'row'])

/** Whether the child is not shown because of those before it. */
function isPassedBy(element: Element, frame: Frame): Frame['firstAlone'] {
  const { firstAlone, hasFirst } = frame
  if (!firstAlone) return null
  if (hasFirst) return firstAlone
  frame.hasFirst = firstAlone === 'by default' || !isConditional(element)
  return null
}

function enter(element: Element, style: Style, outer: Frame, lines: Lines): Frame {
  const { name } = element
  const display = displayIn(outer, element, style)
  const draws = drawsOf(element, style, outer.draws)
  const frame: Frame = {
    name,
    next: first(element),
    root: outer.root,
    display,
    hidden:
      outer.hidden || draws === 'nothing' || display === 'none' || (style.contentHidden === true && boxes.has(display)),
    visible: isPhantom(element) && !('visible' in style) ? false : (style.visible ?? outer.visible),
    blocksInside: takesAfter.has(style.display) ? outer.blocksInside : (style.blocksInside ?? false),
    whiteSpace: whiteSpaceIn(outer, name, style),
    draws,
    firstAlone: firstAlone(element),
    hasFirst: false,
    box: null,
  }
  if (!frame.hidden) begin(frame, lines)
  return frame
}

function displayIn(outer: Frame, element: Element, style: Style): Display {
  const { name } = element
  if (style.display === 'contents') return 'inline'
  const said = style.display === 'inherit' ? outer.display : style.display
  const display = said && said !== 'default' ? said : displayOf(name)
  if (display === 'break' || display === 'none') return display
  const isBlock = outer.blocksInside || style.floats || style.positioned || (name === 'text' && isSvg(element))
  return isBlock && display !== 'table' ? 'block' : display
}

/** Its content is laid out as if it were directly inside the parent. */
const takesAfter: ReadonlySet<Style['display']> = new Set(['inherit', 'contents'])

/** Only these can have their content hidden by `content-visibility`. */
const boxes: ReadonlySet<Display> = new Set(['block', 'box', 'cell', 'table'])

function whiteSpaceIn(outer: Frame, name: string, { whiteSpace }: Style): WhiteSpace {
  if (whiteSpace === 'inherit') return outer.whiteSpace
  return whiteSpace ?? (isPreformatted(name) ? 'keep' : outer.whiteSpace)
}

function begin(frame: Frame, lines: Lines) {
  const { name, display } = frame
  if (name === 'p') lines.edge(2)
  if (display === 'block') lines.edge(1)
  else if (display === 'break') lines.lineBreak()
  else if (display === 'row') lines.beginRow()
  else if (display === 'cell') lines.beginCell()
  else if (display === 'box') frame.box = lines.beginBox()
  else if (name === 'wbr') lines.zeroWidth()
  else if (display === 'table') {
    lines.edge(1)
    lines.beginTable()
  }
}

function leave({ name, display, hidden, box }: Frame, lines: Lines) {
  if (hidden) return
  if (display === 'block' || display === 'row') lines.edge(1)
  else if (box) lines.endBox(box)
  else if (display === 'table') {
    lines.endTable()
    lines.edge(1)
  }
  if (name === 'p') lines.edge(2)
}
