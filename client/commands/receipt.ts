// `countersign receipt`: digests signed into the public chain.
import { createHash } from 'node:crypto'
import { UsageError } from '../arguments.ts'
import type { Attestation } from '../chain/attestation.ts'
import { type CommandGroup, command } from './command.ts'
import { bytesOf } from './input-file.ts'
import { fields, table, timeOf } from './tables.ts'
import { ACCOUNT, answer, collect, LIMIT, openAccount, openService, readWhole, SERVICE } from './toolkit.ts'

const PAGE = 1000

function describe({ attestation }: { attestation: Attestation }): string {
  const { serial, subject_sha256, label, requested_by, ts_ms, receipt_hash } = attestation
  return fields({ serial, digest: subject_sha256, label, 'made for': requested_by, at: timeOf(ts_ms), receipt_hash })
}

const create = command({
  summary: 'a receipt for a digest, or for the digest of a file',
  operands: ['[SHA256]'],
  usage: '[--file FILE]',
  about: `The chain is public: the digest, the label and your handle can be read by all. A file itself is not sent. The receipt
proves that the digest was submitted, and when.`,
  examples: [
    "countersign receipt create --file report.pdf --label 'report of May' --json > receipt.json",
    'countersign verify receipt.json --keys keys.json',
  ],
  options: {
    ...ACCOUNT,
    file: { type: 'string', value: 'FILE', help: 'the file whose digest is signed; - reads standard input' },
    label: { type: 'string', value: 'TEXT', help: 'a public label, up to 200 characters' },
    'idempotency-key': {
      type: 'string',
      value: 'KEY',
      help: 'a repeat with the same key and digest gets the same receipt',
    },
  },
  async run([digest], options) {
    const { file, label, 'idempotency-key': idempotencyKey } = options
    if ((digest === undefined) === (file === undefined)) throw new UsageError('Give either SHA256 or --file FILE.')
    if (digest !== undefined && !/^[0-9a-f]{64}$/.test(digest))
      throw new UsageError(`${digest} is not a SHA-256 digest: 64 lowercase hex characters.`)
    const account = await openAccount(options)
    const subject_sha256 = digest ?? (await digestOf(file ?? ''))
    const receipt = await account.createReceipt({ subject_sha256, label }, { idempotencyKey })
    return answer(receipt, options.json, () => describe(receipt))
  },
})

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of bytesOf(file)) hash.update(chunk)
  return hash.digest('hex')
}

const show = command({
  summary: 'any receipt, with the proof that it is in the chain',
  operands: ['SERIAL'],
  about: 'Needs no account: the chain is public.',
  examples: ['countersign receipt show 42 --json > receipt.json && countersign verify receipt.json --keys keys.json'],
  options: {
    ...SERVICE,
    tree: {
      type: 'string',
      value: 'SIZE',
      help: 'prove it in the tree with this number of receipts; default: the current one',
    },
  },
  async run([serial = ''], options) {
    const input = {
      serial: readWhole('SERIAL', serial),
      tree_size: options.tree === undefined ? undefined : readWhole('--tree', options.tree),
    }
    const receipt = await openService(options).getReceipt(input)
    return answer(receipt, options.json, () => describe(receipt))
  },
})

const list = command({
  summary: 'the receipts of the account, newest first',
  operands: [],
  examples: ['countersign receipt list --limit 10'],
  options: { ...ACCOUNT, ...LIMIT },
  async run(_, options) {
    const limit = readWhole('--limit', options.limit)
    const account = await openAccount(options)
    const { rows, next } = await collect(limit, PAGE, async (limit, before) => {
      const page = await account.listReceipts({ limit, before: before === undefined ? undefined : Number(before) })
      return { rows: page.receipts, next: page.next }
    })
    return answer({ receipts: rows, next }, options.json, () =>
      table(rows, {
        serial: ({ serial }) => serial,
        at: ({ ts_ms }) => timeOf(ts_ms),
        digest: ({ subject_sha256 }) => subject_sha256,
        label: ({ label }) => label,
      }),
    )
  },
})

export const receipt: CommandGroup = {
  summary: 'digests signed into the public chain',
  commands: { create, show, list },
  examples: ["countersign receipt create --file report.pdf --label 'report of May' --json > receipt.json"],
}
