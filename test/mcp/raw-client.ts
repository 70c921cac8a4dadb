// A client that sends MCP messages by hand, in both eras, so that tests see every byte.
const MODERN = '2026-07-28'
const META = 'io.modelcontextprotocol'

export const ERAS = ['legacy', 'modern'] as const
export type Era = (typeof ERAS)[number]

export interface RpcAnswer {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  body: any
}

export interface Options {
  era?: Era
  headers?: Record<string, string>
  /** Members of `_meta` beside the protocol's own. */
  meta?: Record<string, unknown>
  id?: string | number
}

export interface RawClient {
  /** POSTs a body as it is. */
  post(body: unknown, headers?: Record<string, string>): Promise<RpcAnswer>
  /** One well-formed request. */
  ask(method: string, params?: Record<string, unknown>, options?: Options): Promise<RpcAnswer>
  /** The result of a tool. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  call(name: string, args?: Record<string, unknown>, options?: Options): Promise<any>
}

export function openRawClient(url: string): RawClient {
  const post = async (body: unknown, headers: Record<string, string> = {}): Promise<RpcAnswer> => {
    const raw = typeof body === 'string' || body instanceof Uint8Array
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: raw ? (body as string | Uint8Array<ArrayBuffer>) : JSON.stringify(body),
    })
    const text = await response.text()
    const json = response.headers.get('content-type')?.startsWith('application/json')
    return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : null }
  }
  const ask: RawClient['ask'] = (method, params = {}, options = {}) => {
    const { body, headers } = envelope(method, params, options)
    return post(body, headers)
  }
  return {
    post,
    ask,
    async call(name, args, options) {
      const { status, body, text } = await ask('tools/call', { name, ...(args && { arguments: args }) }, options)
      if (status !== 200 || !body?.result) throw new Error(`${name}: ${status} ${text}`)
      return body.result
    },
  }
}

/** What a client of the era would send. */
export function envelope(method: string, params: Record<string, unknown>, options: Options = {}) {
  const { era = 'modern', headers = {}, meta, id = 1 } = options
  const name = params.name ?? params.uri ?? params.taskId
  const own = { [`${META}/protocolVersion`]: MODERN, [`${META}/clientCapabilities`]: {} }
  const all = { ...(era === 'modern' && own), ...meta }
  return {
    body: {
      jsonrpc: '2.0',
      id,
      method,
      params: { ...params, ...(Object.keys(all).length > 0 && { _meta: all }) },
    },
    headers: {
      ...(era === 'modern'
        ? {
            'mcp-protocol-version': MODERN,
            'mcp-method': method,
            ...(typeof name === 'string' && { 'mcp-name': name }),
          }
        : {}),
      ...headers,
    },
  }
}
