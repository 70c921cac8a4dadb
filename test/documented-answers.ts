// Compares every answer that a test receives from an operation of the catalogue with the OpenAPI document: its status, its body
// with all formats, the headers that the document knows, and whether caches may keep it. Harnesses name the addresses of their services.
import { catalog } from '../server/catalog.ts'
import { readConfig } from '../server/config.ts'
import { buildDocument } from '../server/http/openapi.ts'
import { openAjv } from './interface.schema.ts'

interface Described {
  content?: Record<string, { schema: object }>
  headers?: Record<string, unknown>
}
type Document = { paths: Record<string, Record<string, { responses: Record<string, Described> }>> }

/** Headers of answers that belong to the contract: an operation that sends one says so. */
const CONTRACT_HEADERS = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-Service-Idempotent-Replay',
  'X-Service-Recovery-Token',
  'Retry-After',
  'Location',
  'ETag',
  'Preference-Applied',
  'WWW-Authenticate',
]

const origins = new Set<string>()
const answered = new Set<string>()
let expected: ReturnType<typeof openDocument> | undefined
let watching = false

/**
 * From now on `fetch` rejects for answers of this service that are not as documented. Disposing ends it.
 * @param address of the service
 */
export function expectDocumented(address: string): Disposable {
  expected ??= openDocument()
  if (!watching) watchFetch(expected)
  watching = true
  const { origin } = new URL(address)
  origins.add(origin)
  return { [Symbol.dispose]: () => void origins.delete(origin) }
}

/** The statuses of operations, as `get /v1/keys 200`: those that the document names, and those that watched services answered so far. */
export function statusesOfOperations(): { documented: string[]; answered: ReadonlySet<string> } {
  expected ??= openDocument()
  return { documented: expected.statuses, answered }
}

function watchFetch({ problemOf }: ReturnType<typeof openDocument>): void {
  const plain = globalThis.fetch
  globalThis.fetch = async (input, init) => {
    const response = await plain(input, init)
    const url = new URL(input instanceof Request ? input.url : input)
    if (!origins.has(url.origin) || response.redirected) return response
    const method = init?.method ?? (input instanceof Request ? input.method : 'GET')
    const problem =
      (await problemOf(method.toLowerCase(), url.pathname, response)) ?? cachingProblem(url.pathname, response)
    if (problem)
      throw new Error(`${method} ${url.pathname} answers ${response.status} otherwise than documented: ${problem}`)
    return response
  }
}

/** Answers with secrets or with data of an account: those of every operation and of MCP, except what is public and says so. */
const NOT_TO_BE_KEPT = /^\/(v1|api|mcp)(\/|$)/

function cachingProblem(pathname: string, { headers, status }: Response): string | null {
  const caching = headers.get('cache-control') ?? ''
  const isPublic = PUBLIC_ANSWERS.has(pathname) && (status === 200 || status === 304) && caching.startsWith('public, ')
  if (!NOT_TO_BE_KEPT.test(pathname) || isPublic || /\bno-store\b/.test(caching)) return null
  return `caches may keep it: Cache-Control is ${caching || 'missing'}`
}

/** Whoever asks for one of these gets the same answer. */
const PUBLIC_ANSWERS = new Set(['/v1/chain'])

function openDocument() {
  const document = buildDocument({ config: readConfig({}) }, catalog) as unknown as Document
  const ajv = openAjv(['base64'])
  for (const keyword of Object.keys(document)) ajv.addKeyword(keyword)
  // Not compared with the schema of schemas, which knows no `paths`: test/http/openapi.test.ts compiles every schema in it.
  ajv.addSchema(document, 'openapi', undefined, false)
  const paths = Object.keys(document.paths).map((path) => ({
    path,
    form: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  }))
  // A path without parameters comes before one that has a parameter in its place.
  paths.sort((a, b) => a.path.split('{').length - b.path.split('{').length)

  async function problemOf(method: string, pathname: string, response: Response): Promise<string | null> {
    const path = paths.find(({ form }) => form.test(pathname))?.path
    const operation = path !== undefined && document.paths[path]?.[method]
    if (!operation) return null
    const described = operation.responses[response.status]
    if (!described) return `the status is not documented (${await response.clone().text()})`
    answered.add(`${method} ${path} ${response.status}`)
    const silent = CONTRACT_HEADERS.find((name) => response.headers.has(name) && !(name in (described.headers ?? {})))
    if (silent) return `the header ${silent} is not documented`
    const type = 'application/json'
    if (!described.content?.[type]) return null
    // Browsers that navigate get the same error as a page.
    if (!response.ok && response.headers.get('content-type')?.startsWith('text/html')) return null
    const pointer = `#/paths/${path.replaceAll('/', '~1')}/${method}/responses/${response.status}/content/${type.replace('/', '~1')}/schema`
    const validate = ajv.getSchema(`openapi${encodeURI(pointer)}`)
    if (!validate) throw new Error(`${pointer} is no schema`)
    return validate(await response.clone().json()) ? null : ajv.errorsText(validate.errors)
  }
  const statuses = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      Object.keys(responses).map((status) => `${method} ${path} ${status}`),
    ),
  )
  return { problemOf, statuses }
}
