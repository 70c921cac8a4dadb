// The answers of a node of an EVM chain that decide about a payment, with their form. A library takes members of any type, and would
// find no transfer in a log whose place is missing.
import { createPublicClient, type Hex, http } from 'viem'
import { z } from 'zod'
import { buildNodeFetch, CALL_TIMEOUT_MS, NodeError } from './node-calls.ts'

const hexOf = (pattern: RegExp) => z.custom<Hex>((given) => typeof given === 'string' && pattern.test(given))
const address = hexOf(/^0x[0-9a-f]{40}$/i)
const word = hexOf(/^0x[0-9a-f]{64}$/i)
const bytes = hexOf(/^0x(?:[0-9a-f]{2})*$/i)
const quantity = hexOf(/^0x[0-9a-f]{1,64}$/i).transform((text) => BigInt(text))

const log = z.object({
  address,
  topics: z.array(word).max(4),
  data: bytes,
  logIndex: quantity.transform(Number),
  transactionHash: word,
  blockNumber: quantity,
})
const receipt = z.object({ status: z.enum(['0x0', '0x1']), blockNumber: quantity, logs: z.array(log) })
const block = z.object({ number: quantity, timestamp: quantity })

/** A call whose answer is judged here. */
interface Untyped {
  Method: string
  Parameters: unknown[]
  ReturnType: unknown
}

export interface NodeOptions {
  /** Milliseconds for one call. */
  callMs?: number
  /** Milliseconds before a failed call is repeated. */
  retryMs?: number
  /** Milliseconds for the logs that one look at a settlement reads. */
  lookMs?: number
  /** Milliseconds for the logs of income. */
  incomeMs?: number
}

/** Every method throws if the node does not answer, or answers in another form. */
export function openEvmNode(rpcUrl: string, { callMs = CALL_TIMEOUT_MS, retryMs = 200 }: NodeOptions = {}) {
  const client = createPublicClient({
    transport: http(rpcUrl, { fetchFn: buildNodeFetch(callMs), timeout: callMs, retryCount: 1, retryDelay: retryMs }),
    cacheTime: 0,
  })

  async function ask<T>(method: string, params: unknown[], shape: z.ZodType<T>): Promise<T> {
    const read = shape.safeParse(await client.request<Untyped>({ method, params }))
    if (!read.success) throw new NodeError('unreadable_answer')
    return read.data
  }

  return {
    client,
    block: (tag: 'latest' | 'finalized') => ask('eth_getBlockByNumber', [tag, false], block),
    /** Null for a transaction that the node does not know. */
    receipt: (hash: Hex) => ask('eth_getTransactionReceipt', [hash], receipt.nullable()),
    /** Logs of blocks that are not pending. */
    logs: (filter: { address: Hex; topics: object; fromBlock: Hex; toBlock: Hex }) =>
      ask('eth_getLogs', [filter], z.array(log)),
  }
}
export type EvmLog = z.output<typeof log>
