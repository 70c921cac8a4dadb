// Reads a report in HTML with parse5: the blocks of text that a reader sees, links, quotations, and notes within the page.
import type { DefaultTreeAdapterTypes } from 'parse5'
import { BlockBuilder, type BlockContext, decoderOf, type Spelling } from './block-builder.ts'
import { checkSize } from './complexity.ts'
import { CELL } from './markdown.ts'
import { type Block, type Report, type Span, UnreadableReportError } from './report.ts'

type Parser = typeof import('parse5')
type Node = DefaultTreeAdapterTypes.Node
type ParentNode = DefaultTreeAdapterTypes.ParentNode
type Element = DefaultTreeAdapterTypes.Element

/** Elements within elements. Browsers go no deeper than 512. */
const MAX_DEPTH = 512
/** Quotations within quotations that count as quotations of their own. */
const MAX_QUOTED = 4
/** Elements that a parser may make for each `<` of the file: wrong nesting makes it repeat elements. */
const MAX_REPEATED = 4

/**
 * Elements, their attributes, texts, comments, and in texts references and blanks that show as one: each takes several hundred bytes. The
 * densest of what people write, a table of short numbers, has so many in 1.5 million characters.
 */
const MAX_PARTS = 300_000

/** Throws UnreadableReportError. Rejects as the import does where the parser is not installed. */
export async function readHtml(file: string): Promise<Report> {
  checkSize(file)
  const parser = await import('parse5')
  const charge = budget()
  const document = parse(parser, file, charge)
  const reader = new Reader(file, spellingOf(parser, charge))
  reader.read(document)
  return { blocks: reader.blocks, syntax: 'html' }
}

const refuse = (why: string): never => {
  throw new UnreadableReportError(`The report ${why}.`)
}

type Charge = (parts?: number) => void

function budget(): Charge {
  let left = MAX_PARTS
  return (parts = 1) => {
    left -= parts
    if (left < 0) refuse(`has more than ${MAX_PARTS.toLocaleString('en')} elements, attributes, texts and references`)
  }
}

/** Throws UnreadableReportError for a file that would take more than linear time, or more memory than a small machine has. */
function parse({ parse, defaultTreeAdapter }: Parser, file: string, charge: Charge): Node {
  let depth = 0
  let left = 1000
  for (let i = file.indexOf('<'); i >= 0; i = file.indexOf('<', i + 1)) left += MAX_REPEATED
  const { insertText, insertTextBefore, createElement, createCommentNode } = defaultTreeAdapter
  /** A text is added piece by piece. */
  const chargeNew = (parent: ParentNode, insert: () => void) => {
    const before = parent.childNodes.length
    insert()
    charge(parent.childNodes.length - before)
  }
  return parse(file, {
    sourceCodeLocationInfo: true,
    treeAdapter: {
      ...defaultTreeAdapter,
      createElement(...made) {
        if (--left < 0) refuse('nests its elements wrongly, too often')
        charge(1 + made[2].length)
        return createElement(...made)
      },
      createCommentNode(data) {
        charge()
        return createCommentNode(data)
      },
      insertText(parent, text) {
        chargeNew(parent, () => insertText(parent, text))
      },
      insertTextBefore(parent, text, place) {
        chargeNew(parent, () => insertTextBefore(parent, text, place))
      },
      onItemPush() {
        if (++depth > MAX_DEPTH) refuse('is nested too deeply')
      },
      onItemPop() {
        depth--
      },
    },
  })
}

function spellingOf({ parseFragment }: Parser, charge: Charge): Spelling {
  const decode = decoderOf((reference) => {
    const [node] = parseFragment(reference).childNodes
    return node && 'value' in node ? node.value : reference
  })
  return {
    part: /&#?[\dA-Za-z]+;?|[ \t\n\f\r]+|[^&\s]+|[&\s]/gy,
    shown(part) {
      const isReference = part.startsWith('&') && part.length > 1
      if (isReference || /^\s\s/.test(part)) charge()
      return isReference ? decode(part) : /\r/.test(part) ? part.replace(/\r\n?/g, '\n') : null
    },
    collapses: true,
  }
}

class Reader {
  readonly blocks: Block[] = []
  readonly #file: string
  readonly #spelling: Spelling
  /** Notes by the names of their anchors. */
  readonly #notes = new Map<string, string>()
  readonly #noteOf = new Map<Element, string>()
  #builder: BlockBuilder
  #quotations = 0
  /** Open quotations within a line. */
  #quoted = 0
  #lists = 0

  constructor(file: string, spelling: Spelling) {
    this.#file = file
    this.#spelling = spelling
    this.#builder = new BlockBuilder(file, spelling)
  }

  read(document: Node): void {
    this.#findNotes(document)
    const context: BlockContext = { quotation: null, quotationUrl: null, note: null, item: null }
    this.#walk(document, context, 'text')
    this.#flush('text', context)
  }

  /** Elements that links within the page lead to, as notes are. */
  #findNotes(document: Node): void {
    const named = new Map<string, Element>()
    const called = new Set<string>()
    const visit = (node: Node, around: Element | null) => {
      const element = 'tagName' in node ? node : null
      const name =
        element && (attribute(element, 'id') ?? (element.tagName === 'a' ? attribute(element, 'name') : null))
      const block = element && NOTE.has(element.tagName) ? element : around
      // An empty anchor stands for what is around it.
      if (name && element && block && (element === block || isEmpty(element)) && !named.has(name))
        named.set(name, block)
      const href = element?.tagName === 'a' ? attribute(element, 'href') : null
      if (element && href?.startsWith('#') && isCall(element)) called.add(decodeName(href))
      for (const child of childrenOf(node)) visit(child, block)
    }
    visit(document, null)
    for (const name of called) {
      const element = named.get(name)
      if (!element) continue
      const note = this.#noteOf.get(element) ?? `anchor ${name}`
      this.#noteOf.set(element, note)
      this.#notes.set(name, note)
    }
  }

  #walk(node: Node, context: BlockContext, role: Block['role']): void {
    if (node.nodeName === '#text' && 'value' in node) this.#text(node)
    else if ('tagName' in node) this.#element(node, context, role)
    else for (const child of childrenOf(node)) this.#walk(child, context, role)
  }

  #element(node: Element, context: BlockContext, role: Block['role']): void {
    const { tagName } = node
    if (tagName === 'br') this.#builder.fixed(' ', spanOf(node))
    else if (tagName === 'tr') this.#row(node, context)
    else if (BLOCKS.has(tagName)) this.#block(node, context, role)
    else if (!SILENT.has(tagName)) this.#inline(node, context, role)
  }

  #block(node: Element, context: BlockContext, role: Block['role']): void {
    const { tagName } = node
    this.#flush(role, context)
    const inner = this.#contextIn(node, context)
    const own = HEADING.test(tagName) ? 'heading' : role
    if (tagName === 'ol') this.#list(node, inner)
    else {
      this.#inside(node, inner, own)
      this.#flush(own, inner)
    }
  }

  #inside(node: Element, context: BlockContext, role: Block['role']): void {
    for (const child of childrenOf(node)) this.#walk(child, context, role)
  }

  #contextIn(element: Element, context: BlockContext): BlockContext {
    const note = this.#noteOf.get(element)
    const inner = note === undefined ? context : { ...context, note }
    if (element.tagName !== 'blockquote') return inner
    const quotationUrl = inner.quotationUrl ?? attribute(element, 'cite')
    return { ...inner, quotation: inner.quotation ?? ++this.#quotations, quotationUrl }
  }

  #list(element: Element, context: BlockContext): void {
    const list = ++this.#lists
    let number = Number.parseInt(attribute(element, 'start') ?? '1', 10) || 1
    for (const child of childrenOf(element)) {
      const isItem = 'tagName' in child && child.tagName === 'li'
      const item = isItem ? { list, number: number++ } : null
      this.#walk(child, { ...context, item }, 'text')
    }
  }

  #row(element: Element, context: BlockContext): void {
    this.#flush('text', context)
    const cells = childrenOf(element).filter(
      (child): child is Element => 'tagName' in child && /^t[dh]$/.test(child.tagName),
    )
    for (const [n, cell] of cells.entries()) {
      if (n > 0) this.#builder.gap(CELL)
      this.#builder.enter()
      for (const child of childrenOf(cell)) this.#walkInRow(child, context)
      this.#builder.leave()
    }
    this.#flush('row', context)
  }

  /** Blocks within a cell stay in the row. */
  #walkInRow(node: Node, context: BlockContext): void {
    const isBlock = 'tagName' in node && BLOCKS.has(node.tagName)
    if (isBlock) this.#builder.fixed(' ', spanOf(node))
    if (isBlock) for (const child of childrenOf(node)) this.#walkInRow(child, context)
    else this.#walk(node, context, 'row')
  }

  #inline(element: Element, context: BlockContext, role: Block['role']): void {
    const from = this.#builder.length
    const href = element.tagName === 'a' ? attribute(element, 'href') : null
    this.#builder.enter()
    const isQuoted = element.tagName === 'q'
    if (isQuoted) this.#quoted++
    if (isQuoted || href !== null) this.#builder.fence()
    if (FIXED.has(element.tagName)) this.#builder.fixed(textOf(element).replace(/\s+/g, ' '), spanOf(element))
    else this.#inside(element, context, role)
    this.#builder.leave()
    if (EMPTY.has(element.tagName)) this.#builder.fence()
    if (isQuoted) {
      this.#builder.fence()
      if (this.#quoted-- <= MAX_QUOTED) this.#builder.quote(from)
    }
    if (href === null) return
    const isInside = href.startsWith('#')
    const note = isInside && isCall(element) ? (this.#notes.get(decodeName(href)) ?? null) : null
    if (!isInside || note !== null)
      this.#builder.link(from, { url: isInside ? null : href, note, source: spanOf(element) })
  }

  #text(node: DefaultTreeAdapterTypes.TextNode): void {
    const at = node.sourceCodeLocation
    this.#builder.text(node.value, at ? { start: at.startOffset, end: at.endOffset } : null)
  }

  #flush(role: Block['role'], context: BlockContext): void {
    const block = this.#builder.build(role, context)
    this.#builder = new BlockBuilder(this.#file, this.#spelling)
    if (block.text.trim() === '' && block.links.length === 0) return
    this.blocks.push(block)
    // Only the first block of an item bears its number.
    context.item = null
  }
}

function childrenOf(node: Node): Node[] {
  return 'childNodes' in node ? node.childNodes : []
}

function attribute(element: Element, name: string): string | null {
  return element.attrs.find((one) => one.name === name)?.value ?? null
}

function textOf(element: Element): string {
  return textWithin(element, Number.POSITIVE_INFINITY) ?? ''
}

/** Null for an element of more nodes. */
function textWithin(element: Element, most: number): string | null {
  const parts: string[] = []
  let left = most
  const visit = (node: Node) => {
    if (--left < 0) return
    if (node.nodeName === '#text' && 'value' in node) parts.push(node.value)
    else for (const child of childrenOf(node)) if (left >= 0) visit(child)
  }
  visit(element)
  return left < 0 ? null : parts.join('')
}

/** Nodes in the call of a note, and in an empty anchor. */
const LONGEST_CALL = 20

const isEmpty = (element: Element) => textWithin(element, LONGEST_CALL)?.trim() === ''
const isCall = (element: Element) => CALL.test((textWithin(element, LONGEST_CALL) ?? '').trim())

function spanOf({ sourceCodeLocation: at }: Element): Span {
  return at ? { start: at.startOffset, end: at.endOffset } : { start: 0, end: 0 }
}

function decodeName(href: string): string {
  try {
    return decodeURIComponent(href.slice(1))
  } catch {
    return href.slice(1)
  }
}

/** What the call of a note shows: a number or a mark, in brackets or not. */
const CALL = /^[[(]?(?:\d{1,3}|[a-z]|[*†‡§]+)[\])]?$/i
/** Elements that can hold a note. */
const NOTE = new Set(['li', 'p', 'div', 'aside', 'dd', 'section', 'tr', 'td'])
const HEADING = /^h[1-6]$/
/** Elements whose text readers do not see, or that hold no sentences. */
const SILENT = new Set(
  'head script style template noscript svg math pre textarea select option button iframe object video audio canvas'.split(
    ' ',
  ),
)
const BLOCKS = new Set(
  (
    'address article aside blockquote body caption center details dd dialog div dl dt fieldset figcaption figure footer form ' +
    'h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p search section summary table tbody thead tfoot tr ul'
  ).split(' '),
)
/** Inline elements with text that must not be replaced. */
const FIXED = new Set(['code', 'kbd', 'samp', 'var'])
/** Elements that show something that is no text. */
const EMPTY = new Set(['img', 'input', 'wbr', 'embed'])
