// Parses HTML within limits that keep a hostile page from exhausting the thread.
import { type ChildNode, type Document, Element, type ParentNode } from 'domhandler'
import type { Token } from 'parse5'
import { adapter } from 'parse5-htmlparser2-tree-adapter'
import { chunkLength, flat } from '../growing-text.ts'
import { isDropped } from './elements.ts'
import { TextRefusalError } from './refusal.ts'
import { isShadowRoot, type Moved, rootOf, showShadows } from './shadow.ts'
import { parseFast } from './tokenizer.ts'

/** Elements nested in each other. Browsers flatten what is nested deeper; real pages stay below 50. */
export const maxDepth = 512

/** Elements, texts and comments. The largest of a thousand real pages has 28,000. */
export const maxNodes = 300_000

/** Most attributes of one element. */
export const maxAttributes = 1000

/** Attributes of all elements. Those of a formatting element are counted again for its copies, unless they are many. */
export const maxAttributesOfPage = 1_000_000

/** The sum of the depths at which elements begin: the parser searches all open elements again and again. */
export const maxNesting = 30_000_000

/**
 * The document tree as browsers build it, in the shape that cheerio works on. Limits hold while parsing, so that a page
 * made to exhaust memory is refused before it does.
 */
export function parseMarkup(html: string): Document {
  return parsePage(html).document
}

/** The document as it is shown, and how it is styled. */
export interface Page {
  document: Document
  /** The style elements of the document and of each shadow tree, by its root, in their order. */
  styles: ReadonlyMap<ParentNode | null, Element[]>
  moved: Moved
}

export function parsePage(html: string): Page {
  refuseEndlessName(html)
  const made: Element[] = []
  const templates = new Map<Element, Document>()
  const treeAdapter = limitedAdapter(made, templates)
  const document = parseFast(withLineFeeds(html), { treeAdapter, scriptingEnabled: true }, limitAttributes)
  const styles = new Map<ParentNode | null, Element[]>()
  for (const style of made) {
    const root = rootOf(style)
    if (!styles.get(root)?.push(style)) styles.set(root, [style])
  }
  const roots = [...templates.keys()].filter(isShadowRoot)
  return { document, styles, moved: showShadows(roots, (template) => templates.get(template)) }
}

/**
 * The parser would do this too, but it records every place, and takes several times the memory for it. A replacement takes
 * several times the memory of its text too, until the text is flat.
 */
function withLineFeeds(html: string) {
  if (!html.includes('\r')) return html
  const pieces: string[] = []
  for (let start = 0; start < html.length; ) {
    const end = start + linesPiece
    // No piece ends between the two characters of a line's end.
    const next = html.startsWith('\r\n', end - 1) ? end + 1 : end
    pieces.push(flat(html.slice(start, next).replace(/\r\n?/g, '\n')))
    start = next
  }
  return pieces.join('')
}

const linesPiece = 65_536

/**
 * The parser builds names of tags and attributes character by character, and each character is an object until the name
 * ends. Only these blanks of HTML end it.
 */
function refuseEndlessName(html: string) {
  for (let start = 0; start + longestName <= html.length; start += longestName) {
    if (html.slice(start, start + longestName).search(/[\t\n\f\r />=]/) < 0)
      throw tooComplex('a megabyte without a blank or the end of a tag')
  }
}

/** Finds every run that is at least twice as long. */
const longestName = 1_048_576

/** Counted as they come: a tag may be as long as the page. */
function limitAttributes(count: number) {
  if (count > maxAttributes) throw tooComplex('an element with more than 1,000 attributes')
}

function limitedAdapter(styles: Element[], templates: Map<Element, Document>): typeof adapter {
  let nodes = 0
  let depth = 0
  let nesting = 0
  let attributesOfPage = 0
  const copied = new WeakMap<readonly Token.Attribute[], Attributes>()
  const countNode = () => {
    if (++nodes > maxNodes) throw tooComplex(`more than ${maxNodes.toLocaleString('en')} nodes`)
  }
  const countAttributes = (count: number) => {
    limitAttributes(count)
    attributesOfPage += count
    if (attributesOfPage > maxAttributesOfPage)
      throw tooComplex(`more than ${maxAttributesOfPage.toLocaleString('en')} attributes`)
  }
  const createTextNode = (value: string) => {
    countNode()
    return adapter.createTextNode(value)
  }

  return {
    ...adapter,
    createElement(name, namespace, attributes) {
      countNode()
      const isLong = attributes.length > manyAttributes
      let attribs = isLong ? copied.get(attributes) : undefined
      if (!attribs) {
        countAttributes(attributes.length)
        attribs = readAttributes(attributes)
        if (isLong) copied.set(attributes, attribs)
      }
      const element = new Element(name, attribs, [])
      element.namespace = namespace
      if (name === 'style') styles.push(element)
      return element
    },
    adoptAttributes(element, attributes) {
      countAttributes(attributes.length)
      if (element.attribs === noAttributes) element.attribs = new Attributes()
      for (const { name, value } of attributes) element.attribs[name] ??= value
    },
    createTextNode,
    createCommentNode(data) {
      countNode()
      return adapter.createCommentNode(data)
    },
    onItemPush() {
      if (++depth > maxDepth) throw tooComplex(`elements nested deeper than ${maxDepth}`)
      nesting += depth
      if (nesting > maxNesting) throw tooComplex('too many elements that are nested too deep')
    },
    onItemPop() {
      depth--
    },
    // The content of a template is no part of the document.
    setTemplateContent(template, content) {
      templates.set(template, content)
    },
    // The parser asks for the content of a template only after it has set it.
    getTemplateContent(template) {
      return templates.get(template)!
    },
    insertBefore,
    detachNode,
    insertText(parent, text) {
      if (!isRead(parent)) return
      if (!extend(parent.children.at(-1), text)) adapter.appendChild(parent, createTextNode(text))
    },
    insertTextBefore(parent, text, reference) {
      if (!extend(reference.prev, text)) insertBefore(parent, createTextNode(text), reference)
    },
  }
}

/** The adapter's own version makes three tables of names for each element, which take most of the memory. */
function readAttributes(attributes: Token.Attribute[]): Attributes {
  if (attributes.length === 0) return noAttributes
  const attribs = new Attributes()
  for (const { name, value } of attributes) attribs[name] = value
  return attribs
}

/** So many attributes are made once for all copies of an element. */
const manyAttributes = 16

/** Inherits nothing, so that no name of an attribute means anything. A class of its own keeps such objects small. */
class Attributes {
  [name: string]: string
}
Object.setPrototypeOf(Attributes.prototype, null)

const noAttributes = Object.freeze(new Attributes())

/** Most of the bytes of many pages are scripts, which no later step reads. */
const isRead = (parent: ParentNode) => !('name' in parent) || parent.name === 'style' || !isDropped(parent.name)

/**
 * Puts text at the end of a text node, if that is one and is not full. The parser delivers text word by word; joined,
 * words stay a chain of as many objects until they are made flat, and a long text would take twenty times its size.
 */
function extend(node: ChildNode | null | undefined, text: string): boolean {
  if (node?.type !== 'text') return false
  if (node.data.length >= chunkLength) {
    flat(node.data)
    return false
  }
  node.data += text
  return true
}

const tooComplex = (what: string) => new TextRefusalError('source_too_complex', `The markup has ${what}.`)

// Text misplaced in tables goes before the table, over and over, and formatting moves from one parent to the next: both
// at the end of what may be a long list of children. The adapter's own versions search such lists from the front.

function insertBefore(parent: ParentNode, node: ChildNode, reference: ChildNode) {
  const { prev } = reference
  parent.children.splice(parent.children.lastIndexOf(reference), 0, node)
  reference.prev = node
  node.next = reference
  node.prev = prev
  if (prev) prev.next = node
  node.parent = parent
}

function detachNode(node: ChildNode) {
  const { parent, prev, next } = node
  if (!parent) return
  parent.children.splice(parent.children.lastIndexOf(node), 1)
  if (prev) prev.next = next
  if (next) next.prev = prev
  node.parent = null
  node.prev = null
  node.next = null
}
