// The calls of a facilitator that answers too much, sends them elsewhere, or writes into the log.
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import t, { type Test } from 'tap'
import { askToSettle, askToVerify, reasonOfNoAnswer } from '../../server/payments/facilitators/facilitator-answers.ts'
import { openFacilitatorClient } from '../../server/payments/facilitators/facilitator-client.ts'

const NETWORK = 'eip155:84532'
// The casts are safe: the client only makes JSON of them.
const payload = { x402Version: 2, payload: { signature: '0xSECRET' } } as unknown as PaymentPayload
const terms = { network: NETWORK } as unknown as PaymentRequirements
const expected = { payer: '0x1', readTransactionId: (text: string) => text }

async function open(t: Test, answer: RequestListener) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const calls = openFacilitatorClient({ url, timeoutMs: 10_000, pauseMs: 0 })
  return {
    url,
    /** What the three calls of it mean. */
    all: async () => [
      await askToVerify(calls, payload, terms),
      await askToSettle(calls, payload, terms, expected),
      await calls.getSupported().then(() => 'supported', reasonOfNoAnswer),
    ],
  }
}

const noAnswer = (reason: string) => [{ kind: 'unanswered', reason }, { kind: 'doubt', reason }, reason]

t.test('an answer beyond the limit is not read to its end, on the wire or expanded', async (t) => {
  const pad = ' '.repeat(4 * 1024 * 1024)
  const good = { isValid: true, success: true, transaction: '0x2', network: NETWORK, kinds: [] }
  for (const status of [200, 400])
    for (const packed of [false, true]) {
      const text = JSON.stringify(good) + pad
      const { all } = await open(t, (_request, response) => {
        response.writeHead(status, packed ? { 'content-encoding': 'gzip' } : {})
        response.end(packed ? gzipSync(text) : text)
      })
      t.same(await all(), noAnswer('unreadable_answer'), `${status}, ${packed ? 'packed' : 'plain'}`)
    }
})

t.test('a redirect is not followed', async (t) => {
  const seen: (string | undefined)[] = []
  const { all } = await open(t, ({ url }, response) => {
    seen.push(url)
    response.writeHead(307, { location: '/elsewhere' }).end()
  })
  t.same(await all(), noAnswer('http_307'))
  t.same(seen, ['/verify', '/settle', '/supported'])
})

t.test('nothing of an answer is written to the output of the process', async (t) => {
  const said = { bazaar: { status: '0xSECRET', reason: '0xSECRET' } }
  const header = Buffer.from(JSON.stringify(said)).toString('base64')
  const { all } = await open(t, (_request, response) => {
    response.setHeader('extension-responses', header)
    response.end(JSON.stringify({ isValid: true, success: true, transaction: '0x2', network: NETWORK, kinds: [] }))
  })
  const written = t.capture(console, 'log')
  t.same(await all(), [{ kind: 'valid', payer: null }, { kind: 'done', transaction: '0x2' }, 'supported'])
  t.same(
    written().map(({ args }) => args),
    [],
  )
})

t.test('answers of other types are no answers, and a reason that is no text is not repeated', async (t) => {
  const bodies: [number, unknown][] = [
    [200, null],
    [200, 5],
    [200, []],
    [200, 'null'],
    [200, { isValid: 'true', success: 1, transaction: {}, network: [NETWORK], kinds: {} }],
    [400, []],
    [500, { isvalid: true }],
  ]
  for (const [status, body] of bodies) {
    const { all } = await open(t, (_request, response) => response.writeHead(status).end(JSON.stringify(body)))
    const reason = status === 200 ? 'unreadable_answer' : `http_${status}`
    t.same(await all(), noAnswer(reason), JSON.stringify(body))
  }
  const odd = {
    isValid: false,
    invalidReason: ['abc'],
    success: false,
    errorReason: ['abc'],
    transaction: [],
    payer: {},
  }
  const { all } = await open(t, (_request, response) => response.writeHead(400).end(JSON.stringify(odd)))
  t.same(await all(), [
    { kind: 'invalid', reason: 'unnamed_reason' },
    { kind: 'doubt', reason: 'unnamed_reason' },
    'http_400',
  ])
})

t.test('a facilitator that limits the rate of /supported is asked again', async (t) => {
  let asked = 0
  const { all } = await open(t, ({ url }, response) => {
    if (url !== '/supported') return response.writeHead(503).end()
    asked++
    return asked === 1 ? response.writeHead(429).end() : response.end('{"kinds":[]}')
  })
  t.match(await all(), [{ reason: 'http_503' }, { reason: 'http_503' }, 'supported'])
  t.equal(asked, 2)
})
