// Purchases over MCP with real settlement: on a local EVM chain and a local Solana ledger, through real facilitators.
import { randomUUID } from 'node:crypto'
import { generateKeyPairSigner } from '@solana/kit'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { x402Client } from '@x402/fetch'
import { ExactSvmScheme } from '@x402/svm/exact/client'
import t from 'tap'
import { SOLANA_DEVNET } from '../../server/interface/networks.ts'
import { deeds } from '../payments/evm-facilitator.ts'
import { openEvmHarness, PRICE } from '../payments/evm-harness.ts'
import { openSolanaHarness } from '../payments/solana-harness.ts'
import { CLIENTS } from './clients.ts'
import { openInspector } from './inspector.ts'
import {
  callTool,
  expectCompleted,
  expectNonCompleted,
  KEY,
  type Manner,
  newArgs,
  PAYMENT,
  payByClient,
  post,
  readAnswer,
  type ToolResult,
  termsOf,
} from './paid-tool.ts'

const TASKS: Manner = { modern: true, capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }

t.test('purchases on an EVM chain are charged once', async (t) => {
  await using harness = await openEvmHarness()
  const url = harness.system.url('/')
  const openPurse = async () => {
    const account = await harness.chain.openAccount()
    await harness.chain.mint(account.address, 10n * PRICE)
    const wallet = new x402Client().register(harness.chain.network, new ExactEvmScheme(account))
    return { wallet, spent: async () => 10n * PRICE - (await harness.chain.balanceOf(account.address)) }
  }

  for (const [name, open] of Object.entries(CLIENTS)) {
    const { wallet, spent } = await openPurse()
    await using client = await open(url)
    const args = newArgs(harness.system.site)
    const answer = await payByClient((params) => client.call(params), args, wallet)
    const { result } = expectCompleted(t, answer)
    t.match(result.payment, { network: harness.chain.network, mode: 'testnet', simulated: false })
    t.match(answer._meta?.['x402/payment-response'], { success: true, transaction: result.payment.transaction })
    t.equal(await spent(), PRICE, name)
  }

  await using inspector = await openInspector(url)
  for (const era of ['legacy', 'modern']) {
    const { wallet, spent } = await openPurse()
    const args = newArgs(harness.system.site)
    const key = `${KEY}="${randomUUID()}"`
    const asked = await inspector.buy(era, args, key)
    t.equal(asked.code, 5, asked.errors)
    const payment = await wallet.createPaymentPayload(termsOf(asked.printed?.result as ToolResult))
    const bought = await inspector.buy(era, args, key, `${PAYMENT}=${JSON.stringify(payment)}`)
    t.equal(bought.code, 0, bought.errors)
    const { result } = expectCompleted(t, bought.printed?.result as ToolResult)
    t.match(result.payment, { network: harness.chain.network, mode: 'testnet', simulated: false })
    t.equal(await spent(), PRICE, `inspector, ${era}`)
  }

  const { wallet, spent } = await openPurse()
  const args = newArgs(harness.system.site)
  const meta = { [KEY]: randomUUID() }
  const payment = await wallet.createPaymentPayload(termsOf(await callTool(url, { args, meta })))
  const paid = { args, meta: { ...meta, [PAYMENT]: payment }, ...TASKS }
  // The facilitator settles without answering, and the chain does not answer either.
  harness.facilitator.script.push(deeds.lostAfter)
  harness.rpc.shut = true
  const task = await callTool(url, paid)
  t.equal(task.resultType, 'task')
  await harness.logLines.next('settlement', { outcome: 'unknown' })
  for (const again of [paid, { ...paid, meta }, { ...paid, meta: { ...meta, [PAYMENT]: await otherPayment() } }])
    t.equal((await callTool(url, again)).taskId, task.taskId, 'the caller is not asked to pay again')
  harness.rpc.shut = false
  await harness.hurry()
  expectCompleted(t, await callTool(url, { args, meta }))
  const done = await readAnswer(await post(url, 'tasks/get', { taskId: task.taskId as string }, TASKS))
  t.equal(done.result?.status, 'completed')
  t.equal(await spent(), PRICE, 'charged once')

  async function otherPayment() {
    const { wallet: other } = await openPurse()
    return other.createPaymentPayload(termsOf(await callTool(url, { args: newArgs(harness.system.site) })))
  }
})

t.test('purchases on a Solana ledger, where the terms name their request', async (t) => {
  await using harness = await openSolanaHarness()
  const url = harness.system.url('/')
  const openPurse = async () => {
    const signer = await generateKeyPairSigner()
    await harness.ledger.fund(signer.address, 10n * PRICE)
    const scheme = new ExactSvmScheme(signer, { rpcUrl: harness.ledger.url })
    const wallet = new x402Client().register(SOLANA_DEVNET, scheme)
    return { wallet, spent: async () => 10n * PRICE - (await harness.ledger.balanceOf(signer.address)) }
  }

  for (const [name, open] of Object.entries(CLIENTS)) {
    const { wallet, spent } = await openPurse()
    await using client = await open(url)
    const answer = await payByClient((params) => client.call(params), newArgs(harness.system.site), wallet)
    t.match(expectCompleted(t, answer).result.payment, { network: SOLANA_DEVNET, simulated: false })
    t.equal(await spent(), PRICE, name)
  }

  const { wallet, spent } = await openPurse()
  const args = newArgs(harness.system.site)
  const asked = await callTool(url, { args })
  const payment = await wallet.createPaymentPayload(termsOf(asked))
  const paid = { args, meta: { [PAYMENT]: payment } }
  const answers = await Promise.all([callTool(url, paid), callTool(url, paid)])
  const [first, second] = answers.map((answer) => expectCompleted(t, answer).bytes)
  t.equal(first, second, 'the same payment twice is one purchase')
  const byKey = await callTool(url, { args, meta: { [KEY]: asked._meta?.[KEY] } })
  t.equal(expectCompleted(t, byKey).bytes, first, 'under the key that came with its terms')
  t.equal(await spent(), PRICE)

  // The chain publishes the request that a payment names. Another payer whose payment names it gets nothing.
  const { wallet: stranger } = await openPurse()
  const own = await stranger.createPaymentPayload(termsOf(await callTool(url, { args: newArgs(harness.system.site) })))
  for (const change of [{ amount: '1' }, {}]) {
    const accepted = { ...payment.accepted, ...change }
    const fished = await callTool(url, { args, meta: { [PAYMENT]: { ...own, accepted } } })
    expectNonCompleted(t, fished, 'failed', 'payment_conflict')
    t.notOk(fished._meta?.[KEY] ?? fished._meta?.['service/recovery-token'])
  }

  // A payment for terms that were made for a key, sent without the key: the request is not found, so new terms are sent.
  const { wallet: later } = await openPurse()
  const keyed = await callTool(url, { args, meta: { [KEY]: randomUUID() } })
  const astray = await later.createPaymentPayload(termsOf(keyed))
  const again = await callTool(url, { args, meta: { [PAYMENT]: astray } })
  const retried = await later.createPaymentPayload(termsOf(again))
  expectCompleted(t, await callTool(url, { args, meta: { [PAYMENT]: retried } }))
})
