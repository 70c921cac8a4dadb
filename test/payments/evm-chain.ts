// A local EVM chain that looks like Base or Base Sepolia: with its chain id, and a token at the address of USDC.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import {
  type Abi,
  type Address,
  createPublicClient,
  createTestClient,
  createWalletClient,
  defineChain,
  encodeFunctionData,
  type Hash,
  http,
  parseEther,
  publicActions,
  TransactionReceiptNotFoundError,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { EVM_NETWORKS, type EvmNetwork } from '../../server/interface/networks.ts'
import { endWithProcess } from '../children.ts'
import { until } from '../until.ts'

interface Compiled {
  abi: Abi
  runtime: `0x${string}`
}
const compiled = JSON.parse(readFileSync(join(import.meta.dirname, 'contracts/compiled.json'), 'utf8')) as {
  TestUSDC: Compiled
  MiniMulticall: Compiled
}
export const TOKEN_ABI = compiled.TestUSDC.abi
/** The address at which the x402 facilitator's diagnostics expect it on every chain. */
const MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11'

export type EvmChain = Awaited<ReturnType<typeof openEvmChain>>

export async function openEvmChain(network: EvmNetwork) {
  const id = Number(network.split(':')[1])
  const { asset: token, name } = EVM_NETWORKS[network].usdc
  const anvil = await startAnvil(id)
  const chain = defineChain({
    id,
    name: network,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [anvil.url] } },
  })
  const transport = http(anvil.url, { retryCount: 0 })
  const reader = createPublicClient({ chain, transport, pollingInterval: 20, cacheTime: 0 })
  const controls = createTestClient({ chain, mode: 'anvil', transport })
  const walletOf = (account: PrivateKeyAccount) =>
    createWalletClient({ account, chain, transport, pollingInterval: 20, cacheTime: 0 }).extend(publicActions)

  await controls.setCode({ address: token, bytecode: compiled.TestUSDC.runtime })
  await controls.setCode({ address: MULTICALL3, bytecode: compiled.MiniMulticall.runtime })
  const treasurer = walletOf(await openAccount())
  await send('initialize', [name])

  /** A key whose address can pay for gas. */
  async function openAccount() {
    const account = privateKeyToAccount(generatePrivateKey())
    await controls.setBalance({ address: account.address, value: parseEther('10') })
    return account
  }

  /** Calls the token, and waits for the block. */
  async function send(functionName: string, args: unknown[], wallet = treasurer) {
    const hash = await wallet.writeContract({ address: token, abi: TOKEN_ABI, functionName, args })
    return receiptOf(hash)
  }

  /**
   * Waits until the transaction is in a block. viem's own wait misses a block that comes while it reads the one before, and then
   * waits for one more, which does not come on a chain that makes a block for each transaction.
   */
  function receiptOf(hash: Hash) {
    return until(async () => {
      try {
        return await reader.getTransactionReceipt({ hash })
      } catch (error) {
        if (error instanceof TransactionReceiptNotFoundError) return undefined
        throw error
      }
    })
  }

  return {
    network,
    id,
    token,
    url: anvil.url,
    reader,
    controls,
    walletOf,
    openAccount,
    send,
    receiptOf,
    /** Several calls of the token in one transaction. */
    async sendTogether(calls: { functionName: string; args: unknown[] }[]) {
      const bundle = calls.map((call) => ({ target: token, callData: encodeFunctionData({ abi: TOKEN_ABI, ...call }) }))
      const { abi } = compiled.MiniMulticall
      const call = { address: MULTICALL3, abi, functionName: 'tryAggregate', args: [true, bundle] } as const
      return receiptOf(await treasurer.writeContract(call))
    },
    mint: (to: Address, amount: bigint) => send('mint', [to, amount]),
    async balanceOf(address: Address): Promise<bigint> {
      const call = { address: token, abi: TOKEN_ABI, functionName: 'balanceOf', args: [address] }
      return (await reader.readContract(call)) as bigint
    },
    /** Moves the chain's clock past this time, and makes that final. @param time Unix seconds */
    async passTime(time: number) {
      await controls.setNextBlockTimestamp({ timestamp: BigInt(time) })
      await controls.mine({ blocks: BLOCKS_TO_FINAL })
    },
    makeFinal: () => controls.mine({ blocks: BLOCKS_TO_FINAL }),
    [Symbol.asyncDispose]: anvil[Symbol.asyncDispose],
  }
}

/** With epochs of one slot, a block is final two blocks later. */
const BLOCKS_TO_FINAL = 3

async function startAnvil(chainId: number) {
  const platform = `@foundry-rs/anvil-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
  // The wrapper's install script would only link the same file.
  const wrapper = createRequire(createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json'))
  const folder = dirname(wrapper.resolve(`${platform}/package.json`))
  const args = ['--host', '127.0.0.1', '--port', '0', '--chain-id', String(chainId), '--slots-in-an-epoch', '1']
  const child = spawn(join(folder, 'bin', 'anvil'), args, { stdio: ['ignore', 'pipe', 'ignore'] })
  endWithProcess(child)
  const lines = createInterface({ input: child.stdout })
  const url = await new Promise<string>((resolve, reject) => {
    lines.on('line', (line) => {
      const address = /Listening on (127\.0\.0\.1:\d+)/.exec(line)?.[1]
      if (address) resolve(`http://${address}`)
    })
    child.once('exit', (code) => reject(new Error(`anvil ended with ${code}`)))
  })
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}
