// The state of one authorization as the reader finds it on the chain.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import t from 'tap'
import { openEvmReader, type Usage } from '../../server/payments/chains/evm-reader.ts'
import {
  type Authorization,
  cancelAuthorization,
  newNonce,
  sendAuthorization,
  sign,
  transferArguments,
} from './authorizations.ts'
import { openEvmChain } from './evm-chain.ts'

const chain = await openEvmChain('eip155:84532')
t.teardown(() => chain[Symbol.asyncDispose]())
const reader = openEvmReader(chain.url)
const wallet = await chain.openAccount()
await chain.mint(wallet.address, 1_000_000n)
const payTo = (await chain.openAccount()).address

async function prepare(changes: Partial<Authorization> = {}) {
  const { timestamp, number } = await chain.reader.getBlock()
  const authorization: Authorization = {
    from: wallet.address,
    to: payTo,
    value: '30000',
    validAfter: '0',
    validBefore: String(timestamp + 300n),
    nonce: newNonce(),
    ...changes,
  }
  const usage: Usage = {
    token: chain.token,
    from: wallet.address,
    nonce: authorization.nonce,
    to: payTo,
    value: 30_000n,
    validBefore: BigInt(authorization.validBefore),
  }
  const intent = { at: Number(timestamp), block: Number(number), transaction: null }
  return { authorization, usage, intent }
}

t.test('unused: open, then about to expire, then expired, and at last final', async (t) => {
  const before = await chain.controls.snapshot()
  const { usage, intent } = await prepare()
  t.same(await reader.findSettlement(usage, intent), { kind: 'open' })
  const passTo = async (time: bigint) => {
    await chain.controls.setNextBlockTimestamp({ timestamp: time })
    await chain.controls.mine({ blocks: 1 })
  }
  await passTo(usage.validBefore - 5n)
  t.same(await reader.findSettlement(usage, intent), { kind: 'waiting', reason: 'about_to_expire', seconds: 7 })
  await passTo(usage.validBefore)
  t.match(await reader.findSettlement(usage, intent), { kind: 'waiting', reason: 'expiry_not_final' })
  await chain.makeFinal()
  t.same(await reader.findSettlement(usage, intent), { kind: 'unpaid', reason: 'authorization_expired' })
  await chain.controls.revert({ id: before })
})

t.test('used by any sender, before or after the intent: paid, with the transaction', async (t) => {
  const { authorization, usage, intent } = await prepare()
  const { transactionHash: transaction, blockNumber } = await sendAuthorization(
    chain,
    await sign(chain, wallet, authorization),
  )
  t.same(await reader.findSettlement(usage, intent), { kind: 'paid', transaction, logIndex: 0 })
  t.same(await reader.findSettlement(usage, { ...intent, block: Number(blockNumber) + 20 }), {
    kind: 'paid',
    transaction,
    logIndex: 0,
  })
  t.same(await reader.findSettlement(usage, { ...intent, block: null }), { kind: 'paid', transaction, logIndex: 0 })
  t.same(
    await reader.findSettlement(usage, { ...intent, transaction }),
    { kind: 'paid', transaction, logIndex: 0 },
    'found by the named transaction',
  )
  const { transactionHash: wrong } = await chain.mint(payTo, 1n)
  t.same(
    await reader.findSettlement(usage, { ...intent, transaction: wrong }),
    { kind: 'paid', transaction, logIndex: 0 },
    'found although a wrong transaction is named',
  )
})

t.test('a transfer of another authorization in the same transaction does not count', async (t) => {
  const ours = await prepare()
  const elsewhere = await sign(chain, wallet, { ...ours.authorization, to: (await chain.openAccount()).address })
  const other = await prepare()
  const calls = [elsewhere, await sign(chain, wallet, other.authorization)]
  const { transactionHash: transaction } = await chain.sendTogether(
    calls.map((signed) => ({ functionName: 'transferWithAuthorization', args: transferArguments(signed) })),
  )
  t.same(await reader.findSettlement(other.usage, other.intent), { kind: 'paid', transaction, logIndex: 2 })
  t.match(await reader.findSettlement(ours.usage, ours.intent), { kind: 'waiting', reason: 'use_not_final' })
  await chain.makeFinal()
  t.same(await reader.findSettlement(ours.usage, ours.intent), {
    kind: 'unpaid',
    reason: 'authorization_used_elsewhere',
  })
})

t.test('used for another value: unpaid', async (t) => {
  const { authorization, usage, intent } = await prepare()
  await sendAuthorization(chain, await sign(chain, wallet, { ...authorization, value: '29999' }))
  await chain.makeFinal()
  t.same(await reader.findSettlement(usage, intent), { kind: 'unpaid', reason: 'authorization_used_elsewhere' })
})

t.test('cancelled: unpaid once the cancellation is final', async (t) => {
  const { usage, intent } = await prepare()
  await cancelAuthorization(chain, wallet, usage.nonce)
  t.match(await reader.findSettlement(usage, intent), { kind: 'waiting', reason: 'use_not_final' })
  await chain.makeFinal()
  t.same(await reader.findSettlement(usage, intent), { kind: 'unpaid', reason: 'authorization_canceled' })
})

/** A node that answers the logs of at most so many blocks at once. */
async function openMeanNode(blocks: number) {
  const server = createServer(async (request, response) => {
    const call = (await json(request)) as {
      id: number
      method: string
      params: { fromBlock: string; toBlock: string }[]
    }
    const [range] = call.params
    if (call.method === 'eth_getLogs' && range && Number(range.toBlock) - Number(range.fromBlock) >= blocks) {
      const error = { code: -32_600, message: `up to a ${blocks} block range` }
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, error }))
    }
    const headers = { 'content-type': 'application/json' }
    response.end(await (await fetch(chain.url, { method: 'POST', headers, body: JSON.stringify(call) })).text())
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

t.test('a node that answers logs of few blocks at a time', async (t) => {
  await using node = await openMeanNode(10)
  const { authorization, usage, intent } = await prepare()
  await chain.controls.mine({ blocks: 100 })
  const { transactionHash: transaction } = await sendAuthorization(chain, await sign(chain, wallet, authorization))
  t.same(await openEvmReader(node.url).findSettlement(usage, intent), { kind: 'paid', transaction, logIndex: 0 })
})

t.test('a node that does not answer: every method throws', async (t) => {
  const { usage, intent } = await prepare()
  await t.rejects(openEvmReader('http://127.0.0.1:9').findSettlement(usage, intent))
})
