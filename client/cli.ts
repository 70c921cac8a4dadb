#!/usr/bin/env node
// The command line: verifies files offline, and looks at what a service publishes. Runs in Node only.
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { Countersign, CountersignError, createIdempotencyKey } from './client.ts'
import { buildKeyRing } from './keys.ts'
import {
  type ChainOptions,
  type ChainPoint,
  type PinnedKey,
  parseJson,
  type Verification,
  verifyAttestation,
  verifyChain,
  verifyResult,
} from './verification.ts'

const HELP = `countersign: check what a source verification service has signed

  countersign verify FILE (--keys FILE | --pin KEYID:HEX)...   check a file offline; - reads standard input
  countersign keys BASE_URL                                    print the keys a service publishes
  countersign ask BASE_URL --source URL --claim TEXT           print the terms of one verification; pays nothing

verify takes a completed result, one attestation, or consecutive attestations (an array, or an export of
/v1/chain), prints one line per check, and needs the signing key from a source you trust independently:

  --keys FILE          keys as /v1/keys lists them
  --pin KEYID:HEX      one key; may be repeated
  --from SERIAL:HASH   chain only: the receipt before the first one
  --head SERIAL:HASH   chain only: the receipt it must end with
  --last-signature     chain only: check the last signature, which covers the rest through the links

ask:

  --source URL         the page, https only
  --claim TEXT         the claim to hold against it
  --dry-run            send nothing; print the request and the published price

  -h, --help           this text

Exit status: 0 good, 1 bad or refused, 2 wrong usage.
`

const OPTIONS = {
  keys: { type: 'string', multiple: true },
  pin: { type: 'string', multiple: true },
  from: { type: 'string' },
  head: { type: 'string' },
  'last-signature': { type: 'boolean', default: false },
  source: { type: 'string' },
  claim: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const

class UsageError extends Error {}

type Arguments = ReturnType<typeof readArguments>
type Command = (operand: string, options: Arguments['values']) => Promise<number>

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  const commands: Record<string, Command> = { verify, keys, ask }
  try {
    const { values, positionals } = readArguments(args)
    if (values.help) return print(HELP)
    const [name = '', operand, ...rest] = positionals
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (!command) throw new UsageError(name ? `There is no command ${name}.` : 'A command is missing.')
    if (operand === undefined || rest.length > 0) throw new UsageError(`${name} takes exactly one operand.`)
    return await command(operand, values)
  } catch (error) {
    return explain(error)
  }
}

function readArguments(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true })
  } catch (cause) {
    throw new UsageError((cause as Error).message, { cause })
  }
}

async function verify(file: string, options: Arguments['values']): Promise<number> {
  const given: Given = {
    keys: [...(await Promise.all((options.keys ?? []).map(readKeys))).flat(), ...(options.pin ?? []).map(readPin)],
    from: options.from === undefined ? undefined : readPoint('--from', options.from),
    head: options.head === undefined ? undefined : readPoint('--head', options.head),
    signatures: options['last-signature'] ? 'last' : 'every',
  }
  checkKeys(given.keys)
  const { ok, checks } = verifyBytes(await readInput(file), given)
  for (const { name, ok, detail } of checks)
    print(`${ok ? 'ok  ' : 'FAIL'} ${name}${detail ? `: ${visible(detail)}` : ''}\n`)
  print(ok ? 'good\n' : 'BAD\n')
  return ok ? 0 : 1
}

type Given = Required<Pick<ChainOptions, 'keys' | 'signatures'>> & Pick<ChainOptions, 'from' | 'head'>

function verifyBytes(bytes: Uint8Array, given: Given): Verification {
  let value: unknown
  try {
    value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    // Not UTF-8, not JSON, or JSON that two readers may read differently.
    return { ok: false, checks: [{ name: 'json', ok: false, detail: (error as Error).message }] }
  }
  const { ok, checks } = verifyValue(value, given)
  return { ok, checks: [{ name: 'json', ok: true }, ...checks] }
}

function verifyValue(value: unknown, given: Given): Verification {
  const members = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  const chain = Array.isArray(value) ? value : members.attestations
  if (chain !== undefined) return verifyChain(chain, given)
  if (given.from || given.head || given.signatures === 'last')
    throw new UsageError('--from, --head and --last-signature are for a chain, and this is none.')
  return Object.hasOwn(members, 'receipt')
    ? verifyResult(value, given)
    : verifyAttestation(members.attestation ?? value, given)
}

async function keys(baseUrl: string): Promise<number> {
  const published = await new Countersign({ baseUrl: readUrl(baseUrl) }).keys()
  print(`${JSON.stringify({ keys: published }, null, 2)}\n`)
  process.stderr.write('Compare these with a source independent of this service before you trust them.\n')
  return 0
}

async function ask(baseUrl: string, options: Arguments['values']): Promise<number> {
  const { source, claim } = options
  if (source === undefined || claim === undefined) throw new UsageError('ask needs --source and --claim.')
  const service = new Countersign({ baseUrl: readUrl(baseUrl) })
  const request = { source_url: source, claim }
  if (options['dry-run']) {
    const { price, networks, payment_mode } = await service.capabilities()
    return print(`${JSON.stringify({ request, price, networks, payment_mode }, null, 2)}\n`)
  }
  const idempotencyKey = createIdempotencyKey()
  const refusal = await service.verifySource(request, { idempotencyKey }).then(
    () => null,
    (error: unknown) => error,
  )
  if (refusal instanceof CountersignError && refusal.paymentRequired) return printTerms(idempotencyKey, refusal)
  throw refusal ?? new Error('The service gave the result away under a new key.')
}

function printTerms(idempotencyKey: string, { requestId, paymentRequired }: CountersignError): number {
  const terms = { idempotency_key: idempotencyKey, request_id: requestId, payment_required: paymentRequired }
  return print(`${JSON.stringify(terms, null, 2)}\n`)
}

async function readKeys(file: string): Promise<PinnedKey[]> {
  const text = (await readInput(file)).toString()
  try {
    const value = parseJson(text) as { keys?: unknown }
    const list = Array.isArray(value) ? value : value.keys
    if (!Array.isArray(list)) throw new TypeError('no list of keys')
    return list as PinnedKey[]
  } catch (cause) {
    throw new UsageError(`${file} does not hold keys as /v1/keys lists them.`, { cause })
  }
}

function checkKeys(pinned: readonly PinnedKey[]): void {
  if (pinned.length === 0) throw new UsageError('Without --keys or --pin there is no key to verify with.')
  try {
    buildKeyRing(pinned)
  } catch (cause) {
    throw new UsageError((cause as Error).message, { cause })
  }
}

function readPin(pin: string): PinnedKey {
  const [, id, hex] = /^(\d+):([0-9a-fA-F]{64})$/.exec(pin) ?? []
  if (id === undefined || hex === undefined)
    throw new UsageError(`--pin ${pin} is not KEYID:HEX with 64 hex characters.`)
  return { key_id: Number(id), pubkey_hex: hex }
}

function readPoint(option: string, point: string): ChainPoint {
  const [, serial, hash] = /^(\d+):([0-9a-f]{64})$/.exec(point) ?? []
  if (serial === undefined || hash === undefined) throw new UsageError(`${option} ${point} is not SERIAL:HASH.`)
  return { serial: Number(serial), receipt_hash: hash }
}

function readUrl(url: string): string {
  if (!/^https?:/.test(url) || !URL.canParse(url)) throw new UsageError(`${url} is not the URL of a service.`)
  return url
}

async function readInput(file: string): Promise<Buffer> {
  try {
    return file === '-' ? await buffer(process.stdin) : await readFile(file)
  } catch (cause) {
    throw new UsageError(`Cannot read ${file}: ${(cause as Error).message}`, { cause })
  }
}

function print(text: string): 0 {
  process.stdout.write(text)
  return 0
}

/** What comes from a file or a service must not move the cursor, nor write lines that look like ours. */
function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

function explain(error: unknown): number {
  const message = visible(error instanceof Error ? error.message : String(error))
  if (error instanceof CountersignError) process.stderr.write(`${visible(error.code)}: ${message}\n`)
  else
    process.stderr.write(`countersign: ${message}\n${error instanceof UsageError ? 'See countersign --help.\n' : ''}`)
  return error instanceof UsageError ? 2 : 1
}
