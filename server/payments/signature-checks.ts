// Checks whether the payer's key signed an EIP-3009 authorization, on threads (see signature-thread.ts).
import { openThreads, type Threads } from '../threads/pool.ts'
import type { EvmAuthorization } from './payload.ts'
import type { SignedTransfer } from './signature-thread.ts'
import { EVM_USDC, type EvmNetwork } from './x402.ts'

const THREAD = new URL('./signature-thread.ts', import.meta.url)

export interface SignatureChecks extends AsyncDisposable {
  /** Whether the payer's own key signed. False for contract wallets, whose signatures only their chain can check. */
  isSignedByPayer(network: EvmNetwork, payment: EvmAuthorization): Promise<boolean>
}

/** Whether the signature has the length of a key's signature, 65 bytes. Contract wallets sign at greater length. */
export function isKeySignature(signature: string): boolean {
  return signature.length === 2 + 2 * 65
}

/** r, s and the recovery id, in the form that USDC accepts. */
const SIGNATURE = /^0x[0-9a-f]{64}([0-9a-f]{64})(1b|1c)$/i
/** Half the order of secp256k1. USDC refuses a greater s, because anyone can derive a second signature with it. */
const MAX_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/** On threads of its own, which end with it, or on those that are lent. */
export function openSignatureChecks(lent?: Threads): SignatureChecks {
  const threads = lent ?? openThreads({ minThreads: 0, maxThreads: 2, maxWaiting: Number.POSITIVE_INFINITY })
  return {
    async isSignedByPayer(network, { signature, authorization }) {
      const s = SIGNATURE.exec(signature)?.[1]
      if (s === undefined || BigInt(`0x${s}`) > MAX_S) return false
      const chainId = chainIdOf(network)
      const transfer: SignedTransfer = { chainId, ...EVM_USDC[network], signature, authorization }
      const signer = await threads.run<string | null>(THREAD, 'recoverSigner', transfer)
      return signer === authorization.from.toLowerCase()
    },
    async [Symbol.asyncDispose]() {
      if (!lent) await threads[Symbol.asyncDispose]()
    },
  }
}

/** `eip155:8453` is chain 8453. */
export function chainIdOf(network: EvmNetwork): number {
  return Number(network.slice('eip155:'.length))
}
