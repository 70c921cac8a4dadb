// Whose key is this? The keys that the reader pinned, the keys that the service of the page publishes, and the keys that a
// file only names itself.
import { readPin, UsageError } from '../../arguments.ts'
import { buildKeyRing, type PinnedKey } from '../../chain/keys.ts'
import { trustIntroduced } from '../../chain/rotation.ts'
import { parseJson } from '../../json.ts'

export interface Trust {
  /** Keys that the reader got through another channel. */
  pinned: readonly PublishedKey[]
  /** The keys of the service that served the page; null where there is none, or where it did not answer. */
  published: readonly PublishedKey[] | null
}

export interface PublishedKey extends PinnedKey {
  /** Verifier key of a log, for a key of use `checkpoint`. */
  vkey?: string | null
}

/** Which of the three lists a check used. */
export type Voucher = 'pinned' | 'published' | 'file'

export interface Ring {
  voucher: Voucher
  keys: readonly PublishedKey[]
  /** The verifier key of the log, where the list names one. */
  vkey?: string
}

/** The rings of keys to try, the most trusted first. A ring without keys is left out. */
export function ringsOf({ pinned, published }: Trust): Ring[] {
  const introduced = trustIntroduced({ keys: published ?? [] }, pinned) as PublishedKey[]
  return [ringOf('pinned', introduced, pinned), ringOf('published', published ?? [], published ?? [])].filter(
    ({ keys }) => keys.length > 0,
  )
}

function ringOf(voucher: Voucher, keys: readonly PublishedKey[], named: readonly PublishedKey[]): Ring {
  const logs = named.filter(({ vkey }) => typeof vkey === 'string')
  const vkey = (logs.find(({ status }) => status === 'active') ?? logs[0])?.vkey ?? undefined
  return { voucher, keys, vkey }
}

/**
 * Pins as a person writes them: one KEYID:HEX a line, or the JSON of `GET /v1/keys`. Throws a UsageError that says what is
 * wrong; an empty text is no pin.
 */
export function readPins(text: string): PublishedKey[] {
  const trimmed = text.trim()
  const keys = /^[[{]/.test(trimmed)
    ? readKeyList(trimmed)
    : trimmed
        .split(/[\s,]+/)
        .filter(Boolean)
        .map(readLine)
  try {
    buildKeyRing(keys)
  } catch (cause) {
    throw new UsageError((cause as Error).message, { cause })
  }
  return keys
}

function readLine(line: string): PublishedKey {
  try {
    return readPin(line)
  } catch (cause) {
    throw new UsageError(`“${line.slice(0, 80)}” is not KEYID:HEX with 64 hex characters.`, { cause })
  }
}

/** The keys in an answer of `GET /v1/keys`, or in an array of such keys. */
export function readKeyList(text: string): PublishedKey[] {
  let value: unknown
  try {
    value = parseJson(text)
  } catch (cause) {
    throw new UsageError('The keys are not JSON.', { cause })
  }
  const keys = Array.isArray(value) ? value : (value as { keys?: unknown } | null)?.keys
  if (!Array.isArray(keys)) throw new UsageError('The JSON has no list of keys.')
  return keys
}
