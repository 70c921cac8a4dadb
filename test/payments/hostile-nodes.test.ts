// Nodes of chains that answer without end, slowly, elsewhere, or in other types: each is a failure of the node, and none decides about
// a payment.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { getBase58Decoder, getBase58Encoder } from '@solana/kit'
import { TOKEN_PROGRAM_ADDRESS } from '@solana-program/token'
import t from 'tap'
import { encodeAbiParameters, encodeEventTopics, type Hex, parseAbi } from 'viem'
import { SOLANA_DEVNET } from '../../server/interface/networks.ts'
import { openEvmReader, type Usage } from '../../server/payments/chains/evm-reader.ts'
import { openSolanaNetwork } from '../../server/payments/chains/solana.ts'
import type { PaymentPayload } from '../../server/payments/x402.ts'
import { MINT, makeTransaction, TERMS } from './solana-payment.ts'

type Results = Record<string, unknown>
interface Call {
  id: unknown
  method: string
}

/** A node with these results, until a test gives it another answer. */
async function openNode(results: Results) {
  const node = {
    results,
    answer: null as ((call: Call, response: ServerResponse) => unknown) | null,
    calls: [] as string[],
  }
  const server = createServer(async (request, response): Promise<void> => {
    const call = (await json(request)) as Call
    node.calls.push(call.method)
    if (node.answer) return void node.answer(call, response)
    // A member that is undefined is left out.
    reply(response, { jsonrpc: '2.0', id: call.id, result: node.results[call.method] })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  })
  return Object.assign(node, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
}

function reply(response: ServerResponse, body: unknown, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const AT = 1_800_000_000
const intent = { at: AT, block: 100, transaction: null }

// On both chains the payment landed, and after it the authorization expired.
const evm = buildEvm()
const evmNode = await openNode(evm.results)
const evmReader = openEvmReader(evmNode.url, { retryMs: 0 })
const solana = await buildSolana()
const solanaNode = await openNode(solana.results)
const openNetwork = (callMs?: number) =>
  openSolanaNetwork({
    id: SOLANA_DEVNET,
    payTo: TERMS.payTo,
    rpcUrl: solanaNode.url,
    proves: true,
    ...(callMs && { callMs }),
  })
const solanaNetwork = await openNetwork()
/** With little time for a call, for answers that never end. */
const HASTE_MS = 100
const hasty = { evm: openEvmReader(evmNode.url, { callMs: HASTE_MS, retryMs: 0 }), solana: await openNetwork(HASTE_MS) }
const { payload } = solana
const identity = solanaNetwork.read(payload, TERMS).identity
const offer = {
  payload,
  // Sound: the look reads the terms and the identity alone.
  bound: { requirements: TERMS, identity },
} as unknown as Parameters<typeof solanaNetwork.findSettlement>[0]

const chains = [
  {
    about: 'EVM',
    node: evmNode,
    balance: 1n,
    balanceOf: () => evmReader.balance(evm.usage.token, evm.usage.from),
    endless: () => hasty.evm.balance(evm.usage.token, evm.usage.from),
    look: () => evmReader.findSettlement(evm.usage, intent),
    named: () => evmReader.findSettlement(evm.usage, { ...intent, transaction: evm.hash }),
  },
  {
    about: 'Solana',
    node: solanaNode,
    balance: 70_000n,
    balanceOf: () => solanaNetwork.balanceOf(solana.account),
    endless: () => hasty.solana.balanceOf(solana.account),
    look: () => solanaNetwork.findSettlement(offer, intent),
    named: () => solanaNetwork.findSettlement(offer, { ...intent, transaction: solana.signature }),
  },
]

for (const { about, node, balance, balanceOf, endless, look, named } of chains) {
  const during = async (answer: typeof node.answer, run: () => Promise<unknown>) => {
    node.answer = answer
    await run()
    node.answer = null
  }

  t.test(`${about}: what is right is found`, async (t) => {
    t.equal(await balanceOf(), balance)
    t.match(await look(), { kind: 'paid' })
    t.match(await named(), { kind: 'paid' })
  })

  t.test(`${about}: an answer without end is not read to its end, however small its pieces are`, async (t) => {
    for (const piece of [' '.repeat(65_536), ' '])
      await during(
        (_call, response) => {
          response.writeHead(200, { 'content-type': 'application/json' })
          const send = () => {
            while (!response.closed && response.write(piece));
          }
          response.on('drain', send)
          send()
        },
        () => t.rejects(endless()),
      )
  })

  t.test(`${about}: an answer that drips ends at the time of a call`, async (t) => {
    const dripping: NodeJS.Timeout[] = []
    await during(
      (_call, response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        dripping.push(setInterval(() => response.write(' '), 20))
      },
      () => t.rejects(endless()),
    )
    for (const timer of dripping) clearInterval(timer)
  })

  t.test(`${about}: a redirect is not followed, and no wait that the node names is kept`, async (t) => {
    const elsewhere = await openNode(node.results)
    for (const status of [301, 302, 303, 307, 308])
      await during(
        (_call, response) => response.writeHead(status, { location: elsewhere.url }).end(),
        () => t.rejects(balanceOf()),
      )
    t.same(elsewhere.calls, [])
    await during(
      (_call, response) => response.writeHead(503, { 'retry-after': '86400' }).end('{}'),
      () => t.rejects(balanceOf()),
    )
  })

  t.test(`${about}: no answer of another type decides`, async (t) => {
    const right = node.results
    let cases = 0
    // A look never learns of another answer to what it does not ask.
    const asking = new Map<() => Promise<{ kind: string }>, Set<string>>()
    for (const find of [look, named]) {
      node.calls.length = 0
      await find()
      asking.set(find, new Set(node.calls))
    }
    for (const method of Object.keys(right))
      for (const [path, result] of misshapen(right[method])) {
        node.results = { ...right, [method]: result }
        for (const [find, asked] of asking) {
          if (!asked.has(method)) continue
          const found = await find().catch(() => ({ kind: 'thrown' }))
          cases++
          if (!['thrown', 'waiting', 'paid', 'open'].includes(found.kind))
            t.fail(`${method}${path} as ${JSON.stringify(at(result, path))}: ${JSON.stringify(found)}`)
        }
      }
    node.results = right
    t.ok(cases > 100, `${cases} cases`)
  })

  t.test(`${about}: a payment that is not there is not found by an answer of another type`, async (t) => {
    const right = node.results
    const absent = about === 'EVM' ? evm.absent : solana.absent
    node.results = absent
    t.same((await look()).kind, 'unpaid')
    for (const method of Object.keys(absent))
      for (const [path, result] of misshapen(absent[method])) {
        node.results = { ...absent, [method]: result }
        const found = await look().catch(() => ({ kind: 'thrown' }))
        if (found.kind === 'paid') t.fail(`${method}${path} as ${JSON.stringify(at(result, path))}`)
      }
    node.results = right
  })
}

/** Every form of the value in which one member is of another type, with the path of that member. */
function* misshapen(value: unknown, path = '', name = ''): Generator<[path: string, value: unknown]> {
  for (const wrong of [undefined, null, true, false, 0, -1, 1.5, 'x', '', [], {}, [null], [[]]])
    if (!isOfType(wrong, value, name)) yield [path, wrong]
  if (Array.isArray(value))
    for (const [n, member] of value.entries())
      for (const [at, wrong] of misshapen(member, `${path}.${n}`)) yield [at, value.with(n, wrong)]
  else if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value))
      for (const [at, wrong] of misshapen(member, `${path}.${name}`, name)) yield [at, { ...value, [name]: wrong }]
}

/** What says something else, and is not of another type. */
function isOfType(wrong: unknown, right: unknown, name: string): boolean {
  if (name === 'err') return wrong === null || typeof wrong === 'string' || isObject(wrong)
  if (wrong === null) return right === null || NULLABLE.has(name)
  if (typeof wrong === 'number') return typeof right === 'number' && Number.isSafeInteger(wrong) && wrong >= 0
  if (typeof wrong === 'string') return typeof right === 'string' && TEXTS.has(name)
  if (Array.isArray(wrong)) return Array.isArray(right) && wrong.length === 0
  return typeof wrong === typeof right && isObject(wrong) === isObject(right) && !isObject(wrong)
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
const NULLABLE = new Set(['memo', 'blockTime', 'value'])
const TEXTS = new Set(['memo', 'apiVersion'])

function at(value: unknown, path: string): unknown {
  return path
    .split('.')
    .slice(1)
    .reduce((found, name) => (found as Record<string, unknown> | undefined)?.[name], value)
}

function buildEvm() {
  const abi = parseAbi([
    'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
    'event Transfer(address indexed from, address indexed to, uint256 value)',
  ])
  const usage: Usage = {
    token: `0x${'11'.repeat(20)}`,
    from: `0x${'22'.repeat(20)}`,
    to: `0x${'33'.repeat(20)}`,
    nonce: `0x${'44'.repeat(32)}`,
    value: 30_000n,
    validBefore: BigInt(AT + 300),
  }
  const hash: Hex = `0x${'55'.repeat(32)}`
  const word = (value: bigint) => encodeAbiParameters([{ type: 'uint256' }], [value])
  const place = {
    address: usage.token,
    blockHash: hash,
    blockNumber: '0x70',
    transactionHash: hash,
    transactionIndex: '0x0',
    removed: false,
  }
  const topicsOf = (eventName: 'AuthorizationUsed' | 'Transfer') =>
    eventName === 'Transfer'
      ? encodeEventTopics({ abi, eventName, args: { from: usage.from, to: usage.to } })
      : encodeEventTopics({ abi, eventName, args: { authorizer: usage.from, nonce: usage.nonce } })
  const use = { ...place, logIndex: '0x3', topics: topicsOf('AuthorizationUsed'), data: '0x' }
  const transfer = { ...place, logIndex: '0x4', topics: topicsOf('Transfer'), data: word(usage.value) }
  const block = { number: '0x90', timestamp: `0x${(AT + 600).toString(16)}`, hash, transactions: [] }
  const receipt = {
    transactionHash: hash,
    transactionIndex: '0x0',
    blockHash: hash,
    blockNumber: '0x70',
    from: usage.from,
    to: usage.token,
    status: '0x1',
    logs: [use, transfer],
  }
  const common = { eth_getBlockByNumber: block, eth_blockNumber: '0x90' }
  return {
    usage,
    hash,
    results: {
      ...common,
      // The state of an authorization, or a balance.
      eth_call: word(1n),
      eth_getLogs: [use],
      eth_getTransactionReceipt: receipt,
    } as Results,
    absent: { ...common, eth_call: word(0n), eth_getLogs: [], eth_getTransactionReceipt: null } as Results,
  }
}

async function buildSolana() {
  const { transaction, source, payer } = await makeTransaction()
  const payload = { x402Version: 2, accepted: TERMS, payload: { transaction } } as unknown as PaymentPayload
  const signature = getBase58Decoder().decode(randomBytes(64))
  const data = Buffer.alloc(165)
  data.set(getBase58Encoder().encode(MINT))
  data.set(getBase58Encoder().encode(payer), 32)
  data.writeBigUInt64LE(70_000n, 64)
  data[108] = 1
  const context = { slot: 900, apiVersion: '2.0.0' }
  const common = {
    getSlot: 900,
    getBlockTime: AT + 600,
    isBlockhashValid: { context, value: false },
    getAccountInfo: { context, value: { owner: TOKEN_PROGRAM_ADDRESS, data: [data.toString('base64'), 'base64'] } },
  }
  const balance = (amount: string) => [{ mint: MINT, owner: TERMS.payTo, uiTokenAmount: { amount } }]
  return {
    payload,
    signature,
    account: `${source} ${payer}`,
    results: {
      ...common,
      getSignaturesForAddress: [{ signature, err: null, memo: `[36] ${TERMS.extra.memo}`, blockTime: AT }],
      getTransaction: {
        transaction: [transaction, 'base64'],
        meta: { err: null, preTokenBalances: balance('0'), postTokenBalances: balance('30000') },
      },
    } as Results,
    absent: { ...common, getSignaturesForAddress: [], getTransaction: null } as Results,
  }
}
