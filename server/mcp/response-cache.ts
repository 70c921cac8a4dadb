// Answers the SDK gave a moment ago. Lists and greetings depend on nothing but the message, and clients ask for them with
// the same few messages all day; what the SDK said once is said again at a fraction of the price.
import { LRUCache } from 'lru-cache'
import type { ProtocolHeaders } from './eras.ts'
import type { RequestId } from './rpc.ts'

/** Methods whose answer is a function of the message and the protocol's headers. */
const PURE = new Set([
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
])
const MEMBERS = new Set(['jsonrpc', 'id', 'method', 'params'])

/** Of a message worth remembering. Those of a client that is up to something are longer, or soon forgotten. */
const MAX_BYTES = 4096
const MAX_CHARS = 8 * 1024 * 1024
/** The networks a payment can be made on become known while the process runs. */
const KEPT_MS = 10_000

export interface Question {
  key: string
  id: RequestId
}

export interface KeptAnswers {
  /** The answer as the SDK would write it, if it has been given lately. */
  find(question: Question): string | undefined
  keep(question: Question, status: number, text: string): void
}

export function openKeptAnswers(): KeptAnswers {
  /** Everything up to the id, which is what the SDK writes last. */
  const openings = new LRUCache<string, string>({
    maxSize: MAX_CHARS,
    sizeCalculation: (opening, key) => opening.length + key.length,
    ttl: KEPT_MS,
  })
  return {
    find({ key, id }) {
      const opening = openings.get(key)
      return opening === undefined ? undefined : `${opening}${JSON.stringify(id)}}`
    },
    keep({ key, id }, status, text) {
      const ending = `,"jsonrpc":"2.0","id":${JSON.stringify(id)}}`
      if (status === 200 && text.startsWith('{"result":') && text.endsWith(ending))
        openings.set(key, text.slice(0, text.length - JSON.stringify(id).length - 1))
    },
  }
}

/** @param bytes length of the whole body, if it is known. Null for what has to be answered each time anew */
export function questionOf(message: unknown, headers: ProtocolHeaders, bytes: number): Question | null {
  if (!(bytes <= MAX_BYTES) || typeof message !== 'object' || message === null) return null
  const { jsonrpc, id, method, params } = message as Record<string, unknown>
  if (typeof method !== 'string' || !PURE.has(method) || jsonrpc !== '2.0') return null
  if (typeof id !== 'string' && !Number.isSafeInteger(id)) return null
  if (!Object.keys(message).every((name) => MEMBERS.has(name))) return null
  const key = JSON.stringify([method, params, headers.version, headers.method, headers.name])
  return key.length > MAX_BYTES ? null : { key, id: id as RequestId }
}
