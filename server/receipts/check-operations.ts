// Operations that check: whether the service made a receipt, and whether a range of the chain is sound.
import { z } from 'zod'
import { defineExchange } from '../operation.ts'
import { rangeInput, resolveRange } from './chain-operations.ts'
import { checkRange, checkReceipt } from './checks.ts'

const check = z.strictObject({
  name: z.string(),
  ok: z.boolean(),
  detail: z.string().optional().describe('Why it failed.'),
})
const anyObject = z.looseObject({})

export const verifyReceipt = defineExchange({
  name: 'verify_receipt',
  summary: 'Check whether the service made a receipt',
  description:
    'Takes what the service returns: `attestation` alone, with `inclusion` and `checkpoint`, or the whole `receipt` of a ' +
    'purchase. A wrong receipt is an answer with `valid: false`, not an error. This is a convenience; for proof, verify ' +
    "offline with the client's verifier and keys that you pinned before.",
  method: 'POST',
  path: '/v1/receipt/verify',
  family: 'control',
  access: 'public',
  kind: 'exchange',
  input: z.strictObject({
    attestation: anyObject,
    inclusion: anyObject.optional(),
    checkpoint: z.string().optional(),
    envelope: anyObject.optional(),
    canonical_envelope_base64: z.string().optional(),
    verification: z.string().optional().describe('Text of a purchase; not checked.'),
  }),
  output: z.strictObject({
    valid: z.boolean(),
    checks: z
      .array(check)
      .describe(
        'form, receipt_hash, key, signature, chain; envelope, envelope_digest, inclusion, checkpoint where given.',
      ),
  }),
  async run(given, { api }) {
    const checks = await checkReceipt(api, given)
    return { valid: checks.every(({ ok }) => ok), checks }
  },
})

export const verifyChain = defineExchange({
  name: 'verify_chain',
  summary: 'Check a range of the chain, at most 1000 receipts',
  description:
    'The service computes every hash of the range again, follows every link (also the one to the receipt before ' +
    'the range), and checks every signature, time and key. If the range ends at the head, it checks the head too. ' +
    'Beyond the head `receipts` is 0. This is only what the service says of itself. For proof, export the range ' +
    'and verify it with the client, from a head that you kept.',
  method: 'GET',
  path: '/v1/chain/verify',
  family: 'control',
  access: 'public',
  errors: ['capacity_exceeded'],
  kind: 'exchange',
  input: rangeInput,
  output: z.strictObject({
    from: z.int(),
    to: z.int(),
    head_serial: z.int(),
    valid: z.boolean(),
    receipts: z.int(),
    signatures_checked: z.int(),
    first_fault: z.strictObject({ serial: z.int(), check: z.string(), detail: z.string() }).nullable(),
  }),
  async run(input, { api }) {
    const head = await api.reader.head()
    const range = resolveRange(input, head)
    const { receipts, signatures, fault } = await checkRange(api, range, head)
    return {
      ...range,
      head_serial: head.serial,
      valid: fault === null,
      receipts,
      signatures_checked: signatures,
      first_fault: fault,
    }
  },
})
