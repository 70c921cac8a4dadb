// A local stand-in for Solana devnet: LiteSVM, behind the JSON-RPC methods that clients, facilitators and this service call.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import {
  type Address,
  address,
  appendTransactionMessageInstruction,
  type Blockhash,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  getBase64Encoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
  type Transaction,
} from '@solana/kit'
import {
  AccountState,
  findAssociatedTokenPda,
  getMintEncoder,
  getTokenDecoder,
  getTokenEncoder,
  TOKEN_PROGRAM_ADDRESS,
  type TokenArgs,
} from '@solana-program/token'
import { FailedTransactionMetadata, LiteSVM } from 'litesvm'

export const MINT = address('4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU')
const MEMO_PROGRAM = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'
const GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG'

interface Landed {
  signature: string
  err: object | null
  accounts: readonly string[]
  memo: string | null
  bytes: string
  before: Balance[]
  after: Balance[]
}
interface Balance {
  mint: string
  owner: string
  uiTokenAmount: { amount: string }
}

export type SolanaLedger = Awaited<ReturnType<typeof openSolanaLedger>>

export async function openSolanaLedger() {
  // The library contains another release of the same types.
  const svm = new LiteSVM() as unknown as LiteSvm
  const state = { confirms: true, genesis: GENESIS }
  const landed: Landed[] = []
  const calls: string[] = []
  setTime(Math.floor(Date.now() / 1000))

  function setTime(unixSeconds: number) {
    const clock = svm.getClock()
    clock.unixTimestamp = BigInt(unixSeconds)
    svm.setClock(clock)
  }
  function put(at: Address, data: Uint8Array, programAddress: Address = TOKEN_PROGRAM_ADDRESS) {
    const space = BigInt(data.length)
    svm.setAccount({
      address: at,
      data,
      executable: false,
      lamports: 10_000_000n,
      programAddress,
      space,
    })
  }
  const supply = { supply: 10n ** 12n, decimals: 6, isInitialized: true, freezeAuthority: null }
  const mintAuthority = (await generateKeyPairSigner()).address
  put(MINT, new Uint8Array(getMintEncoder().encode({ mintAuthority, ...supply })))
  const accountOf = async (owner: Address) =>
    (await findAssociatedTokenPda({ mint: MINT, owner, tokenProgram: TOKEN_PROGRAM_ADDRESS }))[0]

  const decode = (base64: string) => getTransactionDecoder().decode(getBase64Encoder().encode(base64))
  function balancesOf(accounts: readonly string[]): Balance[] {
    return accounts.flatMap((at) => {
      const account = svm.getAccount(address(at))
      if (!account.exists || account.programAddress !== TOKEN_PROGRAM_ADDRESS || account.data.length !== 165) return []
      const { mint, owner, amount } = getTokenDecoder().decode(account.data)
      return [{ mint, owner, uiTokenAmount: { amount: `${amount}` } }]
    })
  }
  function land(bytes: string): string {
    const transaction = decode(bytes)
    const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes)
    const accounts = message.staticAccounts
    const memo = message.instructions.find((one) => accounts[one.programAddressIndex] === MEMO_PROGRAM)?.data
    const before = balancesOf(accounts)
    const outcome = svm.sendTransaction(transaction)
    const failed = outcome instanceof FailedTransactionMetadata
    const signature = getBase58Decoder().decode((failed ? outcome.meta() : outcome).signature())
    // A transaction that fails its blockhash or signature check never lands.
    if (failed && /Blockhash|Signature|AlreadyProcessed/.test(`${outcome.err()}`)) throw new Error(`${outcome.err()}`)
    const err = failed ? { InstructionError: [0, 'Custom'] } : null
    landed.unshift({
      signature,
      err,
      accounts,
      memo: memo ? new TextDecoder().decode(memo) : null,
      bytes,
      before,
      after: balancesOf(accounts),
    })
    return signature
  }

  const context = (value: unknown) => ({ context: { slot: Number(svm.getClock().slot), apiVersion: '2.0.0' }, value })
  const status = ({ err }: Landed) => ({
    slot: 1,
    confirmations: null,
    err,
    status: err ? { Err: err } : { Ok: null },
    confirmationStatus: 'finalized',
  })
  const find = (signature: string) => (state.confirms ? landed.find((one) => one.signature === signature) : undefined)
  const methods: Record<string, (params: [string, ...unknown[]]) => unknown> = {
    getGenesisHash: () => state.genesis,
    getSlot: () => Number(svm.getClock().slot),
    getBlockHeight: () => 1000,
    getBlockTime: () => Number(svm.getClock().unixTimestamp),
    getLatestBlockhash: () => context({ blockhash: svm.latestBlockhash(), lastValidBlockHeight: 1150 }),
    isBlockhashValid: ([blockhash]) => context(blockhash === svm.latestBlockhash()),
    getAccountInfo: ([at]) => {
      const account = svm.getAccount(address(at))
      if (!account.exists) return context(null)
      const { data, executable, lamports, programAddress: owner } = account
      const base64 = [Buffer.from(data).toString('base64'), 'base64']
      return context({ data: base64, executable, lamports: Number(lamports), owner, rentEpoch: 0, space: data.length })
    },
    simulateTransaction: ([bytes]) => {
      // The fee payer has not signed yet.
      svm.withSigverify(false)
      try {
        const outcome = svm.simulateTransaction(decode(bytes))
        const failed = outcome instanceof FailedTransactionMetadata
        const meta = outcome.meta()
        const unitsConsumed = Number(meta.computeUnitsConsumed())
        const err = failed ? `${outcome.err()}` || 'failed' : null
        return context({ err, logs: meta.logs(), accounts: null, unitsConsumed, returnData: null })
      } finally {
        svm.withSigverify(true)
      }
    },
    sendTransaction: ([bytes]) => land(bytes),
    getSignatureStatuses: ([signatures]) =>
      context(
        (signatures as unknown as string[]).map((signature) =>
          find(signature) ? status(find(signature) as Landed) : null,
        ),
      ),
    getSignaturesForAddress: ([at]) =>
      landed
        .filter((one) => state.confirms && one.accounts.includes(at))
        .map(({ signature, err, memo }) => ({
          signature,
          err,
          memo: memo === null ? null : `[${memo.length}] ${memo}`,
          slot: 1,
          blockTime: Number(svm.getClock().unixTimestamp),
          confirmationStatus: 'finalized',
        })),
    getTransaction: ([signature]) => {
      const one = find(signature)
      if (!one) return null
      const meta = { err: one.err, fee: 5000, preTokenBalances: one.before, postTokenBalances: one.after }
      return { slot: 1, blockTime: 1, version: 0, transaction: [one.bytes, 'base64'], meta }
    },
  }
  const server = createServer(async (request, response) => {
    const { id, method, params } = (await json(request)) as { id: number; method: string; params?: [string] }
    calls.push(method)
    response.setHeader('content-type', 'application/json')
    const perform = methods[method]
    try {
      if (!perform) throw new Error(`no ${method}`)
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: perform(params ?? ['']) }))
    } catch (error) {
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_000, message: `${error}` } }))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    landed,
    calls,
    setTime,
    accountOf,
    /** Makes the token account of an owner, with this balance. @param program whose account it is */
    async fund(owner: Address, amount: bigint, changes: Partial<TokenArgs> = {}, program?: Address) {
      const account: TokenArgs = {
        mint: MINT,
        owner,
        amount,
        delegate: null,
        state: AccountState.Initialized,
        isNative: null,
        delegatedAmount: 0n,
        closeAuthority: null,
        ...changes,
      }
      put(await accountOf(owner), new Uint8Array(getTokenEncoder().encode(account)), program)
    },
    async balanceOf(owner: Address): Promise<bigint> {
      const account = svm.getAccount(await accountOf(owner))
      return account.exists ? getTokenDecoder().decode(account.data).amount : 0n
    },
    /** Sends a transaction that is not a payment; answers its id. */
    async landMemo(): Promise<string> {
      const signer = await generateKeyPairSigner()
      svm.airdrop(signer.address, 1_000_000_000n)
      const lifetime = { blockhash: svm.latestBlockhash() as Blockhash, lastValidBlockHeight: 1150n }
      const memo = { programAddress: address(MEMO_PROGRAM), data: new TextEncoder().encode('hello') }
      const message = pipe(
        createTransactionMessage({ version: 0 }),
        (made) => setTransactionMessageFeePayerSigner(signer, made),
        (made) => setTransactionMessageLifetimeUsingBlockhash(lifetime, made),
        (made) => appendTransactionMessageInstruction(memo, made),
      )
      return land(getBase64EncodedWireTransaction(await signTransactionMessageWithSigners(message)))
    },
    /** Gives an account lamports to pay fees with. */
    airdrop: (to: Address) => void svm.airdrop(to, 1_000_000_000n),
    /** Lets the current blockhash expire, and moves the clock by as much. */
    expireBlockhash() {
      svm.expireBlockhash()
      setTime(Number(svm.getClock().unixTimestamp) + 120)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  })
}

/** The used part of LiteSVM, in the types of the project's release of @solana/kit. */
interface LiteSvm {
  getClock(): { slot: bigint; unixTimestamp: bigint }
  setClock(clock: { slot: bigint; unixTimestamp: bigint }): void
  getAccount(
    at: Address,
  ):
    | { exists: false }
    | { exists: true; data: Uint8Array; programAddress: Address; executable: boolean; lamports: bigint }
  setAccount(account: object): void
  latestBlockhash(): string
  expireBlockhash(): void
  airdrop(to: Address, lamports: bigint): unknown
  withSigverify(on: boolean): void
  sendTransaction(transaction: Transaction): Outcome
  simulateTransaction(transaction: Transaction): { meta(): Meta; err?(): unknown }
}
interface Meta {
  signature(): Uint8Array
  logs(): string[]
  computeUnitsConsumed(): bigint
}
type Outcome = Meta | FailedTransactionMetadata
