// EIP-3009 authorizations made without a client: sent by a third party, signed twice, or cancelled.
import { randomBytes } from 'node:crypto'
import type { Address, Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { EVM_NETWORKS } from '../../server/interface/networks.ts'
import { TRANSFER_TYPES } from '../../server/payments/chains/signed-transfer.ts'
import type { EvmChain } from './evm-chain.ts'

export interface Authorization {
  from: Address
  to: Address
  value: string
  validAfter: string
  validBefore: string
  nonce: Hex
}
export type Signed = Authorization & { signature: Hex }

export function newNonce(): Hex {
  return `0x${randomBytes(32).toString('hex')}`
}

/** The authorization that a stock client signed. */
export function readAuthorization(payload: Record<string, unknown>): Signed {
  return { ...(payload.authorization as Authorization), signature: payload.signature as Hex }
}

export async function sign(chain: EvmChain, wallet: PrivateKeyAccount, authorization: Authorization): Promise<Signed> {
  const { validAfter, validBefore, value } = authorization
  const signature = await wallet.signTypedData({
    domain: domainOf(chain),
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorization,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
    },
  })
  return { ...authorization, signature }
}

export function transferArguments({ from, to, value, validAfter, validBefore, nonce, signature }: Signed) {
  return [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature]
}

/** Sends an authorization from any account. */
export async function sendAuthorization(chain: EvmChain, signed: Signed) {
  const stranger = chain.walletOf(await chain.openAccount())
  return chain.send('transferWithAuthorization', transferArguments(signed), stranger)
}

/** Cancels a nonce by its payer's signature. */
export async function cancelAuthorization(chain: EvmChain, wallet: PrivateKeyAccount, nonce: Hex) {
  const signature = await wallet.signTypedData({
    domain: domainOf(chain),
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: wallet.address, nonce },
  })
  const [r, s, v] = [signature.slice(0, 66), `0x${signature.slice(66, 130)}`, Number(`0x${signature.slice(130)}`)]
  const stranger = chain.walletOf(await chain.openAccount())
  return chain.send('cancelAuthorization', [wallet.address, nonce, v, r, s], stranger)
}

function domainOf({ network, id, token }: EvmChain) {
  const { name, version } = EVM_NETWORKS[network].usdc
  return { name, version, chainId: id, verifyingContract: token }
}
