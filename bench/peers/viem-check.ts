// The stock check of a payment's signature, for a thread: what viem does with typed data and a signature.
import { recoverTypedDataAddress } from 'viem/utils'
import { type SignedTransfer, typedDataOf } from '../../server/payments/chains/signed-transfer.ts'

/** The address that signed, in lower case. */
export async function recoverByViem(transfer: SignedTransfer): Promise<string> {
  const address = await recoverTypedDataAddress({ ...typedDataOf(transfer), signature: transfer.signature })
  return address.toLowerCase()
}
