// Which selectors are valid. One invalid selector invalidates the whole rule in browsers, and the parser of selectors lets
// through much that browsers refuse. The names are those that Chromium 156 knows.
import type { Selector as Token } from 'css-what'

/** Whether the spelling of a list is valid in the places that the parser of selectors does not check. */
export function isWellFormed(list: string): boolean {
  return !malformed.test(list.replace(opaque, replaceOpaque))
}

/** Strings, comments and escapes: their characters mean nothing. */
const opaque =
  /"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'?|\/\*[\s\S]*?(?:\*\/|$)|\\(?:[0-9a-f]{1,6}\s?|[\s\S])/gi

function replaceOpaque(found: string) {
  if (found.startsWith('\\')) return 'x'
  return found.startsWith('/') ? '' : '""'
}

/**
 * A class, an id or an unquoted value that begins with a character that no name may begin with, and characters that are
 * never valid.
 */
const malformed = /[.#](?!--|-?[a-z_\u0080-\uffff])|=(?!\s*(?:"|--|-?[a-z_\u0080-\uffff]))|[!@;{}<]|-->|\|\|/i

/** Whether one selector of a list is valid. Only nested rules may begin with a combinator. */
export function isValid(tokens: readonly Token[], isNested: boolean): boolean {
  const [first] = tokens
  const last = tokens.at(-1)
  if (!first || !last || combinators.has(last.type) || (!isNested && combinators.has(first.type))) return false
  let before: Token | null = null
  let element: string | null = null
  for (const token of tokens) {
    if (!isKnown(token)) return false
    if (element !== null && !mayFollow(token, element)) return false
    // The name of an element comes first in its compound.
    if ((token.type === 'tag' || token.type === 'universal') && before && !combinators.has(before.type)) return false
    if (isPseudoElement(token)) element = nameOf(token)
    before = token
  }
  return true
}

const combinators: ReadonlySet<string> = new Set(['child', 'descendant', 'sibling', 'adjacent'])

function isKnown(token: Token): boolean {
  switch (token.type) {
    case 'tag':
    case 'universal':
      return token.namespace === null || ['', '*'].includes(token.namespace)
    case 'attribute':
      return token.action !== 'not' && (token.namespace === null || ['', '*'].includes(token.namespace))
    case 'pseudo-element':
      return token.data === null
        ? elements.has(token.name) || (token.name.startsWith('-webkit-') && token.name !== '-webkit-')
        : elementFunctions.has(token.name)
    case 'pseudo':
      return token.data === null ? classes.has(token.name) : isKnownFunction(token.name, token.data)
    default:
      return combinators.has(token.type)
  }
}

function isKnownFunction(name: string, data: string | Token[][]): boolean {
  // These accept invalid selectors in their lists.
  if (name === 'is' || name === 'where' || name === '-webkit-any') return true
  if (typeof data === 'string') return classFunctions.has(name) && (!name.startsWith('nth-') || nth.test(data.trim()))
  if (!['not', 'has', 'host', 'host-context'].includes(name)) return false
  return data.every((inner) => isValid(inner, name === 'has') && !inner.some(isPseudoElement))
}

const nth = /^(?:even|odd|[+-]?\d+|[+-]?\d*n(?:\s*[+-]\s*\d+)?)(?:\s+of\s.+)?$/is

const isPseudoElement = (token: Token): boolean =>
  token.type === 'pseudo-element' || (token.type === 'pseudo' && legacyElements.has(token.name))

const nameOf = (token: Token) => ('name' in token ? token.name : '')

/** Whether the token may follow a pseudo-element. */
function mayFollow(token: Token, element: string) {
  if (isPseudoElement(token)) return parents.has(element) || nameOf(token) === 'marker'
  if (token.type !== 'pseudo') return false
  if (token.data !== null) return true
  const isInteractive = element.startsWith('-webkit-') || interactive.has(element)
  return isInteractive && !structural.test(token.name)
}

const structural = /-child$|-of-type$|^(?:root|empty|scope|link|visited|any-link)$/

const names = (list: string): ReadonlySet<string> => new Set(list.trim().split(/\s+/))

const legacyElements = names('before after first-line first-letter')
const interactive = names('cue part file-selector-button details-content scroll-marker picker scroll-button')
const parents = names('slotted part details-content picker')

const classes = names(`
  any-link link visited hover active focus focus-within focus-visible target target-current target-before target-after
  scope root empty first-child last-child only-child first-of-type last-of-type only-of-type enabled disabled read-only
  read-write placeholder-shown default checked indeterminate valid invalid in-range out-of-range required optional
  user-valid user-invalid autofill defined fullscreen modal popover-open open picture-in-picture host current past future
  interest-source interest-target xr-overlay horizontal vertical decrement increment start end double-button
  single-button no-button corner-present window-inactive before after first-line first-letter active-view-transition
  -webkit-any-link -webkit-autofill -webkit-full-screen -webkit-drag
`)

const classFunctions = names(`
  nth-child nth-last-child nth-of-type nth-last-of-type dir lang host host-context state active-view-transition-type
`)

const elements = names(`
  before after first-line first-letter selection placeholder marker backdrop cue file-selector-button grammar-error
  spelling-error target-text view-transition details-content scroll-marker scroll-marker-group column search-text
  checkmark picker-icon permission-icon
`)

const elementFunctions = names(`
  cue slotted part highlight view-transition-group view-transition-image-pair view-transition-old view-transition-new
  scroll-button picker
`)
