// Recovering the signer of typed data is two milliseconds of pure arithmetic: on a thread, so that the event loop of the
// API process goes on answering.
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
  asset: string
  name: string
  version: string
  signature: string
  authorization: { from: string; to: string; value: string; validAfter: string; validBefore: string; nonce: string }
}

/** The address that signed, lower case; null when the signature is none. */
export async function recoverSigner(transfer: SignedTransfer): Promise<string | null> {
  const { from, to, value, validAfter, validBefore, nonce } = transfer.authorization
  try {
    const address = await recoverTypedDataAddress({
      domain: {
        name: transfer.name,
        version: transfer.version,
        chainId: transfer.chainId,
        verifyingContract: transfer.asset.toLowerCase() as `0x${string}`,
      },
      types: TRANSFER_TYPES,
      primaryType: 'TransferWithAuthorization',
      message: {
        from: from.toLowerCase() as `0x${string}`,
        to: to.toLowerCase() as `0x${string}`,
        value: BigInt(value),
        validAfter: BigInt(validAfter),
        validBefore: BigInt(validBefore),
        nonce: nonce as `0x${string}`,
      },
      signature: transfer.signature as `0x${string}`,
    })
    return address.toLowerCase()
  } catch {
    return null
  }
}
