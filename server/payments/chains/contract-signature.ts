// Asks a contract wallet by ERC-1271, also before it is deployed, whether it signed an authorization. Only what the chain computed may say
// no. The library says no as well where a call fails, so the failure of the node is kept beside its answer.
import { BaseError, type Client, createClient, custom } from 'viem'
import { verifyTypedData } from 'viem/actions'
import { z } from 'zod'
import { EVM_NETWORKS, type EvmNetwork } from '../../interface/networks.ts'
import type { EvmAuthorization } from '../payload.ts'
import { NodeError } from './node-calls.ts'
import { chainIdOf } from './signature-checks.ts'
import { TRANSFER_TYPES } from './signed-transfer.ts'

const bytes = z.string().regex(/^0x(?:[0-9a-f]{2})*$/i)
/** The check is code that is not stored on the chain, and answers at least a byte. */
const answer = bytes.min(4)
const withoutTarget = z.looseObject({ to: z.undefined().optional() })

/** Throws if the node does not answer, answers in another form, or answers an error that is no revert. */
export async function isSignedByContract(
  node: Client,
  id: EvmNetwork,
  { signature, authorization }: EvmAuthorization,
): Promise<boolean> {
  const failures: unknown[] = []
  const request = async ({ method, params }: { method: string; params?: unknown }) => {
    try {
      const shape =
        method === 'eth_call' && withoutTarget.safeParse(Array.isArray(params) && params[0]).success ? answer : bytes
      const read = shape.safeParse(await node.request<Untyped>({ method, params }))
      if (!read.success) throw new NodeError('unreadable_answer')
      return read.data
    } catch (error) {
      if (!isRevert(error)) failures.push(error)
      throw error
    }
  }
  const { asset, name, version } = EVM_NETWORKS[id].usdc
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const signed = await verifyTypedData(createClient({ transport: custom({ request }, { retryCount: 0 }) }), {
    address: from,
    signature,
    domain: { name, version, chainId: chainIdOf(id), verifyingContract: asset },
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      from,
      to,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce,
    },
  })
  if (!signed && failures.length > 0) throw failures[0]
  return signed
}

/** A call whose answer is judged here. */
interface Untyped {
  Method: string
  Parameters: unknown
  ReturnType: unknown
}

/** Code 3 is that of go-ethereum; other nodes say it in words. */
function isRevert(error: unknown): boolean {
  if (!(error instanceof BaseError)) return false
  return (
    error.walk((cause) => cause instanceof Error && 'code' in cause && cause.code === 3) !== null ||
    REVERTED.test(error.details)
  )
}
const REVERTED = /revert|vm execution error/i
