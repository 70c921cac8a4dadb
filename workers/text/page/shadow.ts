// Declarative shadow trees: of an element with one, browsers show the tree, and of its own children those alone that have a slot there.
import { type ChildNode, type Document, Element } from 'domhandler'
import { isHtml } from './foreign.ts'

/** What is shown in another tree than its parent's children, by the root whose style sheets count for it. */
export type Moved = ReadonlyMap<ChildNode, Document>

/**
 * Puts each tree in the place of its host's children, and those into its slots. Parents stay as they are, because selectors look at
 * them; the order of `next` becomes that of what is shown. Linear in the number of nodes.
 * @param templates in the order of the markup @param contentOf what is inside of a template
 */
export function showShadows(
  templates: readonly Element[],
  contentOf: (template: Element) => Document | undefined,
): Moved {
  const moved = new Map<ChildNode, Document>()
  const done = new Set<Element>()
  for (const template of templates) {
    const host = template.parent
    const content = contentOf(template)
    if (!content || !(host instanceof Element) || !mayHost(host) || done.has(host)) continue
    done.add(host)
    const root = rootOf(host)
    const groups = new Map<string, ChildNode[]>()
    for (const child of host.children) {
      if (child === template) continue
      if (root) moved.set(child, root)
      const name = 'attribs' in child ? (child.attribs.slot ?? '') : ''
      if (!groups.get(name)?.push(child)) groups.set(name, [child])
    }
    fillSlots(content, groups)
    const rest = new Element('div', { style: 'display:none!important' }, link([...groups.values()].flat()))
    for (const child of content.children) moved.set(child, content)
    host.children = link([...content.children, rest])
  }
  return moved
}

/** The first slot of each name takes the children for it. What is inside of a slot that takes none is shown. */
function fillSlots(content: Document, groups: Map<string, ChildNode[]>) {
  const open: ChildNode[] = content.children.toReversed()
  for (let node = open.pop(); node; node = open.pop()) {
    if (!(node instanceof Element)) continue
    const name = node.attribs.name ?? ''
    const taken = node.name === 'slot' && isHtml(node) ? groups.get(name) : undefined
    if (taken) {
      groups.delete(name)
      node.children = link(taken)
    } else open.push(...node.children.toReversed())
  }
}

function link(nodes: ChildNode[]): ChildNode[] {
  for (const [i, node] of nodes.entries()) node.next = nodes[i + 1] ?? null
  return nodes
}

/** The root of the tree that an element is in. */
export function rootOf(element: Element): Document | null {
  let place: Element | Document | null = element
  while (place instanceof Element) place = place.parent as Element | Document | null
  return place
}

/** Whether a template is the root of a shadow tree, if its parent may have one. */
export const isShadowRoot = ({ name, attribs }: Element): boolean =>
  name === 'template' && /^(?:open|closed)$/i.test(attribs.shadowrootmode ?? '')

const mayHost = (element: Element) => isHtml(element) && (hosts.has(element.name) || customName.test(element.name))

const hosts: ReadonlySet<string> = new Set(
  'article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main nav p section span'.split(' '),
)
const customName = /^[a-z].*-/
