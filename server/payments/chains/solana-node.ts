// The questions of this service to a node of a Solana cluster, and the form of each answer. What decides about a payment must be there
// and of its type: a missing balance would look like a payment of nothing.
import { z } from 'zod'
import { openNodeCalls } from './node-calls.ts'

export type Depth = 'confirmed' | 'finalized'

const whole = z.int().min(0)
const base58 = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{32,88}$/)
const base64 = z.base64()
const encoding = z.literal('base64')
/** Null, or what went wrong. */
const failure = z.union([z.null(), z.string(), z.record(z.string(), z.unknown())])
const balances = z.array(
  z.object({ mint: base58, owner: base58, uiTokenAmount: z.object({ amount: z.string().regex(/^\d{1,20}$/) }) }),
)
const entries = z.array(z.object({ signature: base58, memo: z.string().nullable(), blockTime: whole.nullable() }))
const landed = z.object({
  transaction: z.tuple([base64.min(1), encoding]),
  meta: z.object({ err: failure, preTokenBalances: balances, postTokenBalances: balances }),
})
export type Landed = z.output<typeof landed>
/** A wallet has no data, and a payer may name one as the account of its tokens. */
const account = z.object({ value: z.object({ owner: base58, data: z.tuple([base64, encoding]) }).nullable() })

export const TOKEN_ACCOUNT_BYTES = 165

/** Where in a list of transactions to read, and at least at which slot. */
interface Range {
  limit: number
  before?: string
  minContextSlot?: number
}

export type SolanaNode = ReturnType<typeof openSolanaNode>

/** Every method throws if the node does not answer, or answers in another form. @param signal ends all calls */
export function openSolanaNode(url: string, timeoutMs?: number) {
  const ask = openNodeCalls(url, timeoutMs)
  return {
    slot: (commitment: Depth, signal?: AbortSignal) => ask('getSlot', [{ commitment }], whole, signal),
    /** @param atSlot a node that has not reached this slot must answer an error */
    isValid: async (blockhash: string, commitment: Depth, atSlot?: number, signal?: AbortSignal) => {
      const options = { commitment, ...(atSlot !== undefined && { minContextSlot: atSlot }) }
      return (await ask('isBlockhashValid', [blockhash, options], z.object({ value: z.boolean() }), signal)).value
    },
    blockTime: (slot: number, signal?: AbortSignal) => ask('getBlockTime', [slot], whole, signal),
    signatures: (at: string, commitment: Depth, range: Range, signal?: AbortSignal) =>
      ask('getSignaturesForAddress', [at, { commitment, ...range }], entries.max(range.limit), signal),
    transaction: (id: string, commitment: Depth, signal?: AbortSignal) => {
      const options = { commitment, encoding: 'base64', maxSupportedTransactionVersion: 0 }
      return ask('getTransaction', [id, options], landed.nullable(), signal)
    },
    /** The first bytes of the data of an account, with the program that wrote them, or null. A payer chose the account, which may hold 10 MB. */
    account: async (at: string) => {
      const options = { encoding: 'base64', dataSlice: { offset: 0, length: TOKEN_ACCOUNT_BYTES } }
      const { value } = await ask('getAccountInfo', [at, options], account)
      return value && { program: value.owner, data: Buffer.from(value.data[0], 'base64') }
    },
    genesisHash: () => ask('getGenesisHash', [], base58),
  }
}
