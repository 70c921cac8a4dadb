// One payer's payment, whatever it makes the facilitator or the node answer, stops no other payer, and makes neither count as away.
import t, { type Test } from 'tap'
import type { Deed } from './evm-facilitator.ts'
import { type EvmHarness, openEvmHarness } from './evm-harness.ts'

const away = ({ logLines }: EvmHarness) => logLines.lines.filter(({ event }) => event === 'dependency_away')

async function expectSale(t: Test, harness: EvmHarness, about: string) {
  t.equal((await (await harness.order()).buyAndWait()).status, 200, `another payer buys after ${about}`)
  t.same(away(harness), [], 'nothing counts as away')
}

const refusal = { isValid: false, invalidReason: 'invalid_payload', payer: '0x0' }
/** Answers of /verify to a bad payment, and what its sender gets. */
const VERDICTS: [number, unknown, number][] = [
  [200, refusal, 402],
  [400, refusal, 402],
  [402, refusal, 402],
  [412, refusal, 402],
  [422, refusal, 402],
  [500, refusal, 503],
  [400, { errorType: 'invalid_request', errorMessage: 'paymentPayload does not match' }, 503],
  [422, { error: 'paymentPayload.signature' }, 503],
  [500, { isValid: false, invalidReason: 'unexpected_verify_error' }, 503],
  [500, '<html>Internal Server Error</html>', 503],
  [200, '<html>', 503],
]

t.test('whatever a facilitator answers to the check of one payment, others are checked', async (t) => {
  await using harness = await openEvmHarness()
  for (const [status, body, expected] of VERDICTS) {
    const about = `${status} ${JSON.stringify(body)}`
    harness.facilitator.verdicts.push(() => ({ status, body }))
    const hostile = await harness.order()
    t.equal((await hostile.buy()).status, expected, about)
    t.equal(await hostile.spent(), 0n)
    await expectSale(t, harness, about)
  }
})

const failure = (payload: { accepted: { network: string } }) => ({
  success: false,
  errorReason: 'invalid_payload',
  transaction: '',
  network: payload.accepted.network,
})
const DEEDS: [string, Deed][] = [
  ...[200, 400, 402, 422, 500].map((status): [string, Deed] => [
    `${status}`,
    ({ payload, answer }) => answer(status, failure(payload)),
  ]),
  ['an error of another form', ({ answer }) => answer(400, { errorType: 'invalid_request' })],
  ['HTML', ({ answer }) => answer(500, '<html>Internal Server Error</html>')],
  ['a connection that breaks', ({ drop }) => drop()],
]

t.test('whatever a facilitator answers to the settlement of one payment, others are settled', async (t) => {
  await using harness = await openEvmHarness()
  for (const [about, deed] of DEEDS) {
    const answered = Promise.withResolvers<void>()
    harness.facilitator.script.push(async (call) => {
      await deed(call)
      answered.resolve()
    })
    const hostile = await harness.order()
    t.equal((await hostile.buy({ prefer: 'wait=0' })).status, 202)
    await answered.promise
    await expectSale(t, harness, about)
  }
})

t.test('a settlement that never gets an answer delays no other', async (t) => {
  await using harness = await openEvmHarness()
  const asked = Promise.withResolvers<void>()
  const pending = Promise.withResolvers<void>()
  harness.facilitator.script.push(async ({ drop }) => {
    asked.resolve()
    await pending.promise
    drop()
  })
  const hostile = await harness.order()
  t.equal((await hostile.buy({ prefer: 'wait=0' })).status, 202)
  // Without this wait the other payer's settlement can come first and be the one that gets no answer.
  await asked.promise
  await expectSale(t, harness, 'one that waits')
  pending.resolve()
  await harness.inDoubt(hostile)
})
