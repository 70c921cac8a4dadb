// Reads from an EVM chain whether an EIP-3009 authorization was used.
//
// The token remembers every nonce permanently, so an authorization moves money at most once, no matter who sends it and how
// often. A use counts from the newest block on. That an authorization can no longer be used counts from final blocks only.
import { LRUCache } from 'lru-cache'
import {
  type Address,
  encodeEventTopics,
  getAddress,
  type Hash,
  type Hex,
  type Log,
  numberToHex,
  pad,
  parseAbi,
  parseEventLogs,
  slice,
} from 'viem'
import { atMost } from '../../db/cache-bound.ts'
import type { EvmNetwork } from '../../interface/networks.ts'
import { type EvmAuthorization, hexText } from '../payload.ts'
import type { SettlementIntent } from '../x402.ts'
import { isSignedByContract } from './contract-signature.ts'
import { type EvmLog, type NodeOptions, openEvmNode } from './evm-node.ts'
import { LOOK_TIMEOUT_MS, NodeError } from './node-calls.ts'
import type { Finding, Income } from './payment-network.ts'

const TOKEN = parseAbi([
  'function balanceOf(address account) view returns (uint256)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])
const [USED] = encodeEventTopics({ abi: TOKEN, eventName: 'AuthorizationUsed' })
const [CANCELED] = encodeEventTopics({ abi: TOKEN, eventName: 'AuthorizationCanceled' })

const [TRANSFER] = encodeEventTopics({ abi: TOKEN, eventName: 'Transfer' })
const CANCELLATION: Finding = { kind: 'unpaid', reason: 'authorization_canceled' }

/** A facilitator needs about 6 s of validity; with less than this it would refuse. */
const RESEND_MARGIN_SECONDS = 10
/** Seconds until the chain is asked again while an expiry is not final. On Base that takes about twenty minutes. */
const FINALITY_PACE = 20
/**
 * The payer may have used the authorization before the settlement began, but not before it was verified here, which was
 * within its validity of a few minutes. A block takes two seconds.
 */
const LOOKBACK_BLOCKS = 600n
/** Blocks of one eth_getLogs; halved as long as the node refuses the range. */
const LOG_RANGE = 2000n
/** For the income of years. An operator waits for it, and no payment. */
const INCOME_TIMEOUT_MS = 3_600_000
/** Stopped searches that are remembered. */
const MAX_SEARCHES = 1000

/** The use of an accepted authorization, as it would appear on the chain. */
export interface Usage {
  token: Address
  from: Address
  nonce: Hex
  to: Address
  value: bigint
  /** Unix seconds, by the clock of the chain. */
  validBefore: bigint
}

/** Reads one chain. Every method throws if the node does not answer, or answers in another form. */
export function openEvmReader(rpcUrl: string, options: NodeOptions = {}) {
  const node = openEvmNode(rpcUrl, options)
  const { client } = node
  const { lookMs = LOOK_TIMEOUT_MS, incomeMs = INCOME_TIMEOUT_MS } = options
  /** By authorization the block at which the next look goes on, where the last one was stopped. */
  const searches = new LRUCache<string, bigint>(atMost(MAX_SEARCHES))

  async function findSettlement(usage: Usage, intent: SettlementIntent): Promise<Finding> {
    const named = intent.transaction ? await findIn(hexText.parse(intent.transaction), usage) : null
    if (named?.kind === 'paid') return named
    const head = await node.block('latest')
    if (await isSpent(usage, head.number)) return explainUse(usage, intent, head)
    const left = Number(usage.validBefore - head.timestamp)
    if (left > RESEND_MARGIN_SECONDS) return { kind: 'open' }
    if (left > 0) return { kind: 'waiting', reason: 'about_to_expire', seconds: left + 2 }
    const final = await node.block('finalized')
    if (final.timestamp < usage.validBefore)
      return { kind: 'waiting', reason: 'expiry_not_final', seconds: FINALITY_PACE }
    // Reads the state of the final block itself: a node that is behind cannot answer, and any other cannot be wrong.
    if (await isSpent(usage, final.number)) return explainUse(usage, intent, head)
    return { kind: 'unpaid', reason: 'authorization_expired' }
  }

  function isSpent({ token, from, nonce }: Usage, blockNumber: bigint): Promise<boolean> {
    const args = [from, nonce] as const
    return client.readContract({ address: token, abi: TOKEN, functionName: 'authorizationState', args, blockNumber })
  }

  /** Finds out how the nonce was spent: for this payment, for another one, or by a cancellation. */
  async function explainUse(usage: Usage, intent: SettlementIntent, head: Head): Promise<Finding> {
    const log = await findSpending(usage, firstBlock(intent, head), head.number)
    const found = log && (log.topics[0] === CANCELED ? CANCELLATION : await findIn(log.transactionHash, usage))
    if (!found) return { kind: 'waiting', reason: 'use_not_found', seconds: 10 }
    if (found.kind === 'paid') return found
    const final = await node.block('finalized')
    return log.blockNumber <= final.number
      ? found
      : { kind: 'waiting', reason: 'use_not_final', seconds: FINALITY_PACE }
  }

  /** The log of the nonce's use or cancellation. */
  async function findSpending({ token, from, nonce }: Usage, first: bigint, last: bigint) {
    const topics = [[USED, CANCELED], pad(from), nonce]
    const search = `${token} ${from} ${nonce}`
    const begin = searches.get(search) ?? first
    const stopped = (next: bigint) => searches.set(search, next)
    const [log] = await readLogs(token, topics, begin, last, { ms: lookMs, one: true, stopped })
    // A node may have left a block out. Where nothing is found, the next look therefore begins anew.
    searches.delete(search)
    return log
  }

  /**
   * Reads logs in ranges that the node accepts. A node that is too slow for all of them has failed.
   * @param options.one stops after the first range with a log
   * @param options.stopped gets the block that could not be read any more
   */
  async function readLogs(
    address: Address,
    topics: object,
    first: bigint,
    last: bigint,
    options: { ms: number; one?: true; stopped?: (next: bigint) => void },
  ) {
    const end = performance.now() + options.ms
    const found: EvmLog[] = []
    let range = LOG_RANGE
    let from = first
    while (from <= last) {
      const to = from + range - 1n < last ? from + range - 1n : last
      try {
        found.push(...(await node.logs({ address, topics, fromBlock: numberToHex(from), toBlock: numberToHex(to) })))
        from = to + 1n
      } catch (error) {
        if (range <= 10n) {
          options.stopped?.(from)
          throw error
        }
        range /= 2n
      }
      if (from > last || (options.one && found.length > 0)) break
      if (performance.now() < end) continue
      options.stopped?.(from)
      throw new NodeError('too_slow')
    }
    return found
  }

  /**
   * Whether this transaction used the authorization, and for which transfer. A payer can sign one nonce twice, and send the
   * false one and a true payment of another request in one transaction: only the transfer directly after the use of this
   * nonce belongs to it.
   */
  async function findIn(hash: Hash, usage: Usage): Promise<Finding | null> {
    const receipt = await node.receipt(hash)
    if (receipt?.status !== '0x1') return null
    // Sound: the members that are missing say where a log is, and are not read.
    const logs = receipt.logs.filter((log) => sameAddress(log.address, usage.token)) as unknown as Log<bigint, number>[]
    const [use] = parseEventLogs({ abi: TOKEN, eventName: 'AuthorizationUsed', logs, args: authorizationOf(usage) })
    if (!use) return null
    const following = logs.filter((log) => log.logIndex === use.logIndex + 1)
    const [transfer] = parseEventLogs({ abi: TOKEN, eventName: 'Transfer', logs: following })
    const ours =
      transfer !== undefined &&
      sameAddress(transfer.args.from, usage.from) &&
      sameAddress(transfer.args.to, usage.to) &&
      transfer.args.value === usage.value
    return ours
      ? { kind: 'paid', transaction: hash.toLowerCase(), logIndex: use.logIndex }
      : { kind: 'unpaid', reason: 'authorization_used_elsewhere' }
  }

  /** Transfers to the address `to`, from the block of one transaction to that of another. */
  async function income(token: Address, to: Address, between: [Hash, Hash]): Promise<Income[]> {
    const receipts = await Promise.all(between.map((hash) => node.receipt(hash)))
    const [first, last] = receipts.map((receipt) => receipt?.blockNumber)
    if (first === undefined || last === undefined) throw new Error('the node does not know the transactions')
    const logs = await readLogs(token, [TRANSFER, null, pad(to)], first, last, { ms: incomeMs })
    return logs.map((log) => ({
      transaction: log.transactionHash,
      from: getAddress(slice(log.topics[1] ?? '0x', 12)),
      amount: BigInt(log.data),
    }))
  }

  return {
    findSettlement,
    findIn,
    income,
    balance: (token: Address, account: Address): Promise<bigint> =>
      client.readContract({ address: token, abi: TOKEN, functionName: 'balanceOf', args: [account] }),
    height: async () => Number(await client.getBlockNumber()),
    chainId: () => client.getChainId(),
    hasCode: async (address: Address) => ((await client.getCode({ address })) ?? '0x') !== '0x',
    finality: async () => Number((await node.block('finalized')).number),
    isSignedByContract: (id: EvmNetwork, payment: EvmAuthorization) => isSignedByContract(client, id, payment),
  }
}
export type EvmReader = ReturnType<typeof openEvmReader>

interface Head {
  number: bigint
  timestamp: bigint
}

/** The first block that may hold a use; estimated from the clock if the intent has no height. */
function firstBlock({ at, block }: SettlementIntent, head: Head): bigint {
  const since = head.timestamp > BigInt(at) ? head.timestamp - BigInt(at) : 0n
  const noted = block === null ? head.number - since : BigInt(block)
  return noted > LOOKBACK_BLOCKS ? noted - LOOKBACK_BLOCKS : 0n
}

function authorizationOf({ from, nonce }: Usage) {
  return { authorizer: from, nonce }
}

function sameAddress(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}
