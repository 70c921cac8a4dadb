// Reads the arguments of the command line strictly: a mistyped pin must never be accepted as another pin.
import type { ChainPoint } from './chain/chain.ts'
import { readVerifierKey } from './chain/checkpoint.ts'
import { buildKeyRing, type PinnedKey } from './chain/keys.ts'
import type { TreeHead } from './chain/merkle.ts'

/** The command was called wrongly. */
export class UsageError extends Error {}

/** The call is right, but something is not there that it needs. Its message says all. */
export class MissingError extends UsageError {}

export function readPin(pin: string): PinnedKey {
  const [, id, hex] = /^(\d+):([0-9a-fA-F]{64})$/.exec(pin) ?? []
  if (id === undefined || hex === undefined)
    throw new UsageError(`--pin ${pin} is not KEYID:HEX with 64 hex characters.`)
  return { key_id: Number(id), pubkey_hex: hex }
}

export function readPoint(option: string, point: string, least = 1): ChainPoint {
  const [serial, hash] = readNumbered(point)
  if (!(serial >= least)) throw new UsageError(`${option} ${point} is not SERIAL:HASH.`)
  return { serial, receipt_hash: hash }
}

export function readTree(option: string, tree: string): TreeHead {
  const [size, root] = readNumbered(tree)
  if (!(size >= 1)) throw new UsageError(`${option} ${tree} is not SIZE:ROOT.`)
  return { tree_size: size, root_hash: root }
}

/** The number is NaN if the text is not a number and 64 hex characters, or if the number exceeds the safe integers. */
function readNumbered(text: string): [number: number, hex: string] {
  const [, number = '', hex = ''] = /^(\d+):([0-9a-f]{64})$/.exec(text) ?? []
  return [number !== '' && Number.isSafeInteger(Number(number)) ? Number(number) : Number.NaN, hex]
}

export function readUrl(url: string): string {
  if (!isHttp(url)) throw new UsageError(`${url} is not the URL of a service, which begins with https:// or http://.`)
  return url
}

export function readHttpUrl(option: string, url: string): string {
  if (!isHttp(url)) throw new UsageError(`${option} ${url} is not a URL that begins with https:// or http://.`)
  return url
}

function isHttp(url: string): boolean {
  return /^https?:/.test(url) && URL.canParse(url)
}

export function readSeconds(option: string, seconds: string): number {
  if (!/^[1-9]\d{0,5}$/.test(seconds)) throw new UsageError(`${option} ${seconds} is not a number of seconds.`)
  return Number(seconds)
}

export function checkKeys(pinned: readonly PinnedKey[]): void {
  if (pinned.length === 0) throw new UsageError('Without --keys or --pin there is no key to verify with.')
  asUsage(() => buildKeyRing(pinned))
}

export function checkVerifierKey(vkey: string | undefined): void {
  if (vkey !== undefined) asUsage(() => readVerifierKey(vkey))
}

function asUsage(read: () => unknown): void {
  try {
    read()
  } catch (cause) {
    throw new UsageError((cause as Error).message, { cause })
  }
}

/** Text from a file or a service must not move the cursor, nor write lines that look like output of this program. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

/** `[====    ] 12,000 of 50,000` */
export function progressBar(done: number, all: number, width = 40): string {
  const full = Math.floor((width * done) / all)
  return `[${'='.repeat(full)}${' '.repeat(width - full)}] ${done.toLocaleString('en')} of ${all.toLocaleString('en')}`
}
