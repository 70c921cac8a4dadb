// What may be asked of the receipts: to make one, and to check all of them.
import { z } from 'zod'
import { LIMITS, secondsToMidnightUtc } from '../control/tiers.ts'
import { type Tx, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { type AccountCall, defineAccountExchange, defineOperation, Reply } from '../operation.ts'
import { attestation, codePoints, sha256Hex } from '../verification/result.ts'
import { exportRange, findAttestation, proveConsistency, proveReceipt } from './archive.ts'
import { findHead, type Head, Refused } from './chain.ts'
import { verifierKey } from './checkpoint.ts'
import { listKeys, publicKey } from './keys.ts'
import { findByKey, type SubmissionRefusal, submissionKey, submissions } from './submissions.ts'
import { rootOfFrontier } from './tree.ts'

const serial = z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER)

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
  .refine((text) => text.isWellFormed() && codePoints(text) <= 200, 'must have at most 200 characters')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  .refine((text) => !/[\u0000-\u001f\u007f-\u009f]/.test(text), 'must not hold control characters')
  .meta({ maxLength: 200 })
  .describe('Public: the chain is. Never put private data here.')

export const createReceipt = defineAccountExchange({
  name: 'create_receipt',
  summary: 'Sign a digest into the chain',
  description:
    'Attests that you submitted the digest and when, not that anything behind it happened. With an Idempotency-Key a ' +
    'repeat answers 200 with the same receipt.',
  method: 'POST',
  path: '/v1/receipt',
  family: 'control',
  access: 'account',
  scope: 'receipt:write',
  statuses: [201, 200],
  errors: ['invalid_idempotency_key', 'idempotency_conflict', 'daily_limit'],
  kind: 'exchange',
  input: z.strictObject({ subject_sha256: sha256Hex, label: label.nullish() }),
  output: receiptOutput,
  async run(input, call) {
    const { api, caller, credentials } = call
    const key = credentials.idempotencyKey === undefined ? undefined : readKey(credentials.idempotencyKey, input)
    const dailyLimit = LIMITS[caller.tier].receipts_per_day
    const appended = await api.chain.append({
      subjectSha256: input.subject_sha256,
      label: input.label ?? null,
      requestedBy: caller.handle,
      companion: { kind: submissions, item: { accountId: caller.accountId, dailyLimit, key } },
    })
    if (appended instanceof Refused) return answerRefused(appended.reason, dailyLimit, key?.hash, call)
    const body = {
      attestation: appended.attestation,
      inclusion: appended.inclusion(),
      checkpoint: appended.checkpoint,
    }
    return new Reply(body, { status: 201 })
  },
})

function readKey(given: string, body: unknown) {
  if (/^[\x21-\x7e]{1,255}$/.test(given)) return submissionKey(given, body)
  throw new AppError('invalid_idempotency_key', 'Idempotency-Key must be 1 to 255 visible ASCII characters here.')
}

async function answerRefused(
  reason: SubmissionRefusal,
  dailyLimit: number,
  keyHash: string | undefined,
  { api, caller }: AccountCall,
) {
  if (reason === 'conflict')
    throw new AppError('idempotency_conflict', 'This Idempotency-Key was used with another request body.')
  if (reason === 'daily_limit')
    throw new AppError('daily_limit', `The ${caller.tier} tier has ${dailyLimit} receipts a day (UTC).`, {
      headers: { 'retry-after': String(secondsToMidnightUtc(new Date())) },
    })
  return transact(
    api.db,
    async (tx) => {
      const number = await findByKey(tx, caller.accountId, keyHash ?? '')
      if (number === null) throw new Error('a receipt was repeated that is not there')
      return describeReceipt(tx, number, await findHead(tx))
    },
    { readOnly: true },
  )
}

async function describeReceipt(tx: Tx, number: number, head: Head, size = head.serial) {
  const found = await findAttestation(tx, number)
  if (!found || number > size) throw new AppError('not_found', `There is no receipt ${number} in a tree of ${size}.`)
  return { attestation: found, inclusion: await proveReceipt(tx, number, size), checkpoint: head.checkpoint }
}

export const getReceipt = defineOperation({
  name: 'get_receipt',
  summary: 'One receipt, with a proof against the head or an older tree',
  method: 'GET',
  path: '/v1/receipt/{serial}',
  family: 'control',
  access: 'public',
  errors: ['not_found'],
  kind: 'transaction',
  input: z.strictObject({ serial, tree_size: serial.optional() }),
  output: receiptOutput,
  async run(input, { tx }) {
    const head = await findHead(tx)
    if ((input.tree_size ?? 0) > head.serial)
      throw new AppError('invalid_request', `tree_size is beyond the head, which is ${head.serial}.`)
    return describeReceipt(tx, input.serial, head, input.tree_size ?? head.serial)
  },
})

export const getChainHead = defineOperation({
  name: 'get_chain_head',
  summary: 'The end of the chain, to be pinned',
  description:
    'Pin serial, receipt_hash and checkpoint. A later head must come with a consistency proof, or the range.',
  method: 'GET',
  path: '/v1/chain-head',
  family: 'control',
  access: 'public',
  kind: 'transaction',
  input: z.strictObject({}),
  output: z.strictObject({
    serial: z.int().min(0),
    receipt_hash: sha256Hex,
    key_id: z.int().nullable(),
    ts_ms: z.int().nullable(),
    tree_size: z.int().min(0),
    root_hash: sha256Hex,
    checkpoint: z.string().describe('C2SP signed note; empty before the first receipt.'),
    vkey: z.string().describe('Verifier key of the checkpoint, as transparency-log tools take it.'),
  }),
  async run(_input, { tx, api }) {
    const head = await findHead(tx)
    const last = head.serial === 0 ? null : await findAttestation(tx, head.serial)
    const keys = await listKeys(tx)
    const signer = keys.find((key) => key.use === 'checkpoint' && key.status === 'active')
    return new Reply(
      {
        serial: head.serial,
        receipt_hash: head.receipt_hash,
        key_id: last?.key_id ?? null,
        ts_ms: last?.ts_ms ?? null,
        tree_size: head.serial,
        root_hash: rootOfFrontier(head.frontier).toString('hex'),
        checkpoint: head.checkpoint,
        vkey: verifierKey(api.chain.origin, signer?.pubkey_hex ?? ''),
      },
      { headers: { 'cache-control': 'no-store' } },
    )
  },
})

const MAX_EXPORT = 1000

export const getChain = defineOperation({
  name: 'get_chain',
  summary: 'Export a range of receipts, at most 1000',
  method: 'GET',
  path: '/v1/chain',
  family: 'control',
  access: 'public',
  kind: 'transaction',
  input: z.strictObject({ from: serial.optional(), to: serial.optional() }),
  output: z.strictObject({
    from: z.int(),
    to: z.int(),
    head_serial: z.int(),
    attestations: z.array(attestation).max(MAX_EXPORT),
  }),
  async run(input, { tx }) {
    const head = await findHead(tx)
    const from = input.from ?? 1
    const asked = input.to ?? Math.min(from + MAX_EXPORT - 1, Math.max(from, head.serial))
    if (from > asked) throw new AppError('invalid_request', 'from must not be above to.')
    if (asked - from >= MAX_EXPORT) throw new AppError('invalid_request', `At most ${MAX_EXPORT} receipts at a time.`)
    const to = Math.min(asked, head.serial)
    const attestations = await exportRange(tx, from, to)
    const text = `{"from":${from},"to":${to},"head_serial":${head.serial},"attestations":${attestations}}`
    return Reply.json(text, { 'cache-control': 'no-cache' })
  },
})

export const getConsistency = defineOperation({
  name: 'get_consistency',
  summary: 'Proof that one head continues an older one',
  method: 'GET',
  path: '/v1/consistency',
  family: 'control',
  access: 'public',
  kind: 'transaction',
  input: z.strictObject({ from: serial, to: serial.optional() }),
  output: z.strictObject({ from: z.int(), to: z.int(), hashes: z.array(sha256Hex), checkpoint: z.string() }),
  async run(input, { tx }) {
    const head = await findHead(tx)
    const to = input.to ?? head.serial
    if (to > head.serial) throw new AppError('invalid_request', `to is beyond the head, which is ${head.serial}.`)
    if (input.from > to) throw new AppError('invalid_request', 'from must not be above to.')
    return { from: input.from, to, hashes: await proveConsistency(tx, input.from, to), checkpoint: head.checkpoint }
  },
})

export const getKeys = defineOperation({
  name: 'get_keys',
  summary: 'Every public key the service ever signed with',
  description: 'Pin these through a channel you trust; a key that comes with a receipt proves nothing by itself.',
  method: 'GET',
  path: '/v1/keys',
  family: 'control',
  access: 'public',
  kind: 'transaction',
  input: z.strictObject({}),
  output: z.strictObject({ keys: z.array(publicKey) }),
  run: async (_input, { tx }) => ({ keys: [...(await listKeys(tx))] }),
})
