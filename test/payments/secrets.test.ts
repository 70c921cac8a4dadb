// The holder of an authorization can charge it. So it is in no log, metric, answer or table in a usable form, for any
// outcome, even if a facilitator repeats it.
import t, { type Test } from 'tap'
import { deeds } from './evm-facilitator.ts'
import { type EvmHarness, openEvmHarness, type Purchase } from './evm-harness.ts'

const harness = await openEvmHarness()
t.teardown(() => harness[Symbol.asyncDispose]())

/** The signature in every text form, and each third of it. */
function traces(order: Purchase): string[] {
  return order.signatures.flatMap((header) => {
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: { signature: string } }
    const hex = payload.signature.slice(2).toLowerCase()
    const base64 = Buffer.from(hex, 'hex').toString('base64')
    const place = header.length / 2
    return [hex.slice(0, 44), hex.slice(44, 88), hex.slice(88), base64.slice(0, 40), header.slice(place, place + 80)]
  })
}

/** Every row of every table, as text. */
async function dump({ system }: EvmHarness): Promise<string> {
  const tables = await system.sql(`
    select format('%I.%I', n.nspname, c.relname) name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname in ('public', 'graphile_worker')`)
  const rows = await Promise.all(tables.map(({ name }) => system.sql(`select t::text from ${name} t`)))
  return rows
    .flat()
    .map(({ t }) => `${t}`)
    .join('\n')
    .toLowerCase()
}

async function expectNoTrace(t: Test, order: Purchase, answers: Response[] = []) {
  const texts: [about: string, text: string][] = [
    ['tables', await dump(harness)],
    [
      'log',
      harness.logLines.lines
        .map((line) => JSON.stringify(line))
        .join('\n')
        .toLowerCase(),
    ],
    // The route answers 404 here, since no operator token is set.
    ['metrics', (await harness.system.service.api.metrics.registry.metrics()).toLowerCase()],
    ['answers', (await Promise.all(answers.map((answer) => answer.text()))).join('\n').toLowerCase()],
  ]
  const wanted = traces(order)
  t.ok(wanted.length > 0)
  for (const [about, text] of texts)
    t.same(
      wanted.filter((trace) => text.includes(trace.toLowerCase())),
      [],
      about,
    )
  t.ok(texts[0]?.[1].includes(await order.requestId), 'the tables were read')
  t.ok((texts[1]?.[1].length ?? 0) > 1000, 'the log was read')
}

const isSealed = async (order: Purchase) =>
  (
    await harness.system.sql('select payment_sealed is not null sealed from verification_requests where id = $1', [
      await order.requestId,
    ])
  )[0]?.sealed

t.test('a facilitator that repeats the payment', async (t) => {
  const order = await harness.order()
  const looked = Promise.withResolvers<void>()
  const echo = (payload: { payload: Record<string, unknown> }) => String(payload.payload.signature)
  harness.facilitator.verdicts.push(
    (payload) => ({
      status: 200,
      body: { isValid: false, invalidReason: echo(payload), invalidMessage: echo(payload) },
    }),
    (payload) => ({ status: 500, body: echo(payload) }),
  )
  const refused = await order.buy()
  t.equal(refused.status, 402)
  const unanswered = await order.buy()
  t.equal(unanswered.status, 503)
  harness.facilitator.script.push(
    (call) => call.answer(503, echo(call.payload)),
    (call) => {
      const said = { success: false, errorReason: echo(call.payload), errorMessage: echo(call.payload) }
      call.answer(200, { ...said, transaction: echo(call.payload), network: harness.chain.network })
    },
    (call) => call.answer(200, `{"success": ${echo(call.payload)}`),
    // The worker also tries again by itself, which may be before all of it was looked at.
    async (call) => {
      await looked.promise
      await deeds.settles(call)
    },
  )
  await order.buy()
  for (let i = 0; i < 3; i++) {
    await harness.inDoubt(order)
    t.equal(await isSealed(order), true, 'it is stored sealed while it may be needed')
    await expectNoTrace(t, order)
    await harness.hurry()
  }
  looked.resolve()
  const paid = await order.buyAndWait()
  t.equal(paid.status, 200)
  t.equal(await isSealed(order), false, 'then it is deleted')
  await expectNoTrace(t, order, [refused, unanswered, paid])
})

t.test('a node that does not answer', async (t) => {
  const order = await harness.order()
  harness.facilitator.script.push((call) => {
    harness.rpc.shut = true
    call.drop()
  })
  await order.buy()
  await harness.inDoubt(order)
  harness.rpc.shut = false
  await expectNoTrace(t, order)
  t.notOk(
    JSON.stringify(harness.logLines.lines).includes(harness.rpc.url),
    'nor the URL of the node, which may contain a key',
  )
  await harness.hurry()
  await order.buyAndWait()
})

t.test('a signature that only a chain can check, while the chain does not answer', async (t) => {
  const order = await harness.order()
  const header = await order.sign(await order.ask())
  const payment = JSON.parse(Buffer.from(header, 'base64').toString())
  const longer = { ...payment, payload: { ...payment.payload, signature: `${payment.payload.signature}00` } }
  order.signatures.push(Buffer.from(JSON.stringify(longer)).toString('base64'))
  harness.rpc.shut = true
  const asked = await fetch(harness.system.url('/api/agent/v1/payments'), {
    headers: { 'payment-signature': order.signatures[0] ?? '' },
  })
  harness.rpc.shut = false
  t.equal(asked.status, 503)
  await expectNoTrace(t, order, [asked])
})

t.test('a request that fails', async (t) => {
  const order = await harness.order()
  harness.system.site.pages.set(new URL(order.body.source_url).pathname, { status: 404, body: '' })
  const failed = await order.buyAndWait()
  t.equal(failed.status, 422)
  t.equal(await isSealed(order), false)
  await expectNoTrace(t, order, [failed])
})

t.test('a payment that expires', async (t) => {
  const order = await harness.order()
  const before = await harness.chain.controls.snapshot()
  harness.expireNext()
  await order.buy()
  const unpaid = await harness.recover(await order.requestId, { prefer: 'wait=25' })
  t.equal(unpaid.status, 402)
  t.equal(await isSealed(order), false)
  await expectNoTrace(t, order, [unpaid])
  await harness.chain.controls.revert({ id: before })
})
