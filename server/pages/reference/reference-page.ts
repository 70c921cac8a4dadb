// The reference of the API: a list of all operations at /docs, a page for each with its parameters, schemas, possible errors and a
// recorded call, and a page of all errors. Everything comes from the OpenAPI document, the table of errors and the recorded examples.
import { type Html, html } from '../../../client/page/html.ts'
import { Badge, Code, Facts, inFigures, Table } from '../../../client/page/parts.ts'
import { ERROR_CODES, errorTable, retryRule } from '../../errors.ts'
import { errorCodes, type Operation } from '../../operation.ts'
import type { Example, Examples } from '../examples/examples.ts'
import { renderPage, SideGroup, type Site } from '../layout.ts'
import { bodyIn, callsIn, headersIn, pathOf } from './call-code.ts'
import { meaningOf } from './member-meanings.ts'
import { PurchaseWords, Which } from './purchase-words.ts'
import { InlineCode, type Schema, SchemaList, type SchemaListProps, type Schemas, withCode } from './schema-list.ts'

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
  /** In offline mode, where no money moves, a call can be sent from its page. */
  canTry: boolean
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

/** Below /docs, the name of the page of all errors. No operation has this name. */
export const ERRORS = 'errors'

/** The list of all operations, by rooms. */
export function referenceIndex(site: Site, catalog: readonly Operation[]): string {
  return renderPage(site, {
    title: 'API reference',
    path: '/docs',
    description:
      'Every operation of the service, each with its parameters, schemas, errors and a call in three languages.',
    scripts: ['search'],
    body: html`<div class="reference"><h1>API reference</h1>
      <p class="lead">HTTP and JSON at <code>${site.baseUrl}</code>. The same as <a href="/openapi.json">OpenAPI 3.1</a>, as${' '}<a href="/guide/mcp">tools over MCP</a>, and as methods of <a href="/guide/sdk">the client</a>.</p>
      <div id="search" data-index="/docs/search.json"></div>
      <p><a href="/docs/${ERRORS}">All errors</a>, with what each means and whether the same call may succeed later.</p>
      ${roomsOf(catalog).map(
        ([name, operations]) => html`<section key=${name} aria-labelledby=${idOf(name)}>
          <h2 id=${idOf(name)}>${name}</h2>
          <dl class="contents operations">${operations.map(
            (
              one,
            ) => html`<div key=${one.name} id=${one.name}><dt><a href=${`/docs/${one.name}`}>${one.name.replaceAll('_', ' ')}</a></dt>
              <dd>${withCode(one.summary)}<br /><span class="detail"><${InlineCode} text=${`${one.method} ${one.path}`} /></span></dd></div>`,
          )}</dl>
        </section>`,
      )}</div>`,
  })
}

/** The page of one operation. Undefined for a name that no operation has. */
export function operationPage(site: Site, parts: ReferenceParts, name: string): string | undefined {
  const operation = parts.catalog.find((one) => one.name === name)
  if (!operation) return undefined
  return renderPage(site, {
    title: operation.summary,
    path: `/docs/${name}`,
    description: `${operation.method} ${operation.path}: ${operation.summary}.`,
    scripts: parts.canTry ? ['try-call'] : [],
    body: html`<${Beside} catalog=${parts.catalog} current=${name}>
      <article class="operation" aria-labelledby=${name}><${OperationView} ...${parts} operation=${operation} site=${site} /></article>
    <//>`,
  })
}

export function errorsPage(site: Site, catalog: readonly Operation[]): string {
  return renderPage(site, {
    title: 'Errors',
    path: `/docs/${ERRORS}`,
    description:
      'Every error code of the API, with its status, its meaning and whether the same call may succeed later.',
    body: html`<${Beside} catalog=${catalog} current=${ERRORS}><div class="reference"><${Errors} /></div><//>`,
  })
}

/** A page with the way to all others at its side. */
function Beside({ catalog, current, children }: { catalog: readonly Operation[]; current: string; children?: Html }) {
  const link = (name: string, words: string) =>
    html`<a href=${`/docs/${name}`} aria-current=${name === current ? 'page' : undefined}>${words}</a>`
  return html`<p class="to-side"><a href="#side">All operations</a></p><div class="beside">
    <nav class="side" id="side" tabindex="0" aria-label="Operations">
      <p><a href="/docs">All operations</a><br />${link(ERRORS, 'All errors')}</p>
      ${roomsOf(catalog).map(
        ([
          name,
          operations,
        ]) => html`<${SideGroup} key=${name} name=${name} isOpen=${operations.some((one) => one.name === current)}>
          ${operations.map((one) => html`<li key=${one.name}>${link(one.name, one.name.replaceAll('_', ' '))}</li>`)}<//>`,
      )}
    </nav>
    ${children}
  </div>`
}

const idOf = (name: string) => `room-${name.toLowerCase().replaceAll(' ', '-')}`

const AUTHORIZATION: Record<Operation['access'], Html> = {
  public: 'none',
  terms: 'none; the answer is always 402',
  account: html`API key: <code>Authorization: Bearer ctk_…</code>`,
  recovery: html`recovery token: <code>Authorization: Bearer …</code>`,
  payment: html`a payment: <code>PAYMENT-SIGNATURE</code>; without one the answer is 402 with the terms`,
  proof: html`the signed payment: <code>PAYMENT-SIGNATURE</code>; it settles nothing`,
}

function OperationView({
  operation,
  site,
  document,
  examples,
  canTry,
}: ReferenceParts & { operation: Operation; site: Site }) {
  const { name, method, path, summary, description, access } = operation
  // The cast is safe: http/openapi.ts writes every operation and schema in this form, which is narrower than what the types of zod
  // allow.
  const { paths, components } = document as DescribedDocument
  const described = paths[path]?.[method.toLowerCase()]
  const { [name]: example } = examples
  if (!described) return null
  const { schemas } = components
  const body = described.requestBody?.content
  const meaning = (member: string) => meaningOf(name, member)
  const parameters = [...described.parameters, ...paymentHeader(access)]
  const isUsual = (status: string) => status < '400' || (access === 'terms' && status === '402')
  return html`<div class="told"><h1 id=${name}>${summary}</h1>
    <p class="named"><code>${name}</code></p>
    <p class="call"><${Badge}>${method}<//> <code>${path}</code></p>
    <${Which} name=${name} />
    ${description && html`<p>${withCode(description)}</p>`}
    <${Facts} facts=${[
      ['Authorization', AUTHORIZATION[access]],
      ['Answers', statusList(described, isUsual)],
      operation.family === 'verification'
        ? ['Other answers', statusList(described, (status) => !isUsual(status))]
        : [
            'Errors',
            errorCodes(operation).map(
              (code) => html`<a key=${code} href=${`/docs/${ERRORS}#error-${code}`}><code>${code}</code></a> `,
            ),
          ],
    ]} />
    <${PurchaseWords} access=${access} />
    ${parameters.length > 0 && html`<${Parameters} parameters=${parameters} meaning=${meaning} />`}
    ${
      body &&
      Object.entries(body).map(([type, { schema }]) =>
        (schema.properties ?? schema.anyOf)
          ? html`<${SchemaList} key=${type} caption="Request body" schema=${schema} schemas=${schemas} required meaning=${meaning} />`
          : html`<h2>Request body</h2><p><code>${type}</code>${schema.maxLength && `, at most ${inFigures(schema.maxLength)} bytes`}.</p>`,
      )
    }
    ${Object.entries(described.responses)
      .filter(([status]) => isUsual(status))
      .map(
        ([status, answer]) =>
          html`<${AnswerView} key=${status} status=${status} answer=${answer} schemas=${schemas} />`,
      )}
    </div>
    ${
      example &&
      html`<div class="shown"><${ExampleView} operation=${operation} example=${example} baseUrl=${site.baseUrl} />
        ${canTry && html`<${TryIt} operation=${operation} example=${example} />`}</div>`
    }`
}

/** What `try-call.ts` makes a form of. */
function TryIt({ operation, example }: { operation: Operation; example: Example }) {
  const call = {
    method: operation.method,
    path: pathOf(example),
    headers: example.headers,
    request: example.request ?? null,
  }
  return html`<div id="try-call" data-call=${JSON.stringify(call)}></div>`
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

/** OpenAPI has the header as a security scheme, and no parameter beside it. */
function paymentHeader(access: Operation['access']): Described['parameters'] {
  if (access !== 'payment' && access !== 'proof') return []
  const description =
    access === 'proof'
      ? 'The signed payment in Base64, exactly as it was sent with the purchase.'
      : 'The signed payment in Base64, as an x402 client makes it from the terms. Without it the answer is 402.'
  return [
    { name: 'PAYMENT-SIGNATURE', in: 'header', required: access === 'proof', description, schema: { type: 'string' } },
  ]
}

/** Where a parameter belongs, by its name in OpenAPI. */
const PLACES: Readonly<Record<string, string>> = {
  header: 'In a header.',
  path: 'In the path.',
  query: 'In the query, after `?`.',
}

function Parameters({
  parameters,
  meaning,
}: Pick<Described, 'parameters'> & Required<Pick<SchemaListProps, 'meaning'>>) {
  const schema: Schema = {
    properties: Object.fromEntries(
      parameters.map(({ name, in: place, description, schema }) => [
        name,
        {
          ...schema,
          description: [PLACES[place], description ?? schema?.description ?? meaning(name)].filter(Boolean).join(' '),
        },
      ]),
    ),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  }
  return html`<${SchemaList} caption="Parameters" schema=${schema} schemas=${{}} required />`
}

function AnswerView({ status, answer, schemas }: { status: string; answer: Answer; schemas: Schemas }) {
  const { headers = {}, content = {} } = answer
  const bodies = Object.entries(content).filter(([, { schema }]) => schema.properties ?? schema.$ref ?? schema.anyOf)
  if (bodies.length === 0 && Object.keys(headers).length === 0) return null
  return html`<details><summary>Answer ${status}</summary>
    ${
      Object.keys(headers).length > 0 &&
      html`<${Table} caption=${`Headers of ${status}`} stacks columns=${[{ name: 'header' }, { name: 'meaning' }]}
      rows=${Object.entries(headers).map(([name, { description }]) => [html`<${InlineCode} text=${name} />`, withCode(description)])} />`
    }
    ${bodies.map(([type, { schema }]) => html`<${SchemaList} key=${type} caption=${`Body of ${status}`} schema=${schema} schemas=${schemas} />`)}
  </details>`
}

function ExampleView({ operation, example, baseUrl }: { operation: Operation; example: Example; baseUrl: string }) {
  const body = bodyIn(example, baseUrl)
  const headers = headersIn(example, baseUrl)
  return html`${callsIn(operation, example, baseUrl).map(
    ([language, text], n) =>
      html`<details key=${language} name="language" open=${n === 0}><summary>${language}</summary><${Code} label=${`Call in ${language}`} text=${text} /></details>`,
  )}
    ${
      body === null
        ? html`<p>Answer, as recorded: <code>HTTP ${example.status}</code>. ${example.body === null ? 'No body.' : html`A file: to keep it, give curl <code>--output FILE</code>.`}</p>`
        : html`<${Code} label=${`Answer, as recorded: HTTP ${example.status}${body.includes('…') ? '. What is longer is cut at …' : ''}`} text=${body} />`
    }
    ${headers !== '' && html`<details><summary>Headers of this answer</summary><${Code} label="Headers, as recorded" text=${headers} /></details>`}`
}

function Errors() {
  return html`<section aria-labelledby="errors">
    <h1 id="errors">Errors</h1>
    <p>A failure is <${InlineCode} text='{"error": {"code", "message", "retryable"}}' />; on the verification routes it has
      ${' '}<code>schema_version</code> and <code>status</code> as well. Branch on the code: messages may change. A retryable call may succeed
      later as it is, with the same <code>Idempotency-Key</code>; after a 402 it needs a payment as well. Where a code is retryable in some
      cases, <code>retryable</code> of the answer says whether this is one. Every 429 has <code>Retry-After</code>.</p>
    <dl class="contents">${ERROR_CODES.map(
      (code) => html`<div key=${code}><dt><code id=${`error-${code}`}>${code}</code><br />
        <span class="detail">${errorTable[code].status}, ${retryRule(code)}</span></dt><dd>${errorTable[code].about}</dd></div>`,
    )}</dl>
  </section>`
}
