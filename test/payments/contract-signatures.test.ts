// What a node answers about the signature of a contract wallet: only an answer of the chain says that it did not sign. Every other one
// is a failure of the node, so that no payer is refused for it.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import t from 'tap'
import type { Hex } from 'viem'
import { openEvmReader } from '../../server/payments/chains/evm-reader.ts'

const payment = {
  // Longer than the signature of a key.
  signature: `0x${'ab'.repeat(96)}` as Hex,
  authorization: {
    from: `0x${'11'.repeat(20)}` as Hex,
    to: `0x${'22'.repeat(20)}` as Hex,
    value: '30000',
    validAfter: '0',
    validBefore: '1800000000',
    nonce: `0x${'33'.repeat(32)}` as Hex,
  },
}

type Answer = (response: ServerResponse, id: number) => unknown
let answerCall: Answer
const server = createServer(async (request, response) => {
  const { id, method } = (await json(request)) as { id: number; method: string }
  // The node is not away: it answers every other question.
  if (method === 'eth_call') answerCall(response, id)
  else result('0x10')(response, id)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
t.teardown(async () => {
  server.closeAllConnections()
  await new Promise((closed) => server.close(closed))
})
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const reader = openEvmReader(url, { retryMs: 0 })

function result(value: unknown): Answer {
  return (response, id) => response.end(JSON.stringify({ jsonrpc: '2.0', id, result: value }))
}

function error(code: number, message: string, more: object = {}): Answer {
  return (response, id) => response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...more } }))
}

function status(code: number): Answer {
  return (response) => response.writeHead(code).end('{}')
}

const asked = (answer: Answer) => {
  answerCall = answer
  return reader.isSignedByContract('eip155:84532', payment)
}

t.test('what the chain computed is the answer', async (t) => {
  for (const value of ['0x01', `0x${'0'.repeat(63)}1`]) t.equal(await asked(result(value)), true, value)
  for (const value of ['0x00', `0x${'0'.repeat(64)}`]) t.equal(await asked(result(value)), false, value)
  t.equal(await asked(error(3, 'execution reverted', { data: '0x' })), false, 'go-ethereum')
  t.equal(await asked(error(-32_000, 'execution reverted: wrong signer')), false)
  t.equal(await asked(error(-32_015, 'VM execution error.', { data: 'Reverted 0x' })), false)
  t.equal(await asked(error(-32_603, 'VM Exception while processing transaction: reverted')), false)
})

t.test('an answer of another type is a failure of the node', async (t) => {
  for (const value of [
    undefined,
    null,
    true,
    false,
    0,
    1,
    '',
    'x',
    '0x',
    '0x0',
    '0x2',
    '0x02',
    '0xzz',
    [],
    {},
    ['0x01'],
  ])
    await t.rejects(asked(result(value)), `${JSON.stringify(value)}`)
})

t.test('a call that fails is a failure of the node', async (t) => {
  for (const code of [301, 400, 403, 404, 429, 500, 503]) await t.rejects(asked(status(code)), `${code}`)
  for (const [code, message] of [
    [-32_000, 'header not found'],
    [-32_000, 'execution aborted (timeout = 5s)'],
    [-32_005, 'limit exceeded'],
    [-32_601, 'the method eth_call does not exist'],
    [-32_602, 'invalid params'],
    [-32_603, 'internal error'],
  ] as const)
    await t.rejects(asked(error(code, message)), message)
  await t.rejects(asked((response) => response.destroy()))
  await t.rejects(asked((response) => response.end('{"jsonrpc"')))
})
