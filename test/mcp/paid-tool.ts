// Calls of the paid tool as they are on the wire, signed orders for it, and the payment loop of x402's own MCP client.
import { randomUUID } from 'node:crypto'
import { isPaymentRequired, parsePaymentRequired } from '@x402/core/schemas'
import type { PaymentPayload, PaymentRequired, SettleResponse } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { x402Client } from '@x402/fetch'
import type { Test } from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { checkNonCompleted, checkResult, type NonCompleted, type Result } from '../interface.schema.ts'
import { holdPage, type Page, type Site } from '../site.ts'
import { harbourClaim, PAGE, type System } from '../system.ts'
import { envelope } from './raw-client.ts'

export const TOOL = 'service_verify_source'
/** Listed only where MCP_VERIFY_CLAIMS_ENABLED is true. */
export const CLAIMS_TOOL = 'service_verify_claims'
/** Members of `_meta`. */
export const KEY = 'service/idempotency-key'
export const PAYMENT = 'x402/payment'
export const TOKEN = 'service/recovery-token'
export const REPLAYED = 'service/replayed'

export interface ToolResult {
  content: { type: string; text: string }[]
  structuredContent?: unknown
  isError?: boolean
  _meta?: Record<string, unknown>
  [other: string]: unknown
}

export interface Message {
  jsonrpc: '2.0'
  id?: number | string
  method?: string
  params?: Record<string, unknown>
  result?: ToolResult
  error?: { code: number; message: string; data?: unknown }
}

/** How a message is sent: in which era of the protocol, and with which client capabilities. */
export interface Manner {
  modern?: boolean
  capabilities?: Record<string, unknown>
  signal?: AbortSignal
}

/** POSTs one request to an address and returns the HTTP response. */
export function post(url: string, method: string, params: Record<string, unknown>, manner: Manner = {}) {
  const { _meta, ...rest } = params
  const own = manner.capabilities && { 'io.modelcontextprotocol/clientCapabilities': manner.capabilities }
  const meta = { ...(_meta as object), ...(manner.modern && own) }
  const { body, headers } = envelope(method, rest, { era: manner.modern ? 'modern' : 'legacy', meta })
  return fetch(new URL('/mcp', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(body),
    signal: manner.signal,
  })
}

/** The answer, as JSON or at the end of a stream. */
export async function readAnswer(response: Response): Promise<Message> {
  let last: Message | undefined
  for await (const message of messagesOf(response)) last = message
  if (!last) throw new Error(`status ${response.status} without an answer`)
  return last
}

/** The messages of an answer, as they arrive. */
export async function* messagesOf(response: Response): AsyncGenerator<Message> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    yield (await response.json()) as Message
    return
  }
  let text = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    const events = text.split(/\r?\n\r?\n/)
    text = events.pop() ?? ''
    for (const event of events) {
      const data = event.match(/^data: ?(.*)$/m)?.[1]
      if (data) yield JSON.parse(data) as Message
    }
  }
}

export interface CallOptions extends Manner {
  /** By default the tool for one claim. */
  tool?: string
  args: Record<string, unknown>
  meta?: Record<string, unknown>
}

/** One call of the tool; returns its result. Throws a protocol error. */
export async function callTool(url: string, { tool = TOOL, args, meta, ...manner }: CallOptions): Promise<ToolResult> {
  const response = await post(url, 'tools/call', { name: tool, arguments: args, ...(meta && { _meta: meta }) }, manner)
  const { result, error } = await readAnswer(response)
  if (result) return result
  throw Object.assign(new Error(error?.message), { code: error?.code, data: error?.data, status: response.status })
}

/** x402's client with a new wallet. */
export function openWallet(): x402Client {
  return new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
}

/** The terms of an unpaid answer. Throws for any other. */
export function termsOf({ structuredContent, content, isError }: ToolResult): PaymentRequired {
  const terms = structuredContent ?? JSON.parse(content[0]?.text ?? '')
  const parsed = parsePaymentRequired(terms)
  if (!isError || !parsed.success) throw new Error(`no terms: ${content[0]?.text.slice(0, 300)}`)
  return terms as PaymentRequired
}

/** Gets the terms and signs them. */
export async function sign(url: string, call: CallOptions, wallet = openWallet()) {
  const asked = await callTool(url, call)
  const payment: PaymentPayload = await wallet.createPaymentPayload(termsOf(asked))
  return { asked, payment, key: asked._meta?.['service/idempotency-key'] as string }
}

/** Arguments of a new purchase: the claim about the harbour, and a new page. */
export function newArgs(site: Site, page: Page | (() => Promise<Page>) = { body: PAGE }) {
  const path = `/${randomUUID()}`
  site.pages.set(path, page)
  return { ...harbourClaim(site), source_url: site.url(path) }
}

/** Signs an order of a new page, which the site holds until `held.release()`. */
export async function signOrder(system: System, page: Page = { body: PAGE }) {
  const held = holdPage(page)
  const args = newArgs(system.site, held.page)
  const key = randomUUID()
  const unpaid = { args, meta: { [KEY]: key } }
  const { asked, payment } = await sign(system.url('/'), unpaid)
  const paid = { args, meta: { [KEY]: key, [PAYMENT]: payment } }
  return { args, key, held, payment, terms: termsOf(asked), unpaid, paid }
}

export interface CallableTool {
  name: string
  arguments: Record<string, unknown>
  _meta?: Record<string, unknown>
}

/** As x402's MCP client does it: call, and if the answer holds terms, sign them and call again with the payment alone. */
export async function payByClient<R>(
  call: (params: CallableTool) => Promise<R>,
  args: Record<string, unknown>,
  wallet = openWallet(),
): Promise<R> {
  const asked = await call({ name: TOOL, arguments: args })
  const { isError, structuredContent, content } = asked as ToolResult
  const terms = structuredContent ?? JSON.parse(content[0]?.text ?? '')
  if (!isError || !isPaymentRequired(terms)) return asked
  const payment = await wallet.createPaymentPayload(terms as PaymentRequired)
  return call({ name: TOOL, arguments: args, _meta: { 'x402/payment': payment } })
}

/** Checks a completed result against the interface; returns it with its bytes and token. */
export function expectCompleted(t: Test, answer: ToolResult) {
  const [summary] = answer.content
  t.notOk(answer.isError, summary?.text ?? '')
  const result = answer.structuredContent as Result
  const bytes = JSON.stringify(result)
  t.ok([...(summary?.text ?? '')].length <= 2000, 'the text is short')
  t.match(summary?.text, `claim_support: ${result.claim_support} `)
  t.match(summary?.text, `Receipt ${result.receipt.attestation.serial}`)
  t.same(checkResult(result), [])
  t.match(answer._meta?.['x402/payment-response'], { success: true } as Partial<SettleResponse>)
  t.match(answer._meta?.['service/recovery-token'], /^crt_/)
  return { result, bytes, token: answer._meta?.['service/recovery-token'] as string }
}

/** Checks a body without a result against the interface, and returns it. */
export function expectNonCompleted(t: Test, answer: ToolResult, status: NonCompleted['status'], code?: string) {
  const body = answer.structuredContent as NonCompleted
  t.equal(Boolean(answer.isError), status !== 'pending', answer.content[0]?.text ?? '')
  t.equal(answer.content[0]?.text, JSON.stringify(body), 'the text says the same')
  t.same(checkNonCompleted(body), [])
  t.equal(body.status, status)
  if (code) t.equal(body.error.code, code)
  return body
}
