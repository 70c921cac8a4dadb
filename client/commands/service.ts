// `countersign keys`, `ask` and `recover`: the keys of a service, the terms of a verification, and a stored result.
import { readUrl, UsageError, visible } from '../arguments.ts'
import { CountersignError, createIdempotencyKey } from '../client.ts'
import type { PurchaseResult } from '../result.ts'
import { command } from './command.ts'
import { fetchEvidence } from './evidence.ts'
import { checkNew, writeNew } from './files.ts'
import { readInput } from './input-file.ts'
import { json, note, print } from './output.ts'
import { openClient } from './patience.ts'
import { checkRecoveryToken } from './secret-file.ts'

export const keys = command({
  summary: 'print the keys a service publishes',
  operands: ['BASE_URL'],
  about: 'Prints the options --pin and --vkey on standard error, ready to be compared and used.',
  examples: ['countersign keys https://service.example > keys.json'],
  options: {},
  async run([baseUrl = ''], options) {
    const { keys } = await openClient({ baseUrl: readUrl(baseUrl) }).getKeys()
    print(json({ keys }))
    if (options.json) return 0
    const active = keys.filter(({ status }) => status === 'active')
    const pins = active.filter(({ use }) => use === 'receipt').map((key) => `--pin ${key.key_id}:${key.pubkey_hex}`)
    const vkeys = active.filter(({ vkey }) => vkey).map(({ vkey }) => `--vkey '${vkey}'`)
    note(`Compare these with a source independent of this service before you trust them. To pin them:\n`)
    for (const pin of [...pins, ...vkeys]) note(`  ${visible(pin)}\n`)
    return 0
  },
})

export const recover = command({
  summary: 'print a result that was paid for, byte for byte',
  operands: ['BASE_URL', 'REQUEST_ID'],
  usage: '--token FILE [--evidence FILE]',
  examples: [
    'countersign recover https://service.example REQUEST_ID --token token.txt > result.json',
    'countersign recover https://service.example REQUEST_ID --token token.txt --evidence package.wacz > result.json',
  ],
  options: {
    token: {
      type: 'string',
      value: 'FILE',
      help: 'the recovery token that came with the purchase; - reads standard input',
    },
    evidence: {
      type: 'string',
      isWritten: true,
      value: 'FILE',
      help: 'also writes the evidence package, for countersign replay; the file must not exist yet',
    },
  },
  async run([baseUrl = '', requestId = ''], { token, evidence }) {
    if (token === undefined) throw new UsageError('recover needs --token FILE, which holds the recovery token.')
    const service = openClient({ baseUrl: readUrl(baseUrl) })
    await checkNew(evidence)
    const recoveryToken = checkRecoveryToken(token, (await readInput(token)).toString().trim())
    const { bytes, result } = await service.recover<PurchaseResult>(requestId, recoveryToken)
    print(bytes)
    if (evidence !== undefined) {
      const data = await fetchEvidence(readUrl(baseUrl), { ...result, request_id: requestId }, recoveryToken)
      await writeNew(evidence, data, 0o600)
    }
    return 0
  },
})

export const ask = command({
  summary: 'print the terms of one verification; pays nothing',
  operands: ['BASE_URL'],
  usage: '--source URL --claim TEXT',
  examples: ["countersign ask https://service.example --source https://example.org/ --claim 'It says so.' --dry-run"],
  options: {
    source: { type: 'string', value: 'URL', help: 'the page, https only' },
    claim: { type: 'string', value: 'TEXT', help: 'the claim to check against the page' },
    'dry-run': { type: 'boolean', help: 'send nothing; print the request and the published price' },
  },
  async run([baseUrl = ''], options) {
    const { source, claim } = options
    if (source === undefined || claim === undefined) throw new UsageError('ask needs --source and --claim.')
    const service = openClient({ baseUrl: readUrl(baseUrl) })
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
  },
})

function printTerms(idempotencyKey: string, { requestId, paymentRequired }: CountersignError): 0 {
  const terms = { idempotency_key: idempotencyKey, request_id: requestId, payment_required: paymentRequired }
  return print(json(terms))
}
