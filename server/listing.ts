// `cli doctor --listing`: the rules of the catalogues of paid resources (the validator of CDP, x402scan), checked on the service
// that answers at BASE_URL. Each rule is one finding. It reads only, and pays nothing.
import { decodePaymentRequiredHeader } from '@x402/core/http'
import { parsePaymentRequired } from '@x402/core/schemas'
import type { PaymentRequired } from '@x402/core/types'
import { z } from 'zod'
import type { Config } from './config.ts'
import type { Finding } from './doctor.ts'
import { causeCode } from './errors.ts'
import { checkManifests } from './listing-manifests.ts'
import { resourceUrl } from './payments/discovery.ts'

const MAX_HEADER_BYTES = 8192
const MAX_DESCRIPTION = 500
const TIMEOUT_MS = 10_000

interface Probe {
  status: number
  headers: Headers
  text: string
}

/** What catalogues send: a request without body and headers, an empty object, and a body that is no JSON. */
const PROBES: Readonly<Record<string, RequestInit>> = {
  'GET without headers': { method: 'GET' },
  'HEAD without headers': { method: 'HEAD' },
  'POST without body or headers': { method: 'POST' },
  'POST of an empty object': { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' },
  'POST of a body that is not JSON': { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'probe' },
}

/** Runs every rule, even if others fail. @param config BASE_URL, and what the service should say of itself */
export async function checkListing({
  baseUrl,
  mcpRegistryAuth,
}: Pick<Config, 'baseUrl' | 'mcpRegistryAuth'>): Promise<Finding[]> {
  if (baseUrl === undefined)
    return [fail('address', 'BASE_URL is not set', 'set BASE_URL to the public https address of the service')]
  const door = resourceUrl('buy', baseUrl)
  const answers = new Map<string, Probe | Error>()
  for (const [about, init] of Object.entries(PROBES)) answers.set(about, await probe(door, init))
  const first = answers.get('GET without headers')
  const terms = first && !(first instanceof Error) ? readTerms(first) : null
  return [
    checkAddress(door),
    ...[...answers].map(([about, answer]) => checkStatus(about, answer)),
    ...checkTerms(first, terms),
    ...(terms ? checkContent(door, terms) : []),
    await checkDocument(baseUrl, '/.well-known/x402', 'the list for crawlers', (body) =>
      holds(
        z
          .object({ resources: z.array(z.string()) })
          .safeParse(body)
          .data?.resources.includes(door),
      ),
    ),
    await checkDocument(baseUrl, '/openapi.json', 'the OpenAPI document', (body) => {
      const described = z.object({ paths: z.record(z.string(), z.unknown()) }).safeParse(body).data?.paths
      const post = z.object({ post: z.looseObject({}) }).safeParse(described?.[new URL(door).pathname]).data?.post
      return holds(post && 'x-payment-info' in post && 'responses' in post)
    }),
    await checkFreeEndpoint(`${baseUrl}/mcp/check`),
    await checkRegistryAuth(new URL('/.well-known/mcp-registry-auth', baseUrl).href, mcpRegistryAuth),
    ...(await checkManifests(baseUrl)),
  ]
}

const ok = (subject: string, detail: string): Finding => ({ ok: true, subject, detail })
const fail = (subject: string, detail: string, cure: string): Finding => ({ ok: false, subject, detail, cure })
const holds = (value: unknown): boolean => Boolean(value)

async function probe(url: string, init: RequestInit): Promise<Probe | Error> {
  try {
    const answer = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

const REACH = 'start the service, and make BASE_URL reach it from here'

function checkAddress(door: string): Finding {
  const { protocol, hostname } = new URL(door)
  const isPublic = protocol === 'https:' && !/^(localhost|127\.|\[|10\.|192\.168\.)/.test(hostname)
  return isPublic
    ? ok('https', door)
    : fail('https', `${door} is not a public https address`, 'set BASE_URL to the public https address of the service')
}

function checkStatus(about: string, answer: Probe | Error): Finding {
  if (answer instanceof Error) return fail(about, `no answer: ${causeCode(answer)}`, REACH)
  const detail = `answers ${answer.status}`
  if (answer.status === 402) return ok(about, detail)
  const cure =
    answer.status === 503
      ? 'let the service sell: VERIFICATION_ENABLED, and a facilitator that answers'
      : 'pass every request to the service unchanged: nothing before it may answer in its place'
  return fail(about, `${detail}, and a catalogue expects 402 before any check`, cure)
}

function readTerms({ headers }: Probe): PaymentRequired | null {
  try {
    const read = decodePaymentRequiredHeader(headers.get('payment-required') ?? '')
    const parsed = parsePaymentRequired(read)
    return parsed.success && read.x402Version === 2 ? read : null
  } catch {
    return null
  }
}

function checkTerms(answer: Probe | Error | undefined, terms: PaymentRequired | null): Finding[] {
  const header = answer && !(answer instanceof Error) ? answer.headers.get('payment-required') : null
  const size = header?.length ?? 0
  const cure = 'let proxies pass the header PAYMENT-REQUIRED'
  return [
    terms
      ? ok('terms', `PAYMENT-REQUIRED is x402 v2, with ${terms.accepts.map(({ network }) => network).join(', ')}`)
      : fail('terms', 'PAYMENT-REQUIRED holds no terms of x402 v2', cure),
    header !== null && size < MAX_HEADER_BYTES
      ? ok('header size', `${size} bytes`)
      : fail(
          'header size',
          `${size} bytes; proxies cut at ${MAX_HEADER_BYTES}`,
          'set fewer networks, or a shorter BASE_URL',
        ),
  ]
}

const bazaarEntry = z.object({
  info: z.looseObject({
    input: z.looseObject({ type: z.literal('http'), method: z.literal('POST'), body: z.looseObject({}) }),
    output: z.looseObject({ type: z.string(), example: z.looseObject({}) }),
  }),
  schema: z.looseObject({
    properties: z.looseObject({
      input: z.looseObject({ properties: z.looseObject({ body: z.looseObject({ properties: z.looseObject({}) }) }) }),
      output: z.looseObject({
        properties: z.looseObject({ example: z.looseObject({ properties: z.looseObject({}) }) }),
      }),
    }),
  }),
})

const VERSION = 'run the same release in every process'

function checkContent(door: string, { resource, accepts, extensions }: PaymentRequired): Finding[] {
  const entry = bazaarEntry.safeParse(extensions?.bazaar).data
  const length = [...(resource.description ?? '')].length
  return [
    resource.url === door
      ? ok('resource', resource.url)
      : fail('resource', `${resource.url} is not the address that was asked`, 'set BASE_URL in every web process'),
    length > 0 && length <= MAX_DESCRIPTION
      ? ok('description', `${length} characters`)
      : fail('description', `${length} characters; at most ${MAX_DESCRIPTION} are listed`, VERSION),
    accepts.every(({ scheme, amount, asset, payTo }) => scheme === 'exact' && amount && asset && payTo)
      ? ok('price', accepts.map(({ amount, asset }) => `${amount} of ${asset}`).join(', '))
      : fail(
          'price',
          'an entry of accepts has no scheme `exact`, amount, asset or recipient',
          'set PAY_TO_EVM or PAY_TO_SOLANA',
        ),
    entry
      ? ok('extensions.bazaar', 'input and output have a schema and an example')
      : fail('extensions.bazaar', 'input or output has no schema or no example', VERSION),
    entry && isInstance(entry)
      ? ok('examples', 'match their schemas')
      : fail('examples', 'do not match their schemas', VERSION),
  ]
}

function isInstance({ info, schema }: z.output<typeof bazaarEntry>): boolean {
  // The cast is safe: what is no JSON Schema makes zod throw.
  return z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema).safeParse(info).success
}

async function checkDocument(
  baseUrl: string,
  path: string,
  name: string,
  lists: (body: unknown) => boolean,
): Promise<Finding> {
  const answer = await probe(new URL(path, baseUrl).href, { method: 'GET' })
  if (answer instanceof Error) return fail(path, `no answer: ${causeCode(answer)}`, REACH)
  let body: unknown
  try {
    body = JSON.parse(answer.text)
  } catch {
    return fail(path, `answers ${answer.status}, and not with JSON`, REACH)
  }
  return lists(body) ? ok(path, `${name} names the door`) : fail(path, `${name} does not name the door`, VERSION)
}

const LIST_TOOLS = {
  method: 'POST',
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
}

/** Directories refuse endpoints with tools that move money. */
async function checkFreeEndpoint(url: string): Promise<Finding> {
  const subject = '/mcp/check'
  const answer = await probe(url, LIST_TOOLS)
  if (answer instanceof Error) return fail(subject, `no answer: ${causeCode(answer)}`, REACH)
  const isFree = answer.status === 200 && answer.text.includes('"check_quotes"') && !/x402|USDC/.test(answer.text)
  return isFree
    ? ok(subject, 'lists free tools alone')
    : fail(subject, `answers ${answer.status}, or lists paid tools`, REACH)
}

async function checkRegistryAuth(url: string, expected: string | undefined): Promise<Finding> {
  const subject = '/.well-known/mcp-registry-auth'
  if (expected === undefined) return ok(subject, 'not used: MCP_REGISTRY_AUTH is not set')
  const answer = await probe(url, { method: 'GET' })
  const isServed = !(answer instanceof Error) && answer.status === 200 && answer.text === expected
  return isServed
    ? ok(subject, 'answers MCP_REGISTRY_AUTH')
    : fail(subject, 'does not answer MCP_REGISTRY_AUTH', 'set MCP_REGISTRY_AUTH in every web process')
}
