// The reference of the API at /docs: every operation by room, with its parameters, schemas, possible errors and a recorded
// call. Everything comes from the OpenAPI document, the table of errors and the recorded examples.
import { setImmediate } from 'node:timers/promises'
import { renderToString } from 'preact-render-to-string'
import { type Html, html } from '../../client/page/html.ts'
import { Badge, Code, Facts, Table } from '../../client/page/parts.ts'
import { errorTable } from '../errors.ts'
import { errorCodes, type Operation } from '../operation.ts'
import type { Example, Examples } from './examples.ts'
import { renderPage, type Site } from './layout.ts'
import { type Schema, type Schemas, SchemaTable } from './schema-table.ts'

/** As much of an OpenAPI document as the page reads. */
export interface ApiDocument {
  info: { version: string }
  paths: Record<string, Record<string, unknown>>
  components: { schemas: Record<string, unknown> }
}

interface Described {
  parameters: readonly { name: string; in: string; required?: boolean; description?: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, Answer>
}

interface Answer {
  description: string
  headers?: Record<string, { description: string }>
  content?: Record<string, { schema: Schema }>
}

type DescribedDocument = ApiDocument & {
  paths: Record<string, Record<string, Described>>
  components: { schemas: Schemas }
}

export interface ReferenceParts {
  document: ApiDocument
  catalog: readonly Operation[]
  examples: Examples
}

/** The rooms, by the beginnings of the paths of their operations. The first match counts. */
const ROOMS = [
  ['Verification', /^\/(api\/agent\/v1|risk-flags|methodology)/],
  ['Accounts', /^\/v1\/(register|api-keys|usage|checkout|billing-portal)/],
  ['Leases', /^\/v1\/lease/],
  ['Receipts and chain', /^\/v1\/(receipt|chain|consistency|keys)/],
  ['Quote checks', /^\/v1\/quote-check/],
  ['Citation watches', /^\/v1\/citation-watch/],
  ['Watchdogs', /^\/v1\/(watchdog|heartbeat)/],
  ['Journal', /^\/v1\/journal/],
  ['Others', /^/],
] as const

/** The rooms that have operations, in the order of the page. */
export function roomsOf(catalog: readonly Operation[]): [name: string, operations: Operation[]][] {
  const roomOf = ({ path }: Operation) => ROOMS.find(([, begins]) => begins.test(path))?.[0]
  return ROOMS.map(([name]): [string, Operation[]] => [name, catalog.filter((one) => roomOf(one) === name)]).filter(
    ([, operations]) => operations.length > 0,
  )
}

/** Takes some tenths of a second; after each operation the process does other work. Cache the result. */
export async function referencePage(site: Site, parts: ReferenceParts): Promise<string> {
  const rooms = roomsOf(parts.catalog)
  const views = new Map<Operation, string>()
  for (const operation of parts.catalog) {
    const props = { ...parts, operation, site }
    views.set(operation, renderToString(html`<${OperationView} ...${props} />`))
    await setImmediate()
  }
  return renderPage(site, {
    title: 'API reference',
    path: '/docs',
    description: 'Every operation of the service with its parameters, schemas, errors and an example.',
    body: html`<p class="to-side"><a href="#side">All operations</a></p><div class="beside">
      <nav class="side" id="side" tabindex="0" aria-label="Operations">
        ${rooms.map(
          ([name, operations]) => html`<p class="group" id=${`group-${idOf(name)}`}>${name}</p>
            <ul aria-labelledby=${`group-${idOf(name)}`}>${operations.map((one) => html`<li key=${one.name}><a href=${`#${one.name}`}>${one.name.replaceAll('_', ' ')}</a></li>`)}</ul>`,
        )}
        <p class="group">All calls</p>
        <ul><li><a href="#errors">Errors</a></li></ul>
      </nav>
      <div class="reference">
        <h1>API reference</h1>
        <p class="lead">HTTP and JSON at <code>${site.baseUrl}</code>. The same as <a href="/openapi.json">OpenAPI 3.1</a>, as${' '}<a href="/guide/mcp">tools over MCP</a>, and as methods of <a href="/guide/client">the client</a>.</p>
        <p>The examples were recorded on a test service: its credentials are gone, and long values are cut where you see “…”.</p>
        ${rooms.map(
          ([name, operations]) => html`<section key=${name} aria-labelledby=${idOf(name)}>
            <h2 id=${idOf(name)}>${name}</h2>
            ${operations.map(
              (operation) => html`<article key=${operation.name} class="operation" aria-labelledby=${operation.name}
                dangerouslySetInnerHTML=${{ __html: views.get(operation) }}></article>`,
            )}
          </section>`,
        )}
        <${Errors} />
      </div>
    </div>`,
  })
}

const idOf = (name: string) => `room-${name.toLowerCase().replaceAll(' ', '-')}`

const AUTHORIZATION: Record<Operation['access'], Html> = {
  public: 'none',
  account: html`API key: <code>Authorization: Bearer ctk_…</code>`,
  recovery: html`recovery token: <code>Authorization: Bearer …</code>`,
  payment: html`a payment: <code>PAYMENT-SIGNATURE</code>; without one the answer is 402 with the terms`,
  proof: html`the signed payment: <code>PAYMENT-SIGNATURE</code>; it settles nothing`,
}

function OperationView({ operation, site, document, examples }: ReferenceParts & { operation: Operation; site: Site }) {
  const { name, method, path, summary, description, access } = operation
  // The cast is safe: http/openapi.ts writes every operation and schema in this form, which is narrower than what the types of zod
  // allow.
  const { paths, components } = document as DescribedDocument
  const described = paths[path]?.[method.toLowerCase()]
  const { [name]: example } = examples
  if (!described) return null
  const { schemas } = components
  const body = described.requestBody?.content
  return html`<h3 id=${name}><a class="anchor" href=${`#${name}`}>${summary}</a></h3>
    <p class="call"><${Badge}>${method}<//> <code>${path}</code></p>
    ${description && html`<p>${withCode(description)}</p>`}
    <${Facts} facts=${[
      ['Authorization', AUTHORIZATION[access]],
      ['Answers', statusList(described, (status) => status < '400')],
      operation.family === 'verification'
        ? ['Other answers', statusList(described, (status) => status >= '400')]
        : [
            'Errors',
            errorCodes(operation).map(
              (code) => html`<a key=${code} href=${`#error-${code}`}><code>${code}</code></a> `,
            ),
          ],
    ]} />
    ${described.parameters.length > 0 && html`<${Parameters} parameters=${described.parameters} />`}
    ${
      body &&
      Object.entries(body).map(([type, { schema }]) =>
        schema.properties
          ? html`<${SchemaTable} key=${type} caption="Request body" schema=${schema} schemas=${schemas} required />`
          : html`<p key=${type}>Request body: <code>${type}</code>${schema.maxLength && `, at most ${schema.maxLength} bytes`}.</p>`,
      )
    }
    ${Object.entries(described.responses)
      .filter(([status]) => status < '400')
      .map(
        ([status, answer]) =>
          html`<${AnswerView} key=${status} status=${status} answer=${answer} schemas=${schemas} />`,
      )}
    ${example && html`<${ExampleView} operation=${operation} example=${example} baseUrl=${site.baseUrl} />`}`
}

/** The statuses that `isShown` selects, each with its meaning. */
function statusList({ responses }: Described, isShown: (status: string) => boolean): Html {
  const shown = Object.entries(responses).filter(([status]) => isShown(status))
  if (shown.length === 0) return null
  return shown.map(
    ([status, { description }]) =>
      html`<span key=${status}><code>${status}</code> ${withCode(description)}<br /></span>`,
  )
}

/** Text whose words between backticks are code. */
function withCode(text: string): Html {
  return text.split('`').map((part, n) => (n % 2 === 1 ? html`<code key=${n}>${part}</code>` : part))
}

function Parameters({ parameters }: Pick<Described, 'parameters'>) {
  const schema: Schema = {
    properties: Object.fromEntries(
      parameters.map(({ name, in: place, description, schema }) => [
        name,
        { ...schema, description: [place, description ?? schema?.description].filter(Boolean).join('. ') },
      ]),
    ),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  }
  return html`<${SchemaTable} caption="Parameters" schema=${schema} schemas=${{}} required />`
}

function AnswerView({ status, answer, schemas }: { status: string; answer: Answer; schemas: Schemas }) {
  const { headers = {}, content = {} } = answer
  const bodies = Object.entries(content).filter(([, { schema }]) => schema.properties ?? schema.$ref ?? schema.anyOf)
  if (bodies.length === 0 && Object.keys(headers).length === 0) return null
  return html`<details><summary>Answer ${status}</summary>
    ${
      Object.keys(headers).length > 0 &&
      html`<${Table} caption=${`Headers of ${status}`} columns=${[{ name: 'header' }, { name: 'meaning' }]}
      rows=${Object.entries(headers).map(([name, { description }]) => [html`<code>${name}</code>`, description])} />`
    }
    ${bodies.map(([type, { schema }]) => html`<${SchemaTable} key=${type} caption=${`Body of ${status}`} schema=${schema} schemas=${schemas} />`)}
  </details>`
}

function ExampleView({ operation, example, baseUrl }: { operation: Operation; example: Example; baseUrl: string }) {
  const here = (text: string) => text.replaceAll('{base_url}', baseUrl)
  const { status, answerHeaders, body } = example
  const headers = Object.entries(answerHeaders).map(([name, value]) => `${name}: ${cut(value)}`)
  const shown = typeof body === 'string' ? body : body === null ? '' : JSON.stringify(shorten(body), null, 2)
  return html`<details><summary>Example</summary>
    <${Code} label="Call" text=${here(callOf(operation, example))} />
    <${Code} label="Answer" text=${here([`HTTP ${status}`, ...headers, ...(shown ? ['', shown] : [])].join('\n'))} />
  </details>`
}

function callOf({ method }: Operation, { path, headers, request }: Example): string {
  const lines = [`curl -X ${method} '{base_url}${path}'`]
  // Double quotes, so that the shell puts in the credential.
  for (const [name, value] of Object.entries(headers)) lines.push(`-H "${name}: ${value}"`)
  if (typeof request === 'string') lines.push(`--data-binary '${request}'`)
  else if (request !== undefined) lines.push(`-d '${JSON.stringify(request, null, 2).replaceAll("'", "'\\''")}'`)
  return lines.join(' \\\n  ')
}

const MAX_TEXT = 140
const MAX_ITEMS = 3
/** Members that hold a schema: the tables beside the example say the same. */
const SCHEMAS = new Set(['input_schema', 'output_schema'])

const cut = (text: string) => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text)

/** The value with long texts and lists cut. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string') return cut(value)
  if (Array.isArray(value)) {
    const rest = value.length - MAX_ITEMS
    return [...value.slice(0, MAX_ITEMS).map(shorten), ...(rest > 0 ? [`… ${rest} more`] : [])]
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, SCHEMAS.has(name) ? '…' : shorten(member)]),
  )
}

function Errors() {
  const rows = Object.entries(errorTable).map(([code, { status, retryable, about }]) => [
    html`<code id=${`error-${code}`}>${code}</code>`,
    String(status),
    retryable ? 'yes' : 'no',
    about,
  ])
  return html`<section aria-labelledby="errors">
    <h2 id="errors">Errors</h2>
    <p>A failure is <code>{"error": {"code", "message", "retryable"}}</code>; on the verification routes it has
      <code>schema_version</code> and <code>status</code> as well. Branch on the code: messages may change. A retryable call may succeed
      later as it is, with the same <code>Idempotency-Key</code>; every 429 has <code>Retry-After</code>.</p>
    <${Table} caption="Error codes" unseen columns=${[{ name: 'code' }, { name: 'status' }, { name: 'retryable' }, { name: 'meaning' }]} rows=${rows} />
  </section>`
}
