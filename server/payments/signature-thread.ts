// Recovers the signer of typed data. That is two milliseconds of arithmetic, so it runs on a thread and the event loop of the
// API process stays free.
import type { Address, Hex } from 'viem'
import { recoverTypedDataAddress } from 'viem/utils'

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

/** The address that signed, in lower case; null if the signature is invalid. */
export async function recoverSigner(transfer: SignedTransfer): Promise<string | null> {
  const { from, to, value, validAfter, validBefore, nonce } = transfer.authorization
  try {
    const address = await recoverTypedDataAddress({
      domain: {
        name: transfer.name,
        version: transfer.version,
        chainId: transfer.chainId,
        verifyingContract: lowerCase(transfer.asset),
      },
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
      signature: transfer.signature,
    })
    return address.toLowerCase()
  } catch {
    return null
  }
}

/** In mixed case an address carries a checksum, and a wrong one would be refused. */
function lowerCase(address: Address): Address {
  return `0x${address.slice(2).toLowerCase()}`
}
