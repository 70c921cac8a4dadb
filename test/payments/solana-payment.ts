// Payment transactions of Solana, made without a node: right ones, and any other.
import { randomBytes } from 'node:crypto'
import {
  AccountRole,
  address,
  appendTransactionMessageInstructions,
  type Blockhash,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  type Instruction,
  type KeyPairSigner,
  partiallySignTransactionMessageWithSigners,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit'
import { getTransferCheckedInstruction } from '@solana-program/token'
import { SOLANA_DEVNET, SOLANA_USDC } from '../../server/interface/networks.ts'
import { tokenAccountOf } from '../../server/payments/chains/solana-transaction.ts'
import type { PaymentRequirements } from '../../server/payments/x402.ts'

export const MINT = SOLANA_USDC[SOLANA_DEVNET]
const MEMO_PROGRAM = address('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr')
const newAddress = () => getBase58Decoder().decode(randomBytes(32))
const FEE_PAYER = newAddress()

export const TERMS = {
  scheme: 'exact',
  network: SOLANA_DEVNET,
  amount: '30000',
  asset: MINT,
  payTo: newAddress(),
  maxTimeoutSeconds: 300,
  extra: { feePayer: FEE_PAYER, memo: '9f0ac28f-9d0f-4d0e-8a8b-111111111111' },
} satisfies PaymentRequirements

export interface Plan {
  terms?: Omit<typeof TERMS, 'asset'> & { asset: string }
  version?: 0 | 'legacy'
  feePayer?: string
  blockhash?: string
  /** The instructions, given those of a right payment. */
  change?: (right: { transfer: Instruction; memo: Instruction; payer: KeyPairSigner }) => readonly Instruction[]
}

/** A transaction that its payer signed, in base64. */
export async function makeTransaction({ terms = TERMS, version = 0, feePayer, blockhash, change }: Plan = {}) {
  const payer = await generateKeyPairSigner()
  const source = await tokenAccountOf(payer.address, terms.asset)
  const transfer = getTransferCheckedInstruction({
    source,
    mint: address(terms.asset),
    destination: await tokenAccountOf(terms.payTo, terms.asset),
    authority: payer,
    amount: BigInt(terms.amount),
    decimals: 6,
  })
  const memo = memoOf(terms.extra.memo)
  const message = pipe(
    // Sound: the functions below take both versions.
    createTransactionMessage({ version: version as 0 }),
    (one) => setTransactionMessageFeePayer(address(feePayer ?? terms.extra.feePayer), one),
    (one) =>
      setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: (blockhash ?? newAddress()) as Blockhash, lastValidBlockHeight: 1000n },
        one,
      ),
    (one) => appendTransactionMessageInstructions(change?.({ transfer, memo, payer }) ?? [transfer, memo], one),
  )
  const signed = await partiallySignTransactionMessageWithSigners(message)
  return { transaction: getBase64EncodedWireTransaction(signed) as string, payer: payer.address, source }
}

export function memoOf(text: string | Uint8Array, program: string = MEMO_PROGRAM): Instruction {
  const data = typeof text === 'string' ? new TextEncoder().encode(text) : text
  return { programAddress: address(program), accounts: [], data }
}

/** The instruction with this account in place of another. */
export function withAccount(instruction: Instruction, index: number, account: string): Instruction {
  const accounts = [...(instruction.accounts ?? [])]
  accounts[index] = { address: address(account), role: accounts[index]?.role ?? AccountRole.READONLY }
  return { ...instruction, accounts }
}
