// Reads a report in Markdown (CommonMark with GFM's tables, notes and bare links) with the parser of remark.
import { BlockBuilder, type BlockContext, decoderOf, type Spelling } from './block-builder.ts'
import { checkMarkdown } from './complexity.ts'
import { meter } from './metered.ts'
import { type Block, type Report, type Span, UnreadableReportError } from './report.ts'

/** The parts of mdast that are used here. */
interface Node {
  type: string
  value?: string
  url?: string
  identifier?: string
  ordered?: boolean
  start?: number | null
  children?: Node[]
  position?: { start: { offset?: number }; end: { offset?: number } }
}

type Parse = (text: string) => Node

/** Throws UnreadableReportError. Rejects as the import does where the parser is not installed. */
export async function readMarkdown(file: string): Promise<Report> {
  checkMarkdown(file)
  const parse = await openParser()
  // The parser counts offsets without the mark of byte order.
  const bom = file.startsWith('\ufeff') ? 1 : 0
  try {
    return { blocks: new Reader(file, parse, bom).read(), syntax: 'markdown' }
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new UnreadableReportError('The report is nested too deeply.', { cause })
  }
}

async function openParser(): Promise<Parse> {
  const [{ fromMarkdown }, { gfm }, { gfmFromMarkdown }] = await Promise.all([
    import('mdast-util-from-markdown'),
    import('micromark-extension-gfm'),
    import('mdast-util-gfm'),
  ])
  // Their transforms look for further bare links and take the positions from what they find.
  const mdastExtensions = gfmFromMarkdown().map((extension) => ({ ...extension, transforms: [] }))
  type Extension = ReturnType<typeof gfm>
  return (text) => {
    // Unchecked cast: the meter states only the parts of the parser that it uses.
    const extensions = [gfm(), meter(text.length) as Extension]
    return fromMarkdown(text, { extensions, mdastExtensions }) as Node
  }
}

function spellingOf(parse: Parse): Spelling {
  const decode = decoderOf((reference) => parse(reference).children?.[0]?.children?.[0]?.value ?? reference)
  return {
    part: /\\[!-/:-@[-`{-~]|&(?:#[xX][\da-fA-F]{1,6}|#\d{1,7}|[A-Za-z][A-Za-z\d]{0,30});|[ \t]*(?:\r\n|\n|\r)[ \t>]*|[^\\&\s]+|[^\S\r\n]+|[\\&]|\s/gy,
    shown(part) {
      if (part.length > 1 && part.startsWith('\\')) return part.slice(1)
      if (part.length > 1 && part.startsWith('&')) return decode(part)
      return /[\r\n]/.test(part) ? '\n' : null
    },
    collapses: false,
  }
}

class Reader {
  readonly #file: string
  readonly #bom: number
  readonly #root: Node
  readonly #spelling: Spelling
  readonly #blocks: Block[] = []
  readonly #definitions = new Map<string, string>()
  #quotations = 0
  #lists = 0

  constructor(file: string, parse: Parse, bom: number) {
    this.#file = file
    this.#bom = bom
    this.#root = parse(file)
    this.#spelling = spellingOf(parse)
  }

  read(): Block[] {
    this.#collect(this.#root)
    this.#flow(this.#root, { quotation: null, quotationUrl: null, note: null, item: null })
    return this.#blocks
  }

  #collect(node: Node): void {
    if (node.type === 'definition' && node.identifier && !this.#definitions.has(node.identifier))
      this.#definitions.set(node.identifier, node.url ?? '')
    for (const child of node.children ?? []) this.#collect(child)
  }

  #flow(node: Node, context: BlockContext): void {
    switch (node.type) {
      case 'paragraph':
        this.#block(node, 'text', context)
        break
      case 'heading':
        this.#block(node, 'heading', context)
        break
      case 'tableRow':
        this.#block(node, 'row', context)
        break
      case 'blockquote': {
        const quotation = context.quotation ?? ++this.#quotations
        this.#inside(node, { ...context, quotation, item: null })
        break
      }
      case 'footnoteDefinition':
        this.#inside(node, { ...context, note: `footnote ${node.identifier}`, item: null })
        break
      case 'list': {
        const list = node.ordered ? ++this.#lists : null
        const first = node.start ?? 1
        for (const [n, item] of (node.children ?? []).entries())
          this.#inside(item, { ...context, item: list === null ? null : { list, number: first + n } })
        break
      }
      default:
        this.#inside(node, context)
    }
  }

  #inside(node: Node, context: BlockContext): void {
    let inner = context
    for (const child of node.children ?? []) {
      this.#flow(child, inner)
      inner = { ...inner, item: null }
    }
  }

  #block(node: Node, role: Block['role'], context: BlockContext): void {
    const builder = new BlockBuilder(this.#file, this.#spelling)
    if (role === 'row')
      for (const [n, cell] of (node.children ?? []).entries()) {
        if (n > 0) builder.gap(CELL)
        builder.enter()
        this.#phrasing(cell, builder)
        builder.leave()
      }
    else this.#phrasing(node, builder)
    const block = builder.build(role, context)
    if (block.text.trim() !== '' || block.links.length > 0) this.#blocks.push(block)
  }

  #phrasing(parent: Node, builder: BlockBuilder): void {
    for (const node of parent.children ?? []) {
      const range = this.#rangeOf(node)
      const from = builder.length
      switch (node.type) {
        case 'text':
          builder.text(node.value ?? '', range)
          break
        case 'inlineCode':
          builder.fixed(node.value ?? '', range ?? NOWHERE)
          break
        case 'break':
          builder.fixed('\n', range ?? NOWHERE)
          break
        case 'link':
        case 'linkReference': {
          const url = node.type === 'link' ? node.url : this.#definitions.get(node.identifier ?? '')
          builder.fence()
          this.#children(node, builder)
          if (url !== undefined) builder.link(from, { url, note: null, source: range ?? NOWHERE })
          break
        }
        case 'footnoteReference':
          builder.link(from, { url: null, note: `footnote ${node.identifier}`, source: range ?? NOWHERE })
          break
        case 'emphasis':
        case 'strong':
        case 'delete':
          this.#children(node, builder)
          break
        default:
          if (/^<br\b/i.test(node.value ?? '')) builder.fixed('\n', range ?? NOWHERE)
          builder.fence()
      }
    }
  }

  #children(node: Node, builder: BlockBuilder): void {
    builder.enter()
    this.#phrasing(node, builder)
    builder.leave()
  }

  #rangeOf({ position }: Node): Span | null {
    const { start, end } = position ?? {}
    if (start?.offset === undefined || end?.offset === undefined) return null
    return { start: start.offset + this.#bom, end: end.offset + this.#bom }
  }
}

const NOWHERE = { start: 0, end: 0 }
/** Between the cells of a row. */
export const CELL = ' | '
