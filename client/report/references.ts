// Lists of references: the entry for each number, and the places where the text refers to it.
import { type Block, type Link, lastAt, type Span } from './report.ts'

export interface References {
  /** Of each note and numbered entry, the links to pages in it. */
  targets: Map<string, Link[]>
  /** The entry that contains a link. */
  entries: Map<Link, string>
  /** The blocks that are entries of a list of references, or stand under its heading. */
  blocks: Set<Block>
  /** Calls of numbered entries in the text, by block. */
  calls: Map<Block, Link[]>
}

export function findReferences(blocks: readonly Block[]): References {
  const found = new Entries()
  found.read(blocks)
  const { targets, blocks: ofEntries } = found
  const entries = new Map([...targets].flatMap(([name, links]) => links.map((link) => [link, name] as const)))
  const calls = new Map<Block, Link[]>()
  for (const block of targets.size > 0 ? blocks : []) {
    const inBlock = ofEntries.has(block) ? [] : callsIn(block, targets)
    if (inBlock.length > 0) calls.set(block, inBlock)
  }
  for (const { note, links } of blocks) if (note !== null) addTo(targets, note, pages(links))
  return { targets, entries, blocks: ofEntries, calls }
}

function addTo<Key>(lists: Map<Key, Link[]>, key: Key, links: readonly Link[]): void {
  const list = lists.get(key) ?? []
  list.push(...links.slice(0, MAX_PAGES - list.length))
  lists.set(key, list)
}

/** The first pages of a list: an entry names a few, and each call of it cites them all. */
const pages = (links: readonly Link[]) => links.filter(({ url }) => url !== null).slice(0, MAX_PAGES)
const MAX_PAGES = 20

/** The numbered entries of a report. */
class Entries {
  readonly targets = new Map<string, Link[]>()
  readonly blocks = new Set<Block>()

  read(blocks: readonly Block[]): void {
    let isUnderTitle = false
    let number: number | null = null
    const lists = new Map<number, Block[]>()
    for (const block of blocks.filter(({ note }) => note === null)) {
      if (isHeading(block)) {
        isUnderTitle = TITLE.test(block.text)
        number = null
      } else {
        const hasLines = this.#readLines(block)
        number = block.item?.number ?? number
        if (isUnderTitle) this.blocks.add(block)
        if (isUnderTitle && number !== null && !hasLines) addTo(this.targets, `reference ${number}`, pages(block.links))
        if (!isUnderTitle && block.item)
          (lists.get(block.item.list) ?? lists.set(block.item.list, []).get(block.item.list))?.push(block)
      }
    }
    if (this.targets.size === 0)
      for (const block of lastList(lists)) this.#add(block, block.item?.number ?? 0, block.links)
  }

  /** Lines of the block that begin with `[1]` and have a link. */
  #readLines(block: Block): boolean {
    const lines = linesOf(block)
    for (const { number, span } of lines) {
      const first = lastAt(block.links, span.start - 1, ({ start }) => start) + 1
      const last = lastAt(block.links, span.end - 1, ({ start }) => start)
      const links = pages(block.links.slice(first, last + 1))
      if (links.length > 0) this.#add(block, number, links)
    }
    return lines.length > 0
  }

  #add(block: Block, number: number, links: readonly Link[]): void {
    this.blocks.add(block)
    if (!this.targets.has(`reference ${number}`)) this.targets.set(`reference ${number}`, pages(links))
  }
}

/** A heading, or a paragraph that is nothing but the title of a list of references. */
function isHeading({ role, text }: Block): boolean {
  return role === 'heading' || (text.length < 60 && TITLE.test(text))
}

/** The last ordered list each of whose items has a link. It counts only where the text calls numbers. */
function lastList(lists: Map<number, Block[]>): Block[] {
  return [...lists.values()].filter((items) => items.every(({ links }) => pages(links).length > 0)).at(-1) ?? []
}

/** The lines of a block that begin with `[1]`, each up to the next one. */
function linesOf({ text, role }: Block): { number: number; span: Span }[] {
  if (role !== 'text' || !/^\s*\[\d/.test(text)) return []
  const begins = [...text.matchAll(/(?:^|\n)[^\S\n]*\[(\d{1,3})\]:?(?=\s)/g)]
  return begins.map(({ index, 1: number }, n) => ({
    number: Number(number),
    span: { start: index, end: begins[n + 1]?.index ?? text.length },
  }))
}

/** `[1]`, `[1, 2]`, `[1-3]` outside links, as calls of entries that exist. */
function callsIn(block: Block, entries: Map<string, Link[]>): Link[] {
  if (block.note !== null) return []
  const calls: Link[] = []
  for (const { 0: call, index, 1: list = '' } of block.text.matchAll(/\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3}){0,20})\]/g)) {
    const span = { start: index, end: index + call.length }
    const link = block.links[lastAt(block.links, span.end - 1, ({ start }) => start)]
    if (link && link.end > span.start) continue
    for (const note of numbersOf(list).map((number) => `reference ${number}`))
      if (entries.has(note)) calls.push({ ...span, url: null, note, source: block.map.locate(span) })
  }
  return calls
}

function numbersOf(list: string): number[] {
  return list.split(/[,;]/).flatMap((part) => {
    const [first = 0, last = first] = part.split(/[–-]/).map(Number)
    return Array.from({ length: Math.max(1, Math.min(20, last - first + 1)) }, (_, n) => first + n)
  })
}

const TITLE =
  /^[\s\d.:#*]*(?:references?|sources?|bibliography|works cited|citations|literature|(?:end|foot)?notes?|further reading|links|quellen(?:verzeichnis)?|literatur(?:verzeichnis)?|einzelnachweise|références|referencias|fuentes|bibliogra\p{L}+|riferimenti|fonti|参考文献|出典)[\s.:*]*$/iu
