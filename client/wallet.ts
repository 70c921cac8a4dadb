// Signs x402 payments with keys that the caller holds. The packages that sign are peers: a caller installs those of the
// networks it pays on. Nothing here sends a request.
import type { PaymentRequired } from './error.ts'

/** A secret. EVM: 32 bytes. Solana: 64 bytes, the seed and its public key. */
export interface WalletKey {
  kind: 'evm' | 'solana'
  secret: Uint8Array
}

/** One way to pay, as the service offers it in `accepts`. */
export type Terms = PaymentRequired['accepts'][number]

export interface SignedPayment {
  /** The value of the header `PAYMENT-SIGNATURE`. A reader of it can send the payment: store it as safely as the key. */
  header: string
  terms: Terms
  /**
   * Unix seconds after which no one can settle it. Null on Solana, where the blockhash ends it after about 90 seconds, but
   * no time in the payment says so.
   */
  validBefore: number | null
}

export interface Wallet {
  addresses: { kind: WalletKey['kind']; address: string }[]
  /** The first of the terms that this wallet can pay: scheme `exact` on a network of one of its keys. */
  choose(required: PaymentRequired): Terms | undefined
  /** Signs for exactly these terms, which are of `required`. Each call makes another payment. */
  sign(required: PaymentRequired, terms: Terms): Promise<SignedPayment>
}

/** The text is not a key; the message does not repeat it. */
export class WalletError extends Error {
  override name = 'WalletError'
}

/**
 * Reads keys: one in each line, at most one of each kind. EVM: 64 hex characters, with or without 0x. Solana: base58, or the JSON
 * array that `solana-keygen` writes.
 * Throws a WalletError.
 */
export async function parseWallet(text: string): Promise<WalletKey[]> {
  const whole = text.trim()
  const lines = whole.startsWith('[') ? [whole] : whole.split(/\s*\n\s*/)
  const keys = await Promise.all(lines.map(parseKey))
  if (new Set(keys.map(({ kind }) => kind)).size !== keys.length)
    throw new WalletError('There are two keys of the same kind: a wallet has at most one for EVM and one for Solana.')
  return keys
}

async function parseKey(line: string): Promise<WalletKey> {
  const [, hex] = /^(?:0x)?([0-9a-fA-F]{64})$/.exec(line) ?? []
  if (hex) return { kind: 'evm', secret: Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16)) }
  const secret = line.startsWith('[') ? parseArray(line) : await decodeBase58(line)
  if (secret?.length !== 64)
    throw new WalletError('This is no key: 64 hex characters (EVM), or 64 bytes in base58 or as a JSON array (Solana).')
  return { kind: 'solana', secret }
}

function parseArray(line: string): Uint8Array | null {
  try {
    const bytes: unknown = JSON.parse(line)
    const isBytes = Array.isArray(bytes) && bytes.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256)
    return isBytes ? Uint8Array.from(bytes) : null
  } catch {
    return null
  }
}

async function decodeBase58(line: string): Promise<Uint8Array | null> {
  if (!/^[1-9A-HJ-NP-Za-km-z]{80,90}$/.test(line)) return null
  const { getBase58Encoder } = await peer('@solana/kit', () => import('@solana/kit'))
  return Uint8Array.from(getBase58Encoder().encode(line))
}

/** A new key, as a file of a wallet holds it. */
export async function createWalletKey(kind: WalletKey['kind']): Promise<{ text: string; address: string }> {
  if (kind === 'evm') {
    const { generatePrivateKey, privateKeyToAccount } = await peer('viem', () => import('viem/accounts'))
    const text = generatePrivateKey()
    return { text, address: privateKeyToAccount(text).address }
  }
  const kit = await peer('@solana/kit', () => import('@solana/kit'))
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  if (!('privateKey' in pair)) throw new WalletError('This runtime makes no Ed25519 keys.')
  const { publicKey, privateKey } = pair
  const seed = (await crypto.subtle.exportKey('pkcs8', privateKey)).slice(-32)
  const bytes = [...new Uint8Array(seed), ...new Uint8Array(await crypto.subtle.exportKey('raw', publicKey))]
  return { text: JSON.stringify(bytes), address: await kit.getAddressFromPublicKey(publicKey) }
}

/**
 * Loads the packages that the keys need. Throws a WalletError that names a missing one.
 * @param options `solanaRpcUrl`: the node that Solana payments are prepared with; a public one by default
 */
export async function openWallet(keys: readonly WalletKey[], options: { solanaRpcUrl?: string } = {}): Promise<Wallet> {
  const { x402Client, x402HTTPClient } = await peer('@x402/fetch', () => import('@x402/fetch'))
  const client = new x402Client()
  const addresses: Wallet['addresses'] = []
  const namespaces = new Set<string>()
  for (const { kind, secret } of keys) {
    if (kind === 'evm') {
      const { ExactEvmScheme } = await peer('@x402/evm', () => import('@x402/evm/exact/client'))
      const { privateKeyToAccount } = await peer('viem', () => import('viem/accounts'))
      const account = await readable(() => privateKeyToAccount(`0x${toHex(secret)}`))
      client.register('eip155:*', new ExactEvmScheme(account))
      addresses.push({ kind, address: account.address })
      namespaces.add('eip155')
    } else {
      const { ExactSvmScheme } = await peer('@x402/svm', () => import('@x402/svm/exact/client'))
      const { createKeyPairSignerFromBytes } = await peer('@solana/kit', () => import('@solana/kit'))
      const signer = await readable(() => createKeyPairSignerFromBytes(secret))
      client.register('solana:*', new ExactSvmScheme(signer, { rpcUrl: options.solanaRpcUrl }))
      addresses.push({ kind, address: signer.address })
      namespaces.add('solana')
    }
  }
  const http = new x402HTTPClient(client)
  return {
    addresses,
    choose: ({ accepts }) =>
      accepts.find(({ scheme, network }) => scheme === 'exact' && namespaces.has(network.split(':')[0] ?? '')),
    async sign(required, terms) {
      const isEvm = terms.network.startsWith('eip155:')
      // The package would sign for other contracts too, with an approval that outlives the payment.
      if (isEvm && (terms.extra as { assetTransferMethod?: unknown } | undefined)?.assetTransferMethod === 'permit2')
        throw new WalletError('The service asks for a payment through Permit2. This wallet signs EIP-3009 only.')
      // The package's type names more members than the protocol demands; it checks what it reads.
      const offer = { ...required, accepts: [terms] } as unknown as Parameters<typeof http.createPaymentPayload>[0]
      const payload = await http.createPaymentPayload(offer)
      const { authorization } = payload.payload as { authorization?: Record<string, unknown> }
      if (isEvm && (authorization?.value !== terms.amount || !isSameAddress(authorization.to, terms.payTo)))
        throw new WalletError('What was to be signed is not for these terms.')
      const validBefore = Number(authorization?.validBefore ?? Number.NaN)
      const header = http.encodePaymentSignatureHeader(payload)['PAYMENT-SIGNATURE']
      if (header === undefined) throw new WalletError('The service does not speak x402 version 2.')
      return { header, terms, validBefore: Number.isFinite(validBefore) ? validBefore : null }
    },
  }
}

/** What the packages say of a wrong key may repeat it. */
async function readable<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch {
    throw new WalletError(
      'This is no key: the numbers are outside of the curve, or its two halves do not belong together.',
    )
  }
}

function isSameAddress(a: unknown, b: string): boolean {
  return typeof a === 'string' && a.toLowerCase() === b.toLowerCase()
}

function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Imports an optional peer. */
async function peer<Module>(name: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new WalletError(
      `To pay, install ${name}: npm install @x402/fetch @x402/evm viem (for Solana @x402/svm @solana/kit).`,
      {
        cause,
      },
    )
  }
}
