// Solana transactions that are not the payment that was asked for: each is refused before any call, with an error about the payment.
import { randomBytes } from 'node:crypto'
import {
  AccountRole,
  address,
  generateKeyPairSigner,
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  getTransactionDecoder,
  type Instruction,
} from '@solana/kit'
import t from 'tap'
import { AppError } from '../../server/errors.ts'
import { SOLANA_DEVNET, SOLANA_MAINNET, SOLANA_USDC } from '../../server/interface/networks.ts'
import { openSolanaNetwork } from '../../server/payments/chains/solana.ts'
import type { OfferedPayment, PaymentPayload } from '../../server/payments/x402.ts'
import { makeTransaction, memoOf, type Plan, TERMS, withAccount } from './solana-payment.ts'

// Nothing listens there: a check that asked the node would fail otherwise.
const network = await openSolanaNetwork({
  id: SOLANA_DEVNET,
  payTo: TERMS.payTo,
  rpcUrl: 'http://127.0.0.1:9',
  proves: true,
})
const newAddress = () => getBase58Decoder().decode(randomBytes(32))
const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'
const MEMO_V1 = 'Memo1UhkJRfHyvLMcVucJwxXeuD728EqVddwQDxFMNo'
const SYSTEM = '11111111111111111111111111111111'
const { memo: MEMO } = TERMS.extra

/** What a payment with this transaction gets: `accepted`, or the message of the refusal. Any other error fails the test. */
async function judge(transaction: unknown): Promise<string> {
  const payload = { x402Version: 2, accepted: TERMS, payload: { transaction } } as unknown as PaymentPayload
  try {
    const { identity } = network.read(payload, TERMS)
    // Sound: the check reads the terms alone.
    const offer = { payload, bound: { requirements: TERMS, identity } } as unknown as OfferedPayment
    return (await network.check(offer, 0)) ? 'accepted' : 'not proved'
  } catch (error) {
    if (error instanceof AppError && error.code === 'payment_invalid') return error.message
    throw error
  }
}
const made = async (plan: Plan = {}) => judge((await makeTransaction(plan)).transaction)
/** With other data in the transfer. */
const withData = (change: (data: Buffer) => Uint8Array): Plan => ({
  change: ({ transfer, memo }) => [{ ...transfer, data: change(Buffer.from(transfer.data ?? [])) }, memo],
})
const withAmount = (amount: bigint) =>
  withData((data) => {
    data.writeBigUInt64LE(amount, 1)
    return data
  })
const computeLimit: Instruction = {
  programAddress: address('ComputeBudget111111111111111111111111111111'),
  data: Buffer.from([2, 0x20, 0x4e, 0, 0]),
}

t.test('the payment that was asked for, in either form of message, with what clients add', async (t) => {
  t.equal(await made(), 'accepted')
  t.equal(await made({ version: 'legacy' }), 'accepted')
  t.equal(await made({ change: ({ transfer, memo }) => [computeLimit, transfer, memo] }), 'accepted')
})

const hostile: [about: string, plan: Plan, words: RegExp][] = [
  ['another mint', { terms: { ...TERMS, asset: newAddress() } }, /another token/],
  ['the mint of another network', { terms: { ...TERMS, asset: SOLANA_USDC[SOLANA_MAINNET] } }, /another token/],
  ['another recipient', { terms: { ...TERMS, payTo: newAddress() } }, /another recipient/],
  [
    "the recipient's address in place of its token account",
    { change: ({ transfer, memo }) => [withAccount(transfer, 2, TERMS.payTo), memo] },
    /another recipient/,
  ],
  [
    'the program of other tokens',
    { change: ({ transfer, memo }) => [{ ...transfer, programAddress: address(TOKEN_2022) }, memo] },
    /not a Solana transaction/,
  ],
  ['no transfer', { change: ({ memo }) => [memo] }, /not a Solana transaction/],
  ['two transfers', { change: ({ transfer, memo }) => [transfer, transfer, memo] }, /not a Solana transaction/],
  ['a transfer without its check', withData((data) => Buffer.from([3, ...data.subarray(1, 9)])), /not a Solana/],
  ['a transfer with half an amount', withData((data) => data.subarray(0, 5)), /not a Solana transaction/],
  ['no data', withData(() => Buffer.alloc(0)), /not a Solana transaction/],
  ['one less', withAmount(29_999n), /amount is not 30000/],
  ['one more', withAmount(30_001n), /amount is not 30000/],
  ['nothing', withAmount(0n), /amount is not 30000/],
  ['the largest amount', withAmount(2n ** 64n - 1n), /amount is not 30000/],
  ['the amount above 32 bits', withAmount(2n ** 32n + 30_000n), /amount is not 30000/],
  ['no memo', { change: ({ transfer }) => [transfer] }, /memo/],
  ['the memo of another request', { change: ({ transfer }) => [transfer, memoOf('another')] }, /memo/],
  ['the memo with more', { change: ({ transfer }) => [transfer, memoOf(`${MEMO} `)] }, /memo/],
  ['the memo twice', { change: ({ transfer, memo }) => [transfer, memo, memo] }, /memo/],
  ['two memos', { change: ({ transfer, memo }) => [transfer, memo, memoOf('another')] }, /memo/],
  ['a memo that is no text', { change: ({ transfer }) => [transfer, memoOf(Buffer.from([0xff]))] }, /memo/],
  ['the memo of another program', { change: ({ transfer }) => [transfer, memoOf(MEMO, MEMO_V1)] }, /memo/],
  [
    "the fee payer's money",
    { change: ({ transfer, memo }) => [withAccount(transfer, 3, TERMS.extra.feePayer), memo] },
    /not signed by its payer/,
  ],
  [
    "a stranger's money",
    { change: ({ transfer, memo }) => [withAccount(transfer, 3, newAddress()), memo] },
    /not signed by its payer/,
  ],
  [
    'a durable nonce, with which it would be valid for ever',
    {
      change: ({ transfer, memo, payer }) => [
        {
          programAddress: address(SYSTEM),
          accounts: [
            { address: address(newAddress()), role: AccountRole.WRITABLE },
            { address: address('SysvarRecentB1ockHashes11111111111111111111'), role: AccountRole.READONLY },
            { address: payer.address, role: AccountRole.READONLY_SIGNER, signer: payer } as never,
          ],
          data: Buffer.from([4, 0, 0, 0]),
        },
        transfer,
        memo,
      ],
    },
    /durable nonce/,
  ],
  [
    'the recipient from a lookup table',
    {
      change: ({ transfer, memo }) => {
        const table = { lookupTableAddress: address(newAddress()), addressIndex: 0 }
        const accounts = [...(transfer.accounts ?? [])]
        accounts[2] = { ...accounts[2], ...table, role: AccountRole.WRITABLE } as never
        return [{ ...transfer, accounts }, memo]
      },
    },
    /not a Solana transaction/,
  ],
]
for (const [about, plan, words] of hostile)
  t.test(about, async (t) => {
    t.match(await made(plan), words)
    if (about !== 'the recipient from a lookup table') t.match(await made({ ...plan, version: 'legacy' }), words)
  })

t.test('signatures: none, of another, and too many', async (t) => {
  const { transaction, payer } = await makeTransaction()
  const { messageBytes, signatures } = getTransactionDecoder().decode(Buffer.from(transaction, 'base64'))
  const other = await generateKeyPairSigner()
  const strange = { ...signatures, [payer]: randomBytes(64) }
  for (const given of [{ ...signatures, [payer]: null }, strange])
    t.match(
      await judge(getBase64EncodedWireTransaction({ messageBytes, signatures: given } as never)),
      /not signed by its payer/,
    )
  const many = { ...signatures, [other.address]: randomBytes(64) }
  t.match(
    await judge(getBase64EncodedWireTransaction({ messageBytes, signatures: many } as never)),
    /not a Solana|signed/,
  )
})

t.test('no changed, missing or further byte is accepted', async (t) => {
  const { transaction } = await makeTransaction()
  const bytes = Buffer.from(transaction, 'base64')
  // One byte for the number of signatures, and the empty signature of the fee payer, which is no part of what the payer signed.
  const signed = [0, ...Array.from({ length: bytes.length - 65 }, (_, n) => n + 65)]
  for (const at of signed) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8))
    t.not(await judge(changed.toString('base64')), 'accepted', `byte ${at}`)
  }
  for (let length = 0; length < bytes.length; length += 7)
    t.not(await judge(bytes.subarray(0, length).toString('base64')), 'accepted', `${length} bytes`)
  t.not(await judge(Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64')), 'accepted')
})

t.test('what is no transaction', async (t) => {
  const { transaction } = await makeTransaction()
  const texts = [
    '=',
    'AAAA',
    '!',
    transaction.replace(/.$/, '-'),
    `${transaction}\n`,
    ` ${transaction}`,
    'A'.repeat(1_000_000),
  ]
  for (const given of [
    ...texts,
    null,
    undefined,
    5,
    [transaction],
    { transaction },
    randomBytes(1232).toString('base64'),
  ])
    t.match(await judge(given), /not a Solana transaction/, JSON.stringify(given)?.slice(0, 40))
})
