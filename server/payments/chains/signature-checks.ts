// Checks whether the payer's key signed an EIP-3009 authorization, on threads (see signature-thread.ts).
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { atMost } from '../../db/cache-bound.ts'
import { EVM_NETWORKS, type EvmNetwork } from '../../interface/networks.ts'
import { openThreads, type Threads } from '../../threads/pool.ts'
import type { EvmAuthorization } from '../payload.ts'
import type { SignedTransfer } from './signed-transfer.ts'

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

/** Signers that are kept, 200 bytes each. */
const MAX_SIGNERS = 16_384

/**
 * The signer of a payment does not change, so it is cached. A payment that was refused temporarily, for example by a limit,
 * is sent again unchanged, and a caller who sends one payment again and again does not occupy the threads.
 *
 * Checks run on its own threads, which close with it, or on the threads given as `lent`.
 */
export function openSignatureChecks(lent?: Threads): SignatureChecks {
  const threads = lent ?? openThreads({ minThreads: 0, maxThreads: 2, maxWaiting: Number.POSITIVE_INFINITY })
  /** An empty value: the signature is invalid. */
  const signers = new LRUCache<string, string>(atMost(MAX_SIGNERS))
  return {
    async isSignedByPayer(network, { signature, authorization }) {
      const s = SIGNATURE.exec(signature)?.[1]
      if (s === undefined || BigInt(`0x${s}`) > MAX_S) return false
      const chainId = chainIdOf(network)
      const transfer: SignedTransfer = { chainId, ...EVM_NETWORKS[network].usdc, signature, authorization }
      const name = nameOf(transfer)
      let signer = signers.get(name)
      if (signer === undefined) {
        signer = (await threads.run<string | null>(THREAD, 'recoverSigner', transfer)) ?? ''
        signers.set(name, signer)
      }
      return signer === authorization.from.toLowerCase()
    },
    async [Symbol.asyncDispose]() {
      if (!lent) await threads[Symbol.asyncDispose]()
    },
  }
}

/** The same only for the same signature under the same data. */
function nameOf({ chainId, asset, name, version, signature, authorization }: SignedTransfer): string {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const signed = [chainId, asset, name, version, signature, from, to, value, validAfter, validBefore, nonce]
  return hash('sha256', JSON.stringify(signed), 'base64url')
}

/** `eip155:8453` is chain 8453. */
export function chainIdOf(network: EvmNetwork): number {
  return Number(network.slice('eip155:'.length))
}
