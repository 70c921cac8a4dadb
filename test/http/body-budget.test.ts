// All bodies that are being received have one budget: beyond it the largest are refused, small ones never. All sockets are real; callers
// have addresses of 127.0.0.0/8.
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { openServer } from '../../server/app.ts'
import { openBodyBudget } from '../../server/http/body-budget.ts'
import { openLog } from '../../server/telemetry.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { until } from '../until.ts'
import { nextRequest } from './next-request.ts'

const BUDGET = 65_536
const JSON_BODY = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

const harness = await openAccountHarness({ PAYMENT_MODE: 'offline' })
t.teardown(() => harness[Symbol.asyncDispose]())

async function openListener(t: Test) {
  const logged: Record<string, unknown>[] = []
  const log = openLog('warn', { write: (line) => logged.push(JSON.parse(line)) })
  const server = await openServer({ ...harness.api, log }, { maxUnfinishedBytes: BUDGET })
  t.teardown(() => server[Symbol.asyncDispose]())
  const port = Number(new URL(server.address).port)
  const begin = (localAddress: string, path = '/mcp/check', headers: Record<string, string> = JSON_BODY) =>
    new Sending(t, request({ host: '127.0.0.1', port, localAddress, path, method: 'POST', headers, agent: false }))
  return { logged, begin }
}

/** A call whose body is sent in parts. */
class Sending {
  readonly #request: ClientRequest
  readonly answered: Promise<IncomingMessage>

  constructor(t: Test, sent: ClientRequest) {
    this.#request = sent
    t.teardown(() => sent.destroy())
    this.answered = new Promise((resolve) => sent.once('response', resolve))
    // The service closes the connection of a body that it refuses, while the rest is sent.
    sent.on('error', () => {})
  }

  send(octets: number) {
    this.#request.write(' '.repeat(octets))
    return this
  }

  async end(rest = '') {
    this.#request.end(rest)
    const answer = await this.answered
    answer.resume()
    return answer.statusCode
  }

  abort() {
    this.#request.destroy()
  }
}

async function isRefused(t: Test, { answered }: Sending) {
  const answer = await answered
  t.equal(answer.statusCode, 503)
  t.match(answer.headers['retry-after'], /^[1-4]$/)
  t.match(JSON.stringify(await json(answer)), /"code":"capacity_exceeded",.*"retryable":true/)
}

t.test('of the bodies of many addresses the largest is refused, and all others are read', async (t) => {
  const { begin, logged } = await openListener(t)
  const small = begin('127.0.3.1').send(8000)
  const largest = begin('127.0.3.2').send(26_000)
  const others = [begin('127.0.3.3').send(17_000), begin('127.0.3.4').send(17_000)]
  await isRefused(t, largest)
  t.equal(await begin('127.0.3.5').end(PING), 200, 'a small one that comes later')
  t.equal(await small.end(PING), 200)
  for (const other of others) t.equal(await other.end(PING), 200)
  t.match(logged, [{ event: 'bodies_full', bytes: BUDGET, given_up: 1 }])
})

const PATHS: Record<string, Record<string, string>> = {
  '/api/agent/v1/verify-source': JSON_BODY,
  '/api/agent/v1/verify-claims': JSON_BODY,
  '/mcp': JSON_BODY,
  '/v1/stripe/webhook': { ...JSON_BODY, 'stripe-signature': 't=1,v1=00' },
  '/v1/register': JSON_BODY,
  '/try': { 'content-type': 'application/x-www-form-urlencoded' },
}
for (const [path, headers] of Object.entries(PATHS))
  t.test(`${path} is within the budget`, async (t) => {
    const { begin } = await openListener(t)
    const both = [begin('127.0.4.1', path, headers).send(40_000), begin('127.0.4.2', path, headers).send(40_000)]
    const refused = await Promise.race(both.map(async (one) => one.answered.then(() => one)))
    await isRefused(t, refused)
    t.not(await both.find((one) => one !== refused)?.end(), 503, 'the other one is read')
  })

t.test('a body that has ended is counted no more', async (t) => {
  const { begin } = await openListener(t)
  for (const end of [
    (sending: Sending) => sending.end(PING),
    (sending: Sending) => sending.end('no JSON'),
    async (sending: Sending) => sending.abort(),
  ]) {
    const begun = nextRequest()
    const sending = begin('127.0.5.1').send(60_000)
    const taken = await begun
    const ended = new Promise((resolve) => taken.once('close', resolve))
    await until(() => taken.socket.bytesRead > 60_000)
    await end(sending)
    await ended
  }
  t.equal(await begin('127.0.5.2').send(60_000).end(PING), 200)
})

/** Bodies of a budget of 100,000 octets. */
function openBodies() {
  const budget = openBodyBudget(openLog('silent'), { maxUnfinishedBytes: 100_000 })
  const refused: string[] = []
  const begin = (holder: string, octets: number) => {
    const body = budget.begin(holder, () => refused.push(`${holder} ${octets}`))
    body.grow(octets)
    return body
  }
  return { begin, refused }
}

t.test('a caller who sends most makes room, though the body of another caller is larger', async (t) => {
  const { begin, refused } = openBodies()
  begin('honest', 30_000)
  for (let n = 0; n < 7; n++) begin('hostile', 9000 + n)
  begin('honest', 8000)
  t.same(refused, ['hostile 9006'])
  begin('hostile', 40_000)
  t.same(refused, ['hostile 9006', 'hostile 40000'])
})

t.test('of equal bodies the newest makes room', async (t) => {
  const { begin, refused } = openBodies()
  for (const holder of ['a', 'b', 'c']) begin(holder, 33_000)
  begin('d', 2000)
  t.same(refused, ['c 33000'])
})

t.test('many small bodies of one address are not refused for large ones of many', async (t) => {
  const { begin, refused } = openBodies()
  for (let n = 0; n < 10; n++) begin('network', 8000)
  for (let n = 0; n < 10; n++) begin(`127.0.0.${n}`, 9000)
  t.equal(refused.length, 8)
  t.notMatch(refused.join(), /network/)
})

t.test('a body that was refused or has ended grows no sum', async (t) => {
  const { begin, refused } = openBodies()
  const first = begin('a', 101_000)
  t.same(refused, ['a 101000'])
  first.grow(90_000)
  first.end()
  const second = begin('b', 90_000)
  second.end()
  second.grow(90_000)
  begin('c', 90_000)
  t.equal(refused.length, 1)
})
