// A node that answers logs of a few blocks at a time, or names a block that does not exist, takes a bounded time of one look. The next
// look goes on where the time was over.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { encodeAbiParameters, encodeEventTopics, type Hex, numberToHex, parseAbi } from 'viem'
import { openEvmReader, type Usage } from '../../server/payments/chains/evm-reader.ts'
import { NodeError } from '../../server/payments/chains/node-calls.ts'

const AT = 1_800_000_000
const usage: Usage = {
  token: `0x${'11'.repeat(20)}`,
  from: `0x${'22'.repeat(20)}`,
  to: `0x${'33'.repeat(20)}`,
  nonce: `0x${'44'.repeat(32)}`,
  value: 30_000n,
  validBefore: BigInt(AT + 300),
}
const hash: Hex = `0x${'55'.repeat(32)}`
/** The transaction of a block before all others. */
const FIRST: Hex = `0x${'66'.repeat(32)}`
const intent = { at: AT, block: 600, transaction: null }
const [CANCELED] = encodeEventTopics({
  abi: parseAbi(['event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)']),
  eventName: 'AuthorizationCanceled',
})

interface Filter {
  fromBlock: Hex
  toBlock: Hex
}

/** A node whose newest block is `head`, with a cancellation of the authorization in the block `canceledIn`. */
async function openNode(t: Test, head: bigint, canceledIn: bigint | null = null) {
  const asked: [from: bigint, to: bigint][] = []
  const log = {
    address: usage.token,
    topics: [CANCELED, `0x${'0'.repeat(24)}${usage.from.slice(2)}`, usage.nonce],
    data: '0x',
    logIndex: '0x0',
    transactionHash: hash,
    blockNumber: canceledIn !== null && numberToHex(canceledIn),
  }
  const answers: Record<string, (params: (Hex & Filter)[]) => unknown> = {
    eth_getBlockByNumber: () => ({ number: numberToHex(head), timestamp: numberToHex(AT + 600) }),
    eth_call: () => encodeAbiParameters([{ type: 'bool' }], [true]),
    eth_getTransactionReceipt: ([id]) => ({
      status: '0x1',
      blockNumber: id === FIRST ? '0x1' : numberToHex(head),
      logs: [],
    }),
    eth_getLogs: ([filter]) => {
      const [from, to] = [BigInt(filter?.fromBlock ?? 0), BigInt(filter?.toBlock ?? 0)]
      asked.push([from, to])
      return canceledIn !== null && from <= canceledIn && canceledIn <= to ? [log] : []
    },
  }
  const server = createServer(async (request, response) => {
    const { id, method, params } = (await json(request)) as { id: number; method: string; params: never }
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method]?.(params) }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  })
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

t.test('a look whose blocks have no end is a failure of the node', async (t) => {
  const { url } = await openNode(t, 2n ** 60n)
  await t.rejects(openEvmReader(url, { lookMs: 50 }).findSettlement(usage, intent), NodeError)
})

t.test('income whose blocks have no end is a failure of the node', async (t) => {
  const { url } = await openNode(t, 2n ** 60n)
  const reader = openEvmReader(url, { incomeMs: 50 })
  await t.rejects(reader.income(usage.token, usage.to, [FIRST, hash]), NodeError)
})

t.test('a look goes on where the last one had no more time, and then finds what was there', async (t) => {
  const { url, asked } = await openNode(t, 20_000n, 9000n)
  const reader = openEvmReader(url, { lookMs: 0 })
  for (let look = 0; look < 4; look++) await t.rejects(reader.findSettlement(usage, intent), NodeError)
  t.same(await reader.findSettlement(usage, intent), { kind: 'unpaid', reason: 'authorization_canceled' })
  t.same(
    asked.map(([from]) => from),
    [0n, 2000n, 4000n, 6000n, 8000n],
    'each range is asked for once',
  )
})

t.test('a search that found nothing begins anew: the node may have left a block out', async (t) => {
  const { url, asked } = await openNode(t, 3999n)
  const reader = openEvmReader(url, { lookMs: 0 })
  for (let time = 0; time < 2; time++) {
    await t.rejects(reader.findSettlement(usage, intent), NodeError)
    t.match(await reader.findSettlement(usage, intent), { kind: 'waiting', reason: 'use_not_found' })
  }
  t.same(
    asked.map(([from]) => from),
    [0n, 2000n, 0n, 2000n],
  )
})
