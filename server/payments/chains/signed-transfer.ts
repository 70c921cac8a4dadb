// A transfer of USDC that a payer signed (EIP-3009), as typed data of EIP-712.
import type { Address, Hex } from 'viem'

/** The typed data of an EIP-3009 transfer. */
export const TRANSFER_TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

export interface SignedTransfer {
  chainId: number
  asset: Address
  name: string
  version: string
  signature: Hex
  authorization: { from: Address; to: Address; value: string; validAfter: string; validBefore: string; nonce: Hex }
}

/** What the payer signed, as viem takes typed data. Throws at a value that is no number. */
export function typedDataOf({ chainId, asset, name, version, authorization }: SignedTransfer) {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  return {
    domain: { name, version, chainId, verifyingContract: lowerCase(asset) },
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: lowerCase(from),
      to: lowerCase(to),
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce,
    },
  } as const
}

/** In mixed case an address carries a checksum, and a wrong one would be refused. */
function lowerCase(address: Address): Address {
  return `0x${address.slice(2).toLowerCase()}`
}
