// A JSON Schema as a list that people read: its members, each with its type, its bounds and its meaning.
import { codeWords } from '../../../client/page/code-words.ts'
import { type Html, html } from '../../../client/page/html.ts'

/** The keywords that the service's own schemas use. */
export interface Schema {
  $ref?: string
  type?: string | readonly string[]
  const?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly Schema[]
  allOf?: readonly Schema[]
  properties?: Record<string, Schema>
  required?: readonly string[]
  items?: Schema
  prefixItems?: readonly Schema[]
  additionalProperties?: boolean | Schema
  pattern?: string
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  default?: unknown
  description?: string
  $defs?: Record<string, Schema>
}

/** The schemas of the document's components, by name. */
export type Schemas = Readonly<Record<string, Schema>>

export interface SchemaListProps {
  caption: string
  schema: Schema
  schemas: Schemas
  /** Shows for each member whether it is required, for schemas of input. */
  required?: boolean
  /** What a member means whose schema does not say it, by its path. */
  meaning?: (path: string) => string | undefined
}

/** Members deeper than this are named in the row of the object that holds them. */
const DEEPEST = 3

/** Text whose words between backticks are code. */
export function withCode(text: string): Html {
  return text.split('`').map((part, n) => (n % 2 === 1 ? html`<${InlineCode} key=${n} text=${part} />` : part))
}

/** Code among words, which breaks between its words alone unless one is too long. */
export function InlineCode({ text }: { text: string }): Html {
  const { isLong, words } = codeWords(text)
  return html`<code class=${isLong ? 'long' : undefined}>${words.map((one, n) => (one.isWhole ? html`<span key=${n}>${one.text}</span>` : one.text))}</code>`
}

/** One list, or one for each form that an object may have. */
export function SchemaList({ caption, schema, schemas, required = false, meaning }: SchemaListProps): Html {
  const known = { ...schemas, ...schema.$defs }
  const forms = (schema.anyOf ?? []).map((one) => resolve(one, known)).filter((one) => one.properties)
  if (forms.length > 1)
    return forms.map(
      (form, n) =>
        html`<${SchemaList} key=${n} caption=${`${caption}, form ${n + 1} of ${forms.length}`} schema=${form} schemas=${known} required=${required} meaning=${meaning} />`,
    )
  const rows = rowsOf(schema, { schemas: { ...schemas, ...schema.$defs }, above: '', depth: 0, meaning })
  return html`<h2>${caption}</h2>${
    rows.length === 0
      ? html`<p class="empty">Any JSON.</p>`
      : html`<dl class="members">${rows.map(
          ({ name, isRequired, type, about }) => html`<div key=${name}>
            <dt><${InlineCode} text=${name} /> <span class="detail">${type}${required && !isRequired && ', optional'}</span></dt>
            <dd>${withCode(about)}</dd>
          </div>`,
        )}</dl>`
  }`
}

interface Row {
  name: string
  isRequired: boolean
  type: string
  about: string
}

interface Place {
  schemas: Schemas
  /** The path of the object, with its dot. */
  above: string
  depth: number
  meaning: SchemaListProps['meaning']
}

function rowsOf(given: Schema, place: Place): Row[] {
  const { properties = {}, required = [] } = resolve(given, place.schemas)
  return Object.entries(properties).flatMap(([name, member]) => {
    const schema = resolve(member, place.schemas)
    const path = `${place.above}${name}`
    const row = {
      name: path,
      isRequired: required.includes(name),
      type: typeOf(schema, place.schemas),
      about: [member.description ?? schema.description ?? place.meaning?.(path), ...rulesOf(schema)]
        .filter(Boolean)
        .join(' '),
    }
    return [row, ...membersOf(schema, path, place)]
  })
}

/** Rows of the members of an object, or of the objects in a list. */
function membersOf(schema: Schema, path: string, { schemas, depth, meaning }: Place): Row[] {
  if (depth + 1 >= DEEPEST) return []
  const inner = objectIn(schema, schemas)
  if (!inner) return []
  const [object, isList] = inner
  return rowsOf(object, { schemas, above: `${path}${isList ? '[]' : ''}.`, depth: depth + 1, meaning })
}

function objectIn(schema: Schema, schemas: Schemas): [object: Schema, isList: boolean] | null {
  if (schema.properties) return [schema, false]
  if (schema.items) {
    const item = resolve(schema.items, schemas)
    return item.properties ? [item, true] : null
  }
  const choice = schema.anyOf?.map((one) => resolve(one, schemas)).find((one) => one.properties)
  return choice ? [choice, false] : null
}

function resolve(schema: Schema, schemas: Schemas): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return (name !== undefined && schemas[name]) || schema
}

/** `string`, `integer or null`, `list of objects`, the values of an enumeration. */
function typeOf(schema: Schema, schemas: Schemas): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' or ')
  if (schema.anyOf) return [...new Set(schema.anyOf.map((one) => typeOf(resolve(one, schemas), schemas)))].join(' or ')
  if (schema.items) return `list of ${plural(typeOf(resolve(schema.items, schemas), schemas))}`
  if (schema.prefixItems) return `list of ${schema.prefixItems.map((one) => typeOf(one, schemas)).join(', ')}`
  if (schema.type === undefined) return schema.properties ? 'object' : 'any'
  return [schema.type].flat().join(' or ')
}

/** A list has many of a type that is one word; of any other, it is named as it is. */
const plural = (type: string) => (/^(string|object|integer|number|boolean)$/.test(type) ? `${type}s` : type)

/** The bounds, each as a sentence. The largest whole number that JSON carries is no bound. */
function rulesOf(schema: Schema): string[] {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems, pattern, format, default: usual } = schema
  const isBound = (bound: number | undefined) => bound !== undefined && Math.abs(bound) < Number.MAX_SAFE_INTEGER
  const [least, most] = [isBound(minimum) ? minimum : undefined, isBound(maximum) ? maximum : undefined]
  return [
    span(minLength, maxLength, 'characters'),
    span(least, most, ''),
    span(minItems, maxItems, 'items'),
    format && format !== 'date-time' && !pattern ? `Format ${format}.` : '',
    // A pattern for times is longer than this description of it.
    format === 'date-time' ? 'RFC 3339, UTC.' : pattern && pattern.length <= 60 ? patternRule(pattern) : '',
    usual === undefined ? '' : `Default ${JSON.stringify(usual)}.`,
  ].filter((rule) => rule !== '')
}

const patternRule = (pattern: string) => (pattern === '\\S' ? 'Not blank.' : `Matches the pattern \`${pattern}\`.`)

function span(least: number | undefined, most: number | undefined, unit: string): string {
  const of = unit === '' ? '' : ` ${unit}`
  if (least !== undefined && most !== undefined) return least === most ? `${least}${of}.` : `${least} to ${most}${of}.`
  if (most !== undefined) return `At most ${most}${of}.`
  return least === undefined ? '' : `At least ${least}${of}.`
}
