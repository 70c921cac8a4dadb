// Operations on single receipts: create one, get one with its proof, list an account's own.
import { z } from 'zod'
import { dailyLimit, LIMITS } from '../accounts/tiers.ts'
import { AppError } from '../errors.ts'
import { attestation } from '../interface/attestation.ts'
import { codePoints, isPlainLine, PLAIN_LINE, sha256Hex } from '../interface/scalars.ts'
import {
  type AccountCall,
  defineAccountExchange,
  defineAccountOperation,
  defineExchange,
  Reply,
  refuseOverflow,
  wholeNumber,
} from '../operation.ts'
import { listAttestations, proveReceipt } from './archive.ts'
import { Refused } from './chain.ts'
import type { Head } from './head.ts'
import type { Reader } from './reader.ts'
import { findByKey, type SubmissionRefusal, submissionKey, submissions } from './submissions.ts'

export const serial = wholeNumber(1)

export const inclusion = z.strictObject({
  leaf_index: z.int().min(0),
  tree_size: z.int().min(1),
  hashes: z.array(sha256Hex),
})

const receiptOutput = z.strictObject({
  attestation,
  inclusion: inclusion.describe('RFC 6962 proof that the receipt is in the tree of tree_size leaves.'),
  checkpoint: z.string().describe('C2SP checkpoint of a tree that holds it.'),
})

const label = z
  .string()
  .refine((text) => codePoints(text) <= 200, 'must have at most 200 characters')
  .refine(isPlainLine, PLAIN_LINE)
  .meta({ maxLength: 200 })
  .describe('Public, like the whole chain. Never put private data here.')

const receiptInput = z.strictObject({ subject_sha256: sha256Hex, label: label.nullish() })

export const createReceipt = defineAccountExchange({
  name: 'create_receipt',
  summary: 'Append a signed receipt of a digest to the chain',
  description:
    'Attests that you submitted the digest and when, not that the event behind it happened. With an Idempotency-Key a ' +
    'repeat answers 200 with the same receipt.',
  method: 'POST',
  path: '/v1/receipt',
  family: 'control',
  access: 'account',
  scope: 'receipt:write',
  budget: 'receipts',
  statuses: [201, 200],
  errors: ['invalid_idempotency_key', 'idempotency_conflict', 'daily_limit', 'capacity_exceeded'],
  kind: 'exchange',
  input: receiptInput,
  output: receiptOutput,
  async run(input, call) {
    const { api, caller, options } = call
    const key = options.idempotencyKey === undefined ? undefined : readKey(options.idempotencyKey, input)
    const item = { accountId: caller.accountId, dailyLimit: LIMITS[caller.tier].receipts_per_day, key }
    const entry = {
      subjectSha256: input.subject_sha256,
      label: input.label ?? null,
      requestedBy: caller.handle,
      participant: { kind: submissions, item },
    }
    const appended = await api.chain.append(entry).catch(refuseOverflow)
    if (appended instanceof Refused) return answerRefused(appended.reason, key?.hash, call)
    const body = {
      attestation: appended.attestation,
      inclusion: appended.inclusion(),
      checkpoint: appended.checkpoint,
    }
    return new Reply(body, { status: 201 })
  },
})

/** No label and the label null are the same body. */
function readKey(given: string, { label, ...body }: z.output<typeof receiptInput>) {
  if (/^[\x21-\x7e]{1,255}$/.test(given)) return submissionKey(given, { ...body, ...(label != null && { label }) })
  throw new AppError('invalid_idempotency_key', 'Idempotency-Key must be 1 to 255 visible ASCII characters here.')
}

async function answerRefused(reason: SubmissionRefusal, keyHash: string | undefined, { api, caller }: AccountCall) {
  if (reason === 'conflict')
    throw new AppError('idempotency_conflict', 'This Idempotency-Key was used with another request body.')
  if (reason === 'daily_limit') throw dailyLimit('receipts_per_day', caller.tier)
  const number = await findByKey(api.db, caller.accountId, keyHash ?? '')
  if (number === null) throw new Error('an idempotency key names a receipt that does not exist')
  return describeReceipt(api.reader, number, await api.reader.head())
}

/** How many receipts there are, as the end of a sentence. */
export function lengthInWords(count: number): string {
  if (count === 0) return 'the chain has no receipts yet'
  return count === 1 ? 'the chain has one receipt so far' : `the chain has ${count} receipts so far`
}

/** The answer of `get_receipt`. Throws AppError `not_found`. */
export async function describeReceipt(reader: Reader, number: number, head: Head, size = head.serial) {
  const within = size === head.serial ? lengthInWords(size) : `the tree that was asked for has ${size}`
  const none = () => new AppError('not_found', `There is no receipt ${number}: ${within}.`)
  if (number > size) throw none()
  // At once, because both may have to wait for the disk.
  const [found, proved] = await Promise.all([
    reader.attestation(number),
    proveReceipt(reader.nodes(head), number, size),
  ])
  if (!found) throw none()
  return { attestation: found, inclusion: proved, checkpoint: head.checkpoint }
}

export const getReceipt = defineExchange({
  name: 'get_receipt',
  summary: 'One receipt, with a proof against the head or an older tree',
  method: 'GET',
  path: '/v1/receipt/{serial}',
  family: 'control',
  access: 'public',
  errors: ['not_found'],
  kind: 'exchange',
  input: z.strictObject({ serial, tree_size: serial.optional() }),
  output: receiptOutput,
  async run(input, { api }) {
    const head = await api.reader.head()
    if ((input.tree_size ?? 0) > head.serial)
      throw new AppError('invalid_request', `tree_size is beyond the head, which is ${head.serial}.`)
    return describeReceipt(api.reader, input.serial, head, input.tree_size ?? head.serial)
  },
})

const MAX_LIST = 1000

export const listReceipts = defineAccountOperation({
  name: 'list_receipts',
  summary: "The account's own receipts, newest first",
  description:
    'Receipts that the account asked for. Those of its leases and alerts, which the service makes by itself, are not among them.',
  method: 'GET',
  path: '/v1/receipt',
  family: 'control',
  access: 'account',
  scope: 'account:read',
  kind: 'transaction',
  input: z.strictObject({
    limit: wholeNumber(1, MAX_LIST).prefault(100),
    before: serial.optional().describe('`next` of the previous page.'),
  }),
  output: z.strictObject({
    receipts: z.array(attestation).max(MAX_LIST),
    next: z.int().nullable().describe('Give it as `before` to get the next page; null at the end.'),
  }),
  async run({ limit, before }, { tx, caller }) {
    const found = await listAttestations(tx, { requestedBy: caller.handle, before, limit: limit + 1 })
    const shown = found.slice(0, limit)
    const next = found.length > limit ? (shown.at(-1)?.serial ?? null) : null
    return Reply.json(`{"receipts":[${shown.map(({ text }) => text).join(',')}],"next":${next}}`)
  },
})
