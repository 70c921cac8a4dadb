// The only accepted form of Solana payment: a transaction, signed by its payer and not yet by the facilitator, with one
// TransferChecked of USDC to this service's token account and a memo with the request id. The facilitator judges what else it
// may contain. A transfer inside a call of another program is refused, because it could not be recognised on the chain.
import { createHash } from 'node:crypto'
import {
  type Address,
  address,
  getAddressEncoder,
  getBase64Encoder,
  getCompiledTransactionMessageDecoder,
  getProgramDerivedAddress,
  getPublicKeyFromAddress,
  getTransactionDecoder,
  type SignatureBytes,
  signatureBytes,
  verifySignature,
} from '@solana/kit'
import { z } from 'zod'
import { AppError } from '../../errors.ts'

export const TOKEN_PROGRAM = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA')
const ACCOUNT_PROGRAM = address('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL')
const MEMO_PROGRAM = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'
const SYSTEM_PROGRAM = '11111111111111111111111111111111'
/** Number of a System instruction, in 4 bytes. */
const ADVANCE_NONCE = 4
/** First byte of an SPL Token instruction. */
const TRANSFER_CHECKED = 12

/** A transaction is at most 1,232 bytes. */
const payloadShape = z.strictObject({ transaction: z.base64().max(1644) })

export interface SolanaPayment {
  /** SHA-256 of the message in base64: it does not depend on the other signatures. */
  messageHash: string
  blockhash: string
  /** It has a durable nonce in place of a blockhash: then it can land at any time, and never counts as expired. */
  isDurable: boolean
  payer: Address
  mint: string
  /** The payer's token account. */
  source: string
  /** The recipient's token account. */
  destination: string
  amount: bigint
  memos: string[]
  messageBytes: Uint8Array
  signature: SignatureBytes | null
}

/** Throws AppError `payment_invalid`. */
export function readSolanaTransaction(payload: unknown): SolanaPayment {
  const parsed = payloadShape.safeParse(payload)
  const refuse = () =>
    new AppError('payment_invalid', 'The payment is not a Solana transaction with one USDC transfer.')
  if (!parsed.success) throw refuse()
  try {
    return decodePayment(getBase64Encoder().encode(parsed.data.transaction))
  } catch {
    // The decoders' errors quote the payment's bytes.
    throw refuse()
  }
}

/** Throws what the decoder throws, and an Error unless there is exactly one transfer. @param bytes a whole transaction */
export function decodePayment(bytes: Parameters<ReturnType<typeof getTransactionDecoder>['decode']>[0]): SolanaPayment {
  const { messageBytes, signatures } = getTransactionDecoder().decode(bytes)
  const message = getCompiledTransactionMessageDecoder().decode(messageBytes)
  // The message has no addresses of accounts from lookup tables, so those are not read.
  const accounts: readonly (string | undefined)[] = message.staticAccounts
  const instructions = message.instructions.map(({ programAddressIndex, accountIndices = [], data }) => ({
    program: accounts[programAddressIndex],
    accounts: accountIndices.map((index) => accounts[index]),
    data: Buffer.from(data ?? []),
  }))
  const transfers = instructions.filter(
    ({ program, data }) => program === TOKEN_PROGRAM && data[0] === TRANSFER_CHECKED,
  )
  const [transfer] = transfers
  const [source, mint, destination, payer] = transfer?.accounts ?? []
  if (!transfer || transfers.length > 1 || !source || !mint || !destination || !payer)
    throw new Error('not one transfer')
  return {
    messageHash: createHash('sha256').update(Buffer.from(messageBytes)).digest('base64'),
    blockhash: message.lifetimeToken,
    isDurable: instructions.some(({ program, data }) => program === SYSTEM_PROGRAM && data[0] === ADVANCE_NONCE),
    payer: address(payer),
    mint,
    source,
    destination,
    amount: transfer.data.readBigUInt64LE(1),
    memos: instructions.filter(({ program }) => program === MEMO_PROGRAM).map(({ data }) => data.toString('utf8')),
    messageBytes: new Uint8Array(messageBytes),
    signature: signatures[address(payer)] ?? null,
  }
}

/** Whether the payer's key signed the message. False too if the payer's address is not that of a key. */
export async function isSignedByPayer({ payer, messageBytes, signature }: SolanaPayment): Promise<boolean> {
  if (!signature) return false
  try {
    return await verifySignature(await getPublicKeyFromAddress(payer), signatureBytes(signature), messageBytes)
  } catch {
    return false
  }
}

/** The owner's associated token account for this mint. */
export async function tokenAccountOf(owner: string, mint: string): Promise<Address> {
  const encode = (value: string) => getAddressEncoder().encode(address(value))
  const [account] = await getProgramDerivedAddress({
    programAddress: ACCOUNT_PROGRAM,
    seeds: [encode(owner), encode(TOKEN_PROGRAM), encode(mint)],
  })
  return account
}
