#!/usr/bin/env node
// The command line: verifies files offline, and looks at what a service publishes. Runs in Node only.
import { createPublicKey, type KeyObject, verify as verifySignature } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readFile, rename, writeFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  checkKeys,
  checkVerifierKey,
  progressBar,
  readPin,
  readPoint,
  readSeconds,
  readTree,
  readUrl,
  UsageError,
  visible,
} from './arguments.ts'
import { Countersign, CountersignError, createIdempotencyKey } from './client.ts'
import { verifyDocument } from './document.ts'
import { download } from './download.ts'
import { type PinnedKey, parseJson, type SignatureCheck, trustIntroduced } from './verification.ts'
import { ALARMS, lookAndKeep, type PinStore } from './watch.ts'

const HELP = `countersign: check what a source verification service has signed

  countersign verify FILE (--keys FILE | --pin KEYID:HEX)...   check a file offline; - reads standard input
  countersign export BASE_URL FILE                             the whole chain into a file; run again to go on
  countersign watch BASE_URL STATE_FILE                        keep the head pinned; report a fork or a rollback
  countersign keys BASE_URL                                    print the keys a service publishes
  countersign ask BASE_URL --source URL --claim TEXT           print the terms of one verification; pays nothing

verify takes a completed result, a receipt, one attestation, an export, or consecutive attestations (an array, or a
page of /v1/chain), prints one line per check, and needs the signing key from a source you trust independently:

  --keys FILE          trusted keys as /v1/keys lists them
  --pin KEYID:HEX      one trusted key; may be repeated
  --introduced FILE    keys as /v1/keys lists them, trusted only where a trusted key introduces them
  --vkey VKEY          receipt, export: the trusted verifier key of the log's checkpoints
  --tree SIZE:ROOT     receipt: a tree that was pinned before, as a checkpoint names it; the root in hex
  --from SERIAL:HASH   attestations: the receipt before the first one
  --through SERIAL:HASH  export, attestations: a receipt that was pinned before; may be repeated
  --head SERIAL:HASH   export, attestations: the receipt it must end with
  --last-signature     export, attestations: check the last signature, which covers the rest through the links

export pins the head it begins with, and goes on where a file stops:

  --head SERIAL:HASH   end at this receipt instead

watch:

  --vkey VKEY          the verifier key, from a source you trust, at the first run or in place of the one that is kept;
                       without it the first run takes the service's word
  --once               look once and exit
  --interval SECONDS   between two looks; 60

ask:

  --source URL         the page, https only
  --claim TEXT         the claim to hold against it
  --dry-run            send nothing; print the request and the published price

  -h, --help           this text

Exit status: 0 good, 1 bad or refused, 2 wrong usage; watch: 1 an alarm, 3 the service could not be asked.
`

const OPTIONS = {
  keys: { type: 'string', multiple: true },
  pin: { type: 'string', multiple: true },
  introduced: { type: 'string', multiple: true },
  vkey: { type: 'string' },
  from: { type: 'string' },
  through: { type: 'string', multiple: true },
  tree: { type: 'string' },
  head: { type: 'string' },
  'last-signature': { type: 'boolean', default: false },
  once: { type: 'boolean', default: false },
  interval: { type: 'string', default: '60' },
  source: { type: 'string' },
  claim: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const

type Options = ReturnType<typeof readArguments>['values']
interface Command {
  operands: number
  run(operands: string[], options: Options): Promise<number>
}

const commands: Record<string, Command> = {
  verify: { operands: 1, run: ([file = ''], options) => verify(file, options) },
  export: { operands: 2, run: ([url = '', file = ''], options) => exportTo(url, file, options) },
  watch: { operands: 2, run: ([url = '', file = ''], options) => watch(url, file, options) },
  keys: { operands: 1, run: ([url = '']) => keys(url) },
  ask: { operands: 1, run: ([url = ''], options) => ask(url, options) },
}

const knownKeys = new Map<string, KeyObject>()
/** Thirty times as fast as the check that runs in browsers, and it refuses the same signatures. */
const signatureCheck: SignatureCheck = (message, signature, publicKey) => {
  const x = Buffer.from(publicKey).toString('base64url')
  const key = knownKeys.get(x) ?? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  knownKeys.set(x, key)
  return verifySignature(null, message, key, signature)
}

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  try {
    const { values, positionals } = readArguments(args)
    if (values.help) return print(HELP)
    const [name = '', ...operands] = positionals
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (!command) throw new UsageError(name ? `There is no command ${name}.` : 'A command is missing.')
    if (operands.length !== command.operands)
      throw new UsageError(`${name} takes exactly ${command.operands === 1 ? 'one operand' : 'two operands'}.`)
    return await command.run(operands, values)
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

async function verify(file: string, options: Options): Promise<number> {
  const pinned = [
    ...(await Promise.all((options.keys ?? []).map(readKeys))).flat(),
    ...(options.pin ?? []).map(readPin),
  ]
  checkKeys(pinned)
  checkVerifierKey(options.vkey)
  const introduced = (await Promise.all((options.introduced ?? []).map(readKeys))).flat()
  const { ok, checks } = await verifyDocument(bytesOf(file), {
    keys: trustIntroduced(introduced, pinned, { signatureCheck }),
    vkey: options.vkey,
    from: options.from === undefined ? undefined : readPoint('--from', options.from, 0),
    through: options.through?.map((point) => readPoint('--through', point)),
    head: options.head === undefined ? undefined : readPoint('--head', options.head),
    tree: options.tree === undefined ? undefined : readTree('--tree', options.tree),
    signatures: options['last-signature'] ? 'last' : 'every',
    signatureCheck,
  })
  for (const { name, ok, detail } of checks)
    print(`${ok ? 'ok  ' : 'FAIL'} ${name}${detail ? `: ${visible(detail)}` : ''}\n`)
  print(ok ? 'good\n' : 'BAD\n')
  return ok ? 0 : 1
}

async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  const chunks = (file === '-' ? process.stdin : createReadStream(file))[Symbol.asyncIterator]()
  const next = () => readable(file, () => chunks.next())
  for (let chunk = await next(); !chunk.done; chunk = await next()) yield chunk.value as Buffer
}

/** A file that cannot be read, or has other contents, is a UsageError. */
async function readable<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    const ofFile = cause instanceof SyntaxError || typeof (cause as NodeJS.ErrnoException).syscall === 'string'
    if (ofFile) throw new UsageError(`Cannot use ${file}: ${(cause as Error).message}`, { cause })
    throw cause
  }
}

async function exportTo(baseUrl: string, file: string, options: Options): Promise<number> {
  const service = new Countersign({ baseUrl: readUrl(baseUrl) })
  const head = options.head === undefined ? undefined : readPoint('--head', options.head)
  await using handle = await readable(file, () => open(file, 'a+'))
  const target = {
    read: () => handle.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>,
    truncate: (bytes: number) => handle.truncate(bytes),
    append: (text: string) => handle.appendFile(text),
  }
  const bar = (serial: number, all: number) => void process.stderr.write(`\r${progressBar(serial, all)}`)
  const onProgress = process.stderr.isTTY ? bar : undefined
  const { serial, receipt_hash } = await readable(file, () => download(service, target, { head, onProgress }))
  if (onProgress) process.stderr.write('\n')
  return print(`${serial}:${receipt_hash}\n`)
}

async function watch(baseUrl: string, file: string, options: Options): Promise<number> {
  const service = new Countersign({ baseUrl: readUrl(baseUrl) })
  const seconds = readSeconds('--interval', options.interval)
  checkVerifierKey(options.vkey)
  const store = {
    load: () => readFile(file, 'utf8').catch((error) => (error.code === 'ENOENT' ? null : Promise.reject(error))),
    async save(text: string) {
      await writeFile(`${file}.new`, text)
      await rename(`${file}.new`, file)
    },
    async keepEvidence(text: string) {
      const path = `${file}.evidence-${Date.now()}.json`
      await writeFile(path, text)
      process.stderr.write(`What was pinned and what was seen are kept in ${path}.\n`)
    },
  }
  for (;;) {
    const status = await readable(file, () => lookOnce(service, store, options.vkey))
    if (options.once || status === 1) return status
    await pause(seconds * 1000)
  }
}

async function lookOnce(service: Countersign, store: PinStore, vkey: string | undefined): Promise<number> {
  try {
    const { verdict, detail } = await lookAndKeep(service, store, { vkey, signatureCheck })
    print(`${new Date().toISOString()} ${verdict}: ${visible(detail)}\n`)
    return ALARMS.has(verdict) ? 1 : 0
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error
    explain(error)
    return 3
  }
}

async function keys(baseUrl: string): Promise<number> {
  const published = await new Countersign({ baseUrl: readUrl(baseUrl) }).keys()
  print(`${JSON.stringify({ keys: published }, null, 2)}\n`)
  process.stderr.write('Compare these with a source independent of this service before you trust them.\n')
  return 0
}

async function ask(baseUrl: string, options: Options): Promise<number> {
  const { source, claim } = options
  if (source === undefined || claim === undefined) throw new UsageError('ask needs --source and --claim.')
  const service = new Countersign({ baseUrl: readUrl(baseUrl) })
  const request = { source_url: source, claim }
  if (options['dry-run']) {
    const { price, networks, payment_mode } = await service.getCapabilities()
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

function explain(error: unknown): number {
  const message = visible(error instanceof Error ? error.message : String(error))
  if (error instanceof CountersignError) process.stderr.write(`${visible(error.code)}: ${message}\n`)
  else
    process.stderr.write(`countersign: ${message}\n${error instanceof UsageError ? 'See countersign --help.\n' : ''}`)
  return error instanceof UsageError ? 2 : 1
}
