// The one form of Solana payment that is taken: a transaction, signed by its payer and not yet by the facilitator, with
// one TransferChecked of USDC to our token account and a memo that names the order. What else it may hold is for the
// facilitator to judge; a payment hidden in calls of other programs is not taken, because it could not be told apart.
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
import { AppError } from '../errors.ts'

const TOKEN_PROGRAM = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA')
const ACCOUNT_PROGRAM = address('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL')
const MEMO_PROGRAM = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'
/** First byte of an SPL Token instruction. */
const TRANSFER_CHECKED = 12

/** A transaction is at most 1,232 bytes. */
const payloadShape = z.strictObject({ transaction: z.base64().max(1644) })

export interface SolanaPayment {
  /** SHA-256 of the message in base64: the same whoever pays the fee and signs beside the payer. */
  messageHash: string
  blockhash: string
  payer: Address
  mint: string
  /** The token account that pays. */
  source: string
  /** The token account that is paid. */
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
    // The decoders' own words quote the bytes they stumble over.
    throw refuse()
  }
}

/** @param bytes a whole transaction; throws whatever its decoder throws, or when there is not one transfer in it */
export function decodePayment(bytes: Parameters<ReturnType<typeof getTransactionDecoder>['decode']>[0]): SolanaPayment {
  const { messageBytes, signatures } = getTransactionDecoder().decode(bytes)
  const message = getCompiledTransactionMessageDecoder().decode(messageBytes)
  // Accounts from lookup tables have no name in the message, so nothing of theirs is counted.
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

/** Whether the payer's key signed the message. False too where no key has the payer's address. */
export async function isSignedByPayer({ payer, messageBytes, signature }: SolanaPayment): Promise<boolean> {
  if (!signature) return false
  try {
    return await verifySignature(await getPublicKeyFromAddress(payer), signatureBytes(signature), messageBytes)
  } catch {
    return false
  }
}

/** Where an owner's USDC is kept: the associated token account. */
export async function tokenAccountOf(owner: string, mint: string): Promise<Address> {
  const encode = (value: string) => getAddressEncoder().encode(address(value))
  const [account] = await getProgramDerivedAddress({
    programAddress: ACCOUNT_PROGRAM,
    seeds: [encode(owner), encode(TOKEN_PROGRAM), encode(mint)],
  })
  return account
}
