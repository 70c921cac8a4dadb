// Many callers with one key at two services at once: one request, one settlement, one receipt, and no 402 once a payment
// was accepted (a stock client signs a new payment at every 402).
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { holdPage } from '../site.ts'
import {
  harbourClaim,
  openScriptedFacilitator,
  PAGE,
  payingFetch,
  signPayment,
  startSystem,
  termsOf,
} from '../system.ts'

const CALLERS = 50
const WAIT = { prefer: 'wait=25' }

const till = openScriptedFacilitator()
const held = holdPage({ body: PAGE })
const system = await startSystem({ pages: { '/held': held.page }, overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())
const twinTill = openScriptedFacilitator()
const twin = await system.openTwin({ facilitator: twinTill })
t.teardown(() => twin[Symbol.asyncDispose]())
const settled = () => [...till.settled, ...twinTill.settled]

/** Asks the two services in turn. */
function ask(caller: number, key: string, body: unknown, headers: Record<string, string> = {}, send = fetch) {
  return system.ask({ key, body, headers, fetch: send, at: caller % 2 === 0 ? system.service : twin })
}

/** One payment per caller, each of its own wallet, signed before any is sent. */
async function signAll(count: number) {
  const terms = termsOf(await system.ask({ key: randomUUID() }))
  return Promise.all(Array.from({ length: count }, () => signPayment(terms)))
}

async function expectOne(t: Test, id: string) {
  t.same(await system.sql(`select id from verification_requests where state <> 'quoted'`), [{ id }], 'one request')
  t.same(await system.sql('select request_id from payment_claims'), [{ request_id: id }], 'one authorization bound')
  t.same(await system.sql('select serial from receipts'), [{ serial: '1' }], 'one receipt')
  t.equal(settled().length, 1, 'one settlement')
}

t.test('fifty callers, signed and unsigned, one key, two services', async (t) => {
  const key = randomUUID()
  const body = { ...harbourClaim(system.site), source_url: system.site.url('/held') }
  const payments = await signAll(CALLERS)
  const accepted = Promise.withResolvers<Response>()
  const call = async (caller: number) => {
    const payment = caller % 3 === 0 ? undefined : payments[caller]
    const response = await ask(caller, key, body, payment?.headers)
    if (response.status === 202) accepted.resolve(response.clone())
    return { signed: payment !== undefined, payment, response }
  }
  const rush = Array.from({ length: CALLERS }, (_, caller) => call(caller))
  const first = await accepted.promise
  const token = first.headers.get('x-service-recovery-token') ?? ''
  const { request_id: id = '' } = (await first.json()) as { request_id: string }

  // Sent after an acceptance was answered: from then on no caller gets a 402.
  const late = await signAll(4)
  const after = await Promise.all(
    Array.from({ length: 12 }, (_, caller) =>
      caller < 4
        ? ask(caller, key, body, late[caller]?.headers)
        : ask(caller, key, body, {}, caller < 8 ? payingFetch() : fetch),
    ),
  )
  for (const response of after) t.equal((await expectNonCompleted(t, response, 202)).request_id, id)

  for (const { signed, response } of await Promise.all(rush)) {
    const answer = await expectNonCompleted(t, response, signed || response.status === 202 ? 202 : 402)
    t.equal(answer.request_id, id)
    // Of the unsigned, those that came first are asked for a payment, and how many they are is left to chance.
    t.equal(response.status === 202 ? response.headers.get('x-service-recovery-token') : token, token)
  }

  held.release()
  const { result, bytes } = await expectCompleted(t, await system.recover(id, token, WAIT))
  t.equal(result.request_id, id)
  await expectOne(t, id)
  t.equal(system.site.requests.filter((path) => path === '/held').length, 1)

  const payer = settled()[0]?.bound.identity.payer
  const replays = await Promise.all(
    payments.slice(0, 20).map(async (payment, caller) => {
      const response = await ask(caller, key, body, caller % 2 ? payment.headers : {})
      return { response, mine: caller % 2 === 0 || payment.wallet.address.toLowerCase() === payer }
    }),
  )
  for (const { response, mine } of replays) {
    if (mine) t.equal((await expectCompleted(t, response)).bytes, bytes, 'both services serve the same bytes')
    else t.equal((await expectNonCompleted(t, response, 409)).error.code, 'payment_conflict')
  }
  await expectOne(t, id)
})

t.test('one authorization under many keys at once: it pays for one', async (t) => {
  till.settled.length = twinTill.settled.length = 0
  const keys = Array.from({ length: 12 }, () => randomUUID())
  const body = harbourClaim(system.site)
  const terms = await Promise.all(keys.map(async (key, caller) => termsOf(await ask(caller, key, body))))
  const first = terms[0]
  if (!first) throw new Error('no terms')
  const { headers, nonce } = await signPayment(first)
  const responses = await Promise.all(keys.map((key, caller) => ask(caller, key, body, { ...headers, ...WAIT })))
  const statuses = responses.map((response) => response.status).sort()
  t.same(statuses, [200, ...Array(11).fill(409)])
  for (const response of responses) {
    if (response.status === 200) await expectCompleted(t, response)
    else t.equal((await expectNonCompleted(t, response, 409)).error.code, 'payment_conflict')
  }
  t.same(
    settled().map((offer) => offer.bound.identity.nonce),
    [nonce],
  )
})

t.test('one key with many bodies at once: one body gets it', async (t) => {
  const key = randomUUID()
  const responses = await Promise.all(
    Array.from({ length: 12 }, (_, caller) =>
      ask(caller, key, { ...harbourClaim(system.site), claim: `It has ${caller} piers.` }),
    ),
  )
  const statuses = responses.map((response) => response.status).sort()
  t.same(statuses, [402, ...Array(11).fill(409)])
  for (const response of responses) await expectNonCompleted(t, response, response.status)
})

t.test(
  'two first calls with one key and one payment: the later one is answered with what the other bought',
  async (t) => {
    const key = randomUUID()
    const [payment] = await signAll(1)
    const body = harbourClaim(system.site)
    const looked = Promise.withResolvers<void>()
    const bought = Promise.withResolvers<void>()
    // It is asked after the key was looked up, and before the payment is compared with those that are bound.
    t.intercept(twin.api.assessors, 'requireOne', {
      value: async () => {
        looked.resolve()
        await bought.promise
      },
    })
    const late = ask(1, key, body, { ...payment?.headers, ...WAIT })
    await looked.promise
    const first = await ask(0, key, body, { ...payment?.headers, ...WAIT })
    t.equal(first.status, 200)
    bought.resolve()
    const second = await late
    t.equal(second.status, 200)
    t.equal(await second.text(), await first.text())
  },
)
