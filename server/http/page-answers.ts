// Sends pages over HTTP: compressed, with headers that restrict them to resources of this host, and only to callers who ask
// for HTML.
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { type Asset, encode } from '../pages/assets.ts'
import { errorPage, type Sent } from '../pages/error-page.ts'
import { inputFaults } from '../pages/input-faults.ts'
import { openSite, pageHeaders } from '../pages/layout.ts'
import { type FailureAnswer, isOfInterface } from './verification.ts'

/** True if the caller names HTML and wants JSON no more than that: a browser, but not curl, fetch or an agent. */
export function asksForHtml(accept: string | undefined): boolean {
  const weight = (type: string) => {
    const range = accept?.split(',').find((part) => part.split(';')[0]?.trim().toLowerCase() === type)
    if (range === undefined) return 0
    return Number(/;\s*q=([\d.]+)/i.exec(range)?.[1] ?? 1)
  }
  const html = weight('text/html')
  return html > 0 && html >= weight('application/json')
}

interface PageAnswer {
  status?: number
  /** See `pageHeaders`. */
  forms?: boolean
  secret?: boolean
  recomputes?: boolean
  headers?: Record<string, string>
}

/** Sends a page in the smallest form that the caller takes. */
export async function sendPage(reply: FastifyReply, text: string, answer: PageAnswer = {}) {
  const accepted = reply.request.headers['accept-encoding']
  const { encoding, bytes } = await compress(Buffer.from(text), accepted)
  if (encoding) reply.header('content-encoding', encoding)
  return reply
    .code(answer.status ?? 200)
    .headers({ ...pageHeaders(answer), vary: 'accept, accept-encoding', ...answer.headers })
    .send(bytes)
}

/** At this quality the saved bytes are worth the time. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }

async function compress(body: Buffer, accepted: string | undefined) {
  const names = (accepted ?? '').split(',').map((part) => part.trim().toLowerCase())
  if (names.includes('br')) return { encoding: 'br', bytes: await promisify(brotliCompress)(body, BROTLI) }
  if (names.includes('gzip')) return { encoding: 'gzip', bytes: await promisify(gzip)(body) }
  return { encoding: null, bytes: body }
}

export function sendAsset(asset: Asset, caching: string, { headers }: FastifyRequest, reply: FastifyReply) {
  const { encoding, bytes } = encode(asset, headers['accept-encoding'])
  if (encoding) reply.header('content-encoding', encoding)
  reply.header('cache-control', caching).header('vary', 'accept-encoding').header('x-content-type-options', 'nosniff')
  return reply.type(asset.type).send(bytes)
}

/** An error as a page for a browser that opens an address or sends a form, as JSON for all other callers. */
export async function sendError(api: Api, request: FastifyRequest, reply: FastifyReply, answer: FailureAnswer) {
  const page = await pageOf(api, request, answer)
  const { 'content-type': _json, ...headers } = answer.headers
  if (page) return sendPage(reply, page, { status: answer.status, headers, secret: true })
  return reply.code(answer.status).headers(answer.headers).send(answer.body)
}

/** Null for callers who get JSON. */
async function pageOf(api: Api, request: FastifyRequest, { status, body, headers: answered, cause }: FailureAnswer) {
  if (!isNavigation(request)) return null
  const shown = { status, retryAfter: answered['retry-after'], faults: inputFaults(cause), ...body.error }
  try {
    return errorPage(await openSite(api), request.url, shown, sentBy(request))
  } catch (cause) {
    // The error page cannot be made; the caller gets the error as JSON.
    request.log.error({ event: 'page_failed', err: cause })
    return null
  }
}

/** Below these, what is sent is a call. */
const CALLS = /^\/(api|v1|mcp)(\/|$)/

/**
 * Whether a browser opens the address or sends a form to it. The verification routes have the interface's bodies for all callers, and
 * what is sent to an operation is a call. No form is JSON.
 */
function isNavigation(request: FastifyRequest): boolean {
  const { method, headers, routeOptions } = request
  if (!asksForHtml(headers.accept)) return false
  if (method === 'GET') return !isOfInterface(request)
  if (method !== 'POST' || /^application\/json\b/i.test(headers['content-type'] ?? '')) return false
  return routeOptions.url === undefined ? !CALLS.test(pathOf(request)) : routeOptions.config?.form !== undefined
}

function sentBy(request: FastifyRequest): Sent | undefined {
  const { method, headers, routeOptions, server } = request
  if (method !== 'POST') return undefined
  const { form = null } = routeOptions.config ?? {}
  return {
    form,
    isPage: form === null && server.hasRoute({ method: 'GET', url: pathOf(request) }),
    isTooLong: Number(headers['content-length'] ?? 0) > routeOptions.bodyLimit,
  }
}

const pathOf = ({ url }: FastifyRequest) => url.split('?')[0] ?? url

/** A person who opens an endpoint of a protocol in a browser reads what it is, with the status that programs get. */
export function explainEndpoints(app: FastifyInstance, api: Api) {
  app.addHook('onRequest', async (request, reply) => {
    const { method, headers, routeOptions, ip } = request
    if (method !== 'GET' || routeOptions.config?.operation !== 'mcp' || !asksForHtml(headers.accept)) return
    await api.limits.spend(ip)
    const error = {
      status: 405,
      code: null,
      message: 'It is an endpoint of MCP, which takes messages by POST only.',
      retryable: false,
    }
    return sendPage(reply, errorPage(await openSite(api), request.url, error), {
      status: 405,
      secret: true,
      headers: { allow: 'POST' },
    })
  })
}
