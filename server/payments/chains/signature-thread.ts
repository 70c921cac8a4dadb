// Recovers the signer of a transfer. It runs on a thread, so that the event loop of the API process stays free of arithmetic, and
// with libsecp256k1 as WebAssembly, which takes a seventh of the time that viem takes.
import { recover } from 'tiny-secp256k1'
import { hashTypedData, hexToBytes, keccak256, toHex } from 'viem/utils'
import { type SignedTransfer, typedDataOf } from './signed-transfer.ts'

/** Bytes of r and s, in front of the recovery id. */
const RS_BYTES = 64

/** The address that signed, in lower case; null if the signature is invalid. The recovery id is 27 or 28. */
export function recoverSigner(transfer: SignedTransfer): string | null {
  try {
    const signature = hexToBytes(transfer.signature)
    const id = recoveryIdOf(signature[RS_BYTES])
    if (id === null || signature.length !== RS_BYTES + 1) return null
    const digest = hexToBytes(hashTypedData(typedDataOf(transfer)))
    const key = recover(digest, signature.subarray(0, RS_BYTES), id, false)
    return key && addressOf(key)
  } catch {
    return null
  }
}

function recoveryIdOf(v: number | undefined): 0 | 1 | null {
  return v === 27 ? 0 : v === 28 ? 1 : null
}

/** The last 20 bytes of the hash of an uncompressed key, without its first byte. */
function addressOf(key: Uint8Array): string {
  return toHex(keccak256(key.subarray(1), 'bytes').subarray(-20))
}
