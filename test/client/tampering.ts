// All changes of a file or a value: of every byte, every leaf, every member. And all ways to write the same value
// differently.
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { SignatureCheck } from '../../client/verification.ts'
import { LONG } from '../long.ts'

export type Path = string[]

export function leaves(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  return Object.entries(value).flatMap(([name, member]) => leaves(member, [...path, name]))
}

export function members(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => [[...path, name], ...members(member, [...path, name])])
}

export function change(root: object, path: Path, to: (was: unknown) => unknown): void {
  const at = path.slice(0, -1).reduce<Record<string, unknown>>((o, name) => o[name] as never, root as never)
  const name = path.at(-1)!
  at[name] = to(at[name])
}

export function drop(root: object, path: Path): void {
  const at = path.slice(0, -1).reduce<Record<string, unknown>>((o, name) => o[name] as never, root as never)
  if (Array.isArray(at)) at.splice(Number(path.at(-1)), 1)
  else delete at[path.at(-1)!]
}

/** A value that differs as little as possible: by one hex digit, one letter, one unit. */
export function other(value: unknown): unknown {
  if (typeof value === 'number') return value + 1
  if (typeof value === 'boolean') return !value
  if (typeof value !== 'string') return 'x'
  const last = value.at(-1) ?? ''
  return value.slice(0, value.length - last.length) + (last === '0' ? '1' : '0')
}

/** Of each byte: another one, the same letter in the other case, none, and in the long run every bit and the byte twice. */
export function* byteChanges(bytes: Buffer): Generator<{ at: number; what: string; changed: Buffer }> {
  for (const at of bytes.keys()) {
    const isLetter = /[a-z]/i.test(String.fromCharCode(bytes[at]!))
    for (const bit of LONG ? [1, 2, 4, 8, 16, 32, 64, 128] : isLetter ? [1, 32] : [1]) {
      const changed = Buffer.from(bytes)
      changed[at] = bytes[at]! ^ bit
      yield { at, what: `byte ${at} with bit ${bit} flipped`, changed }
    }
    const without = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)])
    yield { at, what: `without byte ${at}`, changed: without }
    const twice = Buffer.concat([bytes.subarray(0, at + 1), bytes.subarray(at)])
    if (LONG) yield { at, what: `byte ${at} twice`, changed: twice }
  }
}

/** The same value in another JSON notation, which a parser cannot distinguish. */
export const RESPELLINGS: readonly [what: string, respell: (text: string) => string][] = [
  ['indented', (text) => JSON.stringify(JSON.parse(text), null, 2)],
  ['a newline at the end', (text) => `${text}\n`],
  ['blanks at both ends', (text) => ` \t${text}\r\n`],
  ['members in another order', (text) => JSON.stringify(reversed(JSON.parse(text)))],
  ['letters as escapes', (text) => text.replaceAll('"s', '"\\u0073')],
  ['numbers with a fraction', (text) => text.replace(/(?<=":)(\d+)(?=[,}])/g, '$1.0')],
]

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reversed(member)]),
  )
}

/**
 * OpenSSL instead of the client's own check: these tests are not about the signature, and make many checks. Most changes leave a
 * signature and what it signs as they were, so a check that passed is not made again.
 */
export const openssl: SignatureCheck = (message, signature, publicKey) => {
  const x = Buffer.from(publicKey).toString('base64url')
  const name = [x, ...[signature, message].map((bytes) => Buffer.from(bytes).toString('hex'))].join(' ')
  if (validByOpenssl.has(name)) return true
  const key = opensslKeys.get(x) ?? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  opensslKeys.set(x, key)
  const isValid = verify(null, message, key, signature)
  if (isValid) validByOpenssl.add(name)
  return isValid
}
const validByOpenssl = new Set<string>()
const opensslKeys = new Map<string, KeyObject>()

export async function* chunks(text: string | Uint8Array, size = Number.POSITIVE_INFINITY) {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, Math.min(at + size, bytes.length))
}
