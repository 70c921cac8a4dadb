// What browsers show of each element when no style says otherwise, from the rendering section of the HTML standard.
import type { Element } from 'domhandler'
import type { Display } from '../style/css-declarations.ts'

/**
 * Never part of the text, even where a style shows them: they hold no text, are replaced by other content, are shown
 * only where something is not supported or scripts are off, or an annotation of something that is shown.
 */
const dropped = words(`
  script style noscript template head title meta link base param source track area
  iframe embed audio video canvas frameset frame noframes noembed meter progress
  textarea datalist rp annotation annotation-xml
  defs desc metadata symbol clipPath mask pattern marker filter linearGradient radialGradient
`)

const displays = new Map<string, Display>([
  ...words(`
    address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol optgroup option p plaintext pre search
    section summary ul xmp caption
  `).map((name) => [name, 'block'] as const),
  ...words('button img input marquee select svg').map((name) => [name, 'box'] as const),
  ...words('tbody thead tfoot').map((name) => [name, 'group'] as const),
  ...words('td th mtd').map((name) => [name, 'cell'] as const),
  ...words('tr mtr').map((name) => [name, 'row'] as const),
  ...words('table mtable').map((name) => [name, 'table'] as const),
  ['br', 'break'],
  ...dropped.map((name) => [name, 'none'] as const),
])

/**
 * Whether an object shows what it refers to. Otherwise it shows its content: without a reference, and where the
 * reference is to nothing that browsers display, such as Flash.
 */
export function isReplaced({ name, attribs }: Element): boolean {
  if (name !== 'object' || !attribs.data) return false
  if (attribs.type) return displayedTypes.test(attribs.type)
  return displayedFiles.test(attribs.data) || displayedTypes.test(attribs.data.replace(/^data:/i, ''))
}

const displayedTypes = /^\s*(?:image|text|audio|video|application\/(?:pdf|xml|xhtml))\b/i
const displayedFiles =
  /\.(?:png|jpe?g|gif|svg|webp|avif|bmp|ico|pdf|html?|xhtml|txt|mp[34]|webm|og[agv]|wav)(?:[?#]|$)/i

export const isDropped = (name: string) => droppedSet.has(name)
const droppedSet = new Set(dropped)

export const displayOf = (name: string): Display => displays.get(name) ?? 'inline'

export const isPreformatted = (name: string) => preformatted.has(name)
const preformatted = new Set(words('pre listing xmp plaintext'))

function words(list: string) {
  return list.trim().split(/\s+/)
}
