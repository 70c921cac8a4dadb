// Cached responses to requests that depend on nothing but the message and its headers: lists and `initialize`. Clients
// repeat the same few requests, and a response from the cache takes a fraction of the time that the SDK needs.
import { LRUCache } from 'lru-cache'
import type { ProtocolHeaders } from './protocol-revisions.ts'
import { isRecord, isRequestId } from './rpc.ts'

/** Methods whose response is a function of the message and the protocol's headers. */
const CACHEABLE = new Set([
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
])
const MEMBERS = new Set(['jsonrpc', 'id', 'method', 'params'])

/** Longest message, and longest key, that is cached: a longer one is not from an ordinary client. */
const MAX_BYTES = 4096
const MAX_CHARS = 8 * 1024 * 1024
/** Short, because the networks that payments can be made on become known while the process runs. */
const TTL_MS = 10_000

export interface CacheableRequest {
  /** Everything that the response depends on, except the id. */
  key: string
  id: string | number
}

export interface ResponseCache {
  /** A response with the cached result; undefined where none is cached. */
  find(request: CacheableRequest): string | undefined
  store(request: CacheableRequest, status: number, text: string): void
}

export function buildResponseCache(): ResponseCache {
  /** The JSON of the results. */
  const results = new LRUCache<string, string>({
    maxSize: MAX_CHARS,
    sizeCalculation: (result, key) => result.length + key.length,
    ttl: TTL_MS,
  })
  return {
    find({ key, id }) {
      const result = results.get(key)
      return result === undefined ? undefined : `{"result":${result},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`
    },
    store({ key, id }, status, text) {
      const response: unknown = status === 200 ? JSON.parse(text) : null
      if (isRecord(response) && isRecord(response.result) && response.id === id)
        results.set(key, JSON.stringify(response.result))
    },
  }
}

/** Null for a message whose response is not cached. @param bytes length of the whole body; NaN if it is unknown */
export function cacheableRequest(message: unknown, headers: ProtocolHeaders, bytes: number): CacheableRequest | null {
  if (!(bytes <= MAX_BYTES) || !isRecord(message)) return null
  const { jsonrpc, id, method, params } = message
  if (typeof method !== 'string' || !CACHEABLE.has(method) || jsonrpc !== '2.0' || !isRequestId(id)) return null
  if (!Object.keys(message).every((name) => MEMBERS.has(name))) return null
  const key = JSON.stringify([method, params, headers.version, headers.method, headers.name])
  return key.length > MAX_BYTES ? null : { key, id }
}
