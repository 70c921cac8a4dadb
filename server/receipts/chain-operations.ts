// Operations on the chain as a whole: its head, ranges of receipts, consistency proofs, keys.
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { attestation } from '../interface/attestation.ts'
import { sha256Hex } from '../interface/scalars.ts'
import { defineExchange, defineOperation, Reply } from '../operation.ts'
import { isNotModified } from '../preconditions.ts'
import { findAttestations, proveConsistency } from './archive.ts'
import { NOTE_ED25519, noteKeyId, originOf, readNote, verifierKey } from './checkpoint.ts'
import { findHead, type Head } from './head.ts'
import { listKeys, publicKey } from './keys.ts'
import { serial } from './operations.ts'
import { PAGE_SIZE, type Range } from './pages.ts'
import { rootOfFrontier } from './tree.ts'

export const getChainHead = defineExchange({
  name: 'get_chain_head',
  summary: 'The head of the chain, for pinning',
  description:
    'Keep serial, receipt_hash and checkpoint. A later head must continue them: get_consistency proves it in a ' +
    'few hashes, and so do the receipts in between, from get_chain.',
  method: 'GET',
  path: '/v1/chain-head',
  family: 'control',
  access: 'public',
  kind: 'exchange',
  input: z.strictObject({}),
  output: z.strictObject({
    serial: z.int().min(0),
    receipt_hash: sha256Hex,
    key_id: z.int().nullable(),
    ts_ms: z.int().nullable(),
    tree_size: z.int().min(0),
    root_hash: sha256Hex,
    checkpoint: z.string().describe('C2SP signed note; empty before the first receipt.'),
    vkey: z.string().describe('Verifier key of the checkpoint, in the form of transparency-log tools.'),
  }),
  async run(_input, { api: { reader, chain } }) {
    const head = await reader.head()
    const last = head.serial === 0 ? null : await reader.attestation(head.serial)
    return new Reply(
      {
        serial: head.serial,
        receipt_hash: head.receipt_hash,
        key_id: last?.key_id ?? null,
        ts_ms: last?.ts_ms ?? null,
        tree_size: head.serial,
        root_hash: rootOfFrontier(head.frontier).toString('hex'),
        checkpoint: head.checkpoint,
        vkey: vkeyOf(head.checkpoint, await reader.checkpointKeys(head), chain.origin),
      },
      { headers: { 'cache-control': 'no-store' } },
    )
  },
})

const isCheckpointKey = ({ use }: { use: string }) => use === 'checkpoint'

/**
 * Verifier key of the newest key that signed this checkpoint. A key that was just introduced has not signed one yet.
 * @param pubkeys newest first
 */
function vkeyOf(checkpoint: string, pubkeys: readonly string[], origin: string): string {
  const name = originOf(checkpoint) ?? origin
  const signatures = readNote(checkpoint)?.signatures ?? []
  const signer = pubkeys.find((hex) => {
    const keyId = noteKeyId(name, NOTE_ED25519, Buffer.from(hex, 'hex'))
    return signatures.some((line) => line.name === name && line.keyId.equals(keyId))
  })
  return verifierKey(name, signer ?? pubkeys[0] ?? '')
}

/** For a page that ends at or before the head: receipts never change, so it does not either. */
const IMMUTABLE = 'public, max-age=31536000, immutable'

/** Where a range without `from` begins. */
const FIRST_SERIAL = 1

export const rangeInput = z.strictObject({
  from: serial.prefault(FIRST_SERIAL).describe('Serial of the first receipt.'),
  to: serial
    .optional()
    .describe(`Serial of the last one. By default as far as ${PAGE_SIZE} receipts or the head allow.`),
})

/**
 * The range of an input. `to` is never beyond the head; a range that begins beyond it is empty, and its `to` is `from` - 1.
 * Throws AppError `invalid_request`.
 */
export function resolveRange(input: z.output<typeof rangeInput>, head: Head): Range {
  const { from } = input
  // Numbers beyond the safe ones have gaps: a page could seem longer than it is.
  const asked = input.to ?? Math.min(from + PAGE_SIZE - 1, Number.MAX_SAFE_INTEGER)
  if (from > asked) throw new AppError('invalid_request', 'from must not be above to.')
  if (asked - from >= PAGE_SIZE) throw new AppError('invalid_request', `At most ${PAGE_SIZE} receipts at a time.`)
  return { from, to: Math.max(from - 1, Math.min(asked, head.serial)) }
}

export const getChain = defineExchange({
  name: 'get_chain',
  summary: 'Export a range of receipts, at most 1000',
  description:
    '`to` of the answer says where the range ends: at the head, if you ask for more than there is. If `from` is ' +
    'beyond the head, there are no attestations, and `to` is `from` - 1. Receipts never change, so an answer ' +
    'whose asked `to` is not beyond the head may be cached without limit. Its `head_serial` is the head when it ' +
    'was made.',
  method: 'GET',
  path: '/v1/chain',
  family: 'control',
  access: 'public',
  conditional: true,
  statuses: [200, 304],
  errors: ['precondition_failed'],
  kind: 'exchange',
  input: rangeInput,
  output: z.strictObject({
    from: z.int(),
    to: z.int(),
    head_serial: z.int(),
    attestations: z.array(attestation).max(PAGE_SIZE),
  }),
  async run(input, { api, options }) {
    const head = await api.reader.head()
    const { body, etag } = await api.reader.pages.read(resolveRange(input, head), head)
    const fixed = input.to !== undefined && input.to <= head.serial
    const headers = { 'cache-control': fixed ? IMMUTABLE : 'public, no-cache', ...(etag !== '' && { etag }) }
    if (etag !== '' && isNotModified(options, etag.slice('W/'.length)))
      return Reply.bytes(Buffer.alloc(0), { status: 304, headers })
    return Reply.bytes(body, { headers: { 'content-type': 'application/json; charset=utf-8', ...headers } })
  },
})

export const getConsistency = defineExchange({
  name: 'get_consistency',
  summary: 'Proof that one head continues an older one',
  method: 'GET',
  path: '/v1/consistency',
  family: 'control',
  access: 'public',
  kind: 'exchange',
  input: z.strictObject({ from: serial, to: serial.optional() }),
  output: z.strictObject({ from: z.int(), to: z.int(), hashes: z.array(sha256Hex), checkpoint: z.string() }),
  async run(input, { api }) {
    const head = await api.reader.head()
    const to = input.to ?? head.serial
    if (to > head.serial) throw new AppError('invalid_request', `to is beyond the head, which is ${head.serial}.`)
    if (input.from > to) throw new AppError('invalid_request', 'from must not be above to.')
    const hashes = await proveConsistency(api.reader.nodes(head), input.from, to)
    return { from: input.from, to, hashes, checkpoint: head.checkpoint }
  },
})

const publishedKey = publicKey.extend({
  vkey: z.string().nullable().describe('The verifier key of a checkpoint key, in the form of transparency-log tools.'),
  introduction: attestation
    .nullable()
    .describe(
      'The receipt that introduced this key, signed by the receipt key before it: its subject_sha256 is the SHA-256 of the RFC ' +
        '8785 JSON of {type: "service.signing-key", version: 1, key_id, use, alg, pubkey_hex, first_serial}.',
    ),
})

export const getKeys = defineOperation({
  name: 'get_keys',
  summary: 'Every public key the service has signed with',
  description:
    'Get these keys through a channel that you trust, and keep them: a key that comes with a receipt proves ' +
    'nothing by itself. Each receipt key is valid for its own range of serials, and the receipt key before it ' +
    'introduces it.',
  method: 'GET',
  path: '/v1/keys',
  family: 'control',
  access: 'public',
  kind: 'transaction',
  input: z.strictObject({}),
  output: z.strictObject({ keys: z.array(publishedKey) }),
  async run(_input, { tx, api }) {
    const origin = originOf((await findHead(tx)).checkpoint) ?? api.chain.origin
    const listed = await listKeys(tx)
    const introduced = listed.flatMap(({ introduced_by }) => introduced_by ?? [])
    const introductions = new Map((await findAttestations(tx, introduced)).map((one) => [one?.serial, one]))
    const keys = listed.map((key) => ({
      ...key,
      vkey: isCheckpointKey(key) ? verifierKey(origin, key.pubkey_hex) : null,
      introduction: introductions.get(key.introduced_by ?? undefined) ?? null,
    }))
    return { keys }
  },
})
