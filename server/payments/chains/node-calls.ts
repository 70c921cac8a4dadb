// Calls to the node of a chain over HTTP. A node may answer without end, slowly, or with a redirect: each is a failure of that node.
import { z } from 'zod'
import { readBody, TooLongError } from '../../../client/bytes.ts'

/** Above a page of transactions whose memos are as long as they can be. */
const MAX_ANSWER_BYTES = 10_485_760
/** For a whole call, to the last byte of its answer. */
export const CALL_TIMEOUT_MS = 10_000
/** For one look at a settlement, with all its calls but the last. */
export const LOOK_TIMEOUT_MS = 300_000

/** A node gave no answer, or one that cannot be read. `code` is not negative, unlike those of JSON-RPC. */
export class NodeError extends Error {
  override name = 'NodeError'
  readonly code: string
  constructor(code: string, cause?: unknown) {
    super(`The node of the chain gave no answer: ${code}`, { cause })
    this.code = code
  }
}

/** An error of JSON-RPC: an answer that says nothing about the question. Its message is not kept; it may quote a payment. */
export class NodeRefusalError extends Error {
  override name = 'NodeRefusalError'
  readonly code: number
  constructor(code: number) {
    super(`The node of the chain answered with the error ${code}`)
    this.code = code
  }
}

/**
 * A `fetch` that returns whole answers: at most so many bytes, within the time, without redirects. It drops headers, among them
 * Retry-After, for which a library would wait as long as the node says.
 */
export function buildNodeFetch(timeoutMs = CALL_TIMEOUT_MS) {
  return async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const time = AbortSignal.timeout(timeoutMs)
    const signal = init.signal ? AbortSignal.any([init.signal, time]) : time
    const answer = await fetch(url, { ...init, redirect: 'manual', signal })
    if (answer.status >= 300 && answer.status < 400) {
      await answer.body?.cancel()
      throw new NodeError(`http_${answer.status}`)
    }
    const type = answer.headers.get('content-type')
    try {
      const bytes = await readBody(answer, MAX_ANSWER_BYTES)
      const body = answer.status === 204 ? null : Buffer.from(bytes)
      return new Response(body, { status: answer.status, headers: type === null ? {} : { 'content-type': type } })
    } catch (error) {
      if (error instanceof TooLongError) throw new NodeError('answer_too_long')
      throw error
    }
  }
}

const refusal = z.object({ error: z.object({ code: z.int() }) })

/** Asks a node by JSON-RPC. Throws NodeRefusalError, NodeError, and what the connection throws. */
export function openNodeCalls(url: string, timeoutMs = CALL_TIMEOUT_MS) {
  const send = buildNodeFetch(timeoutMs)
  return async function ask<T>(
    method: string,
    params: unknown[],
    shape: z.ZodType<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const answer = await send(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      ...(signal && { signal }),
    })
    if (!answer.ok) throw new NodeError(`http_${answer.status}`)
    const said: unknown = await answer.json().catch(() => undefined)
    const refused = refusal.safeParse(said)
    if (refused.success) throw new NodeRefusalError(refused.data.error.code)
    const read = z.object({ result: shape }).safeParse(said)
    if (!read.success) throw new NodeError('unreadable_answer')
    return read.data.result as T
  }
}
