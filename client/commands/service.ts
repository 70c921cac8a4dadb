// `countersign keys`, `ask` and `recover`: what a service publishes, asks for a verification, and keeps of one.
import { readUrl, UsageError, visible } from '../arguments.ts'
import { Countersign, CountersignError, createIdempotencyKey } from '../client.ts'
import { readInput } from './files.ts'
import type { Options } from './options.ts'
import { json, note, print } from './output.ts'

export async function keys(baseUrl: string, options: Options): Promise<number> {
  const { keys } = await new Countersign({ baseUrl: readUrl(baseUrl) }).getKeys()
  if (!Array.isArray(keys)) throw new Error('The service published no list of keys.')
  print(json({ keys }))
  if (options.json) return 0
  const active = keys.filter(({ status }) => status === 'active')
  const pins = active.filter(({ use }) => use === 'receipt').map((key) => `--pin ${key.key_id}:${key.pubkey_hex}`)
  const vkeys = active.filter(({ vkey }) => vkey).map(({ vkey }) => `--vkey '${vkey}'`)
  note(`Compare these with a source independent of this service before you trust them. To pin them:\n`)
  for (const pin of [...pins, ...vkeys]) note(`  ${visible(pin)}\n`)
  return 0
}

/** The exact bytes of a result that was paid for. */
export async function recover(baseUrl: string, requestId: string, { token }: Options): Promise<number> {
  if (token === undefined) throw new UsageError('recover needs --token FILE, which holds the recovery token.')
  const service = new Countersign({ baseUrl: readUrl(baseUrl) })
  const { bytes } = await service.recover(requestId, (await readInput(token)).toString().trim())
  return print(bytes)
}

export async function ask(baseUrl: string, options: Options): Promise<number> {
  const { source, claim } = options
  if (source === undefined || claim === undefined) throw new UsageError('ask needs --source and --claim.')
  const service = new Countersign({ baseUrl: readUrl(baseUrl) })
  const request = { source_url: source, claim }
  if (options['dry-run']) {
    const { price, networks, payment_mode } = await service.getCapabilities()
    return print(json({ request, price, networks, payment_mode }))
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
  return print(json(terms))
}
