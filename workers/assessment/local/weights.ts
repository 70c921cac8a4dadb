// Reads the weights that come with the product: parts of one file, because hosts of repositories refuse large files. They are
// joined and checked by their digest before the first use.
import { createHash } from 'node:crypto'
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Settings } from './settings.ts'
import type { VerifierFiles } from './verifier.ts'

const FOLDER = new URL('./model/', import.meta.url)
const TOKENIZER = new URL('tokenizer.json', FOLDER)
const PARTS = ['model.onnx.part1', 'model.onnx.part2', 'model.onnx.part3']

/** The settings in force. */
export const settings = JSON.parse(readFileSync(new URL('config.json', FOLDER), 'utf8')) as Settings

/**
 * The files of the verifier, 112 MB. Throws Error if a digest is not that of the settings.
 * @param folder holds the weights, in place of the folder that comes with this program: as the service names the file, as
 *   `model.onnx`, or in parts
 */
export function readVerifierFiles(folder?: string): VerifierFiles {
  const model = folder === undefined ? readParts(FOLDER, PARTS) : readFrom(pathToFileURL(`${resolve(folder)}/`))
  const tokenizer = readFileSync(TOKENIZER)
  requireDigest('weights', model, settings.weights_sha256)
  requireDigest('tokenizer', tokenizer, settings.tokenizer_sha256)
  return { model, tokenizer: JSON.parse(tokenizer.toString()), settings }
}

/** Bytes of the weights. Throws if a part is missing. */
export function weightsLength(): number {
  return PARTS.reduce((sum, part) => sum + statSync(new URL(part, FOLDER)).size, 0)
}

/** The files whose bytes, one after the other, are the weights. */
export function weightParts(): URL[] {
  return PARTS.map((part) => new URL(part, FOLDER))
}

/** The tokenizer and the settings as one JSON text. */
export function readTables(): string {
  return `{"tokenizer":${readFileSync(TOKENIZER, 'utf8')},"settings":${JSON.stringify(settings)}}`
}

function readFrom(folder: URL): Uint8Array {
  const whole = [`${settings.weights_sha256}.onnx`, 'model.onnx'].find((name) => existsSync(new URL(name, folder)))
  return readParts(folder, whole ? [whole] : PARTS)
}

/** All parts in one buffer, each read into its place: a copy more would be 111 MB. */
function readParts(folder: URL, parts: readonly string[]): Uint8Array {
  const files = parts.map((part) => openSync(new URL(part, folder), 'r'))
  try {
    const sizes = files.map((file) => fstatSync(file).size)
    const whole = new Uint8Array(sizes.reduce((sum, size) => sum + size, 0))
    let at = 0
    for (const [i, file] of files.entries()) {
      const end = at + (sizes[i] ?? 0)
      while (at < end) at += readSync(file, whole, at, end - at, null)
    }
    return whole
  } finally {
    for (const file of files) closeSync(file)
  }
}

function requireDigest(name: string, bytes: Uint8Array, expected: string) {
  const digest = createHash('sha256').update(bytes).digest('hex')
  if (digest !== expected)
    throw new Error(`the ${name} of the local verifier have the SHA-256 ${digest}, not ${expected}`)
}
