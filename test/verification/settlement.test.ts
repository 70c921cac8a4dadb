// Facilitators that fail, in both ways: nothing happened, and it happened all the same. However often, one key is charged
// at most once, nobody is asked to pay while a payment is in doubt, and the last answer says what the far side's ledger says.
import { randomUUID } from 'node:crypto'
import { decodePaymentSignatureHeader } from '@x402/core/http'
import t from 'tap'
import { AppError } from '../../server/errors.ts'
import type { Assessment } from '../../server/interface/assessment.ts'
import type { PaymentIdentity } from '../../server/payments/x402.ts'
import { openWork } from '../../workers/context.ts'
import type { Assessor } from '../../workers/verify.ts'
import { openApiHarness, readResult } from '../api-harness.ts'
import { type Deed, openLedger, openLedgerFacilitator } from '../ledger.ts'
import { openQueue } from '../queue.ts'
import { PAGE, payingFetch } from '../system.ts'

async function openShop(script: (payment: PaymentIdentity) => Deed | undefined, assessor?: Assessor) {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness())
  const ledger = opened.use(await openLedger(front.databaseUrl))
  const facilitator = opened.use(openLedgerFacilitator(ledger, script))
  const work = opened.use(await openWork(front.core, assessor && { assessor }))
  const queue = opened.use(openQueue({ ...work, facilitator }))
  const closing = opened.move()
  return { front, ledger, facilitator, queue, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}
type Shop = Awaited<ReturnType<typeof openShop>>

/** What one buyer asks for: a page of its own, so that fetches can be counted. */
function openOrder({ site }: Shop['front']) {
  const key = randomUUID()
  const path = `/${key}`
  site.pages.set(path, { body: PAGE })
  return { key, path, body: { source_url: site.url(path), claim: 'The harbour was opened in 1874.' } }
}

/** A stock client, and all authorizations it ever signed. */
function openBuyer() {
  const signed: { header: string; nonce: string }[] = []
  const watched: typeof fetch = (input, init) => {
    const request = new Request(input, init)
    const header = request.headers.get('payment-signature')
    if (header) signed.push({ header, nonce: nonceOf(header) })
    return fetch(request)
  }
  return { fetch: payingFetch(watched), signed, nonces: () => signed.map(({ nonce }) => nonce) }
}

function nonceOf(header: string): string {
  const { authorization } = decodePaymentSignatureHeader(header).payload as { authorization: { nonce: string } }
  return authorization.nonce
}

async function chargedAmong({ ledger }: Shop, nonces: string[]): Promise<string[]> {
  const charges = await ledger.charges()
  return charges.map(({ nonce }) => nonce).filter((nonce) => nonces.includes(nonce))
}

function recover(accepted: Response) {
  const authorization = `Bearer ${accepted.headers.get('x-service-recovery-token')}`
  return fetch(accepted.headers.get('location') ?? '', { headers: { authorization } })
}

const doubts: Deed[][] = [
  ['throws'],
  ['throws, but charged'],
  ['throws', 'throws, but charged', 'throws'],
  ['does not know', 'does not know', 'does not know'],
  ['does not know, but charged', 'does not know'],
  ['does not know', 'throws, but charged', 'does not know'],
  // More often than a job is tried.
  Array.from({ length: 12 }, () => 'throws'),
]

t.test('while a settlement is in doubt nobody is asked to pay, and then it is paid once', async (t) => {
  let script: Deed[] = []
  await using shop = await openShop(() => script.shift())
  const { front, queue } = shop
  for (const deeds of doubts)
    await t.test(summarize(deeds), async (t) => {
      script = [...deeds]
      const order = openOrder(front)
      const [buyer, other] = [openBuyer(), openBuyer()]
      const accepted = await front.ask({ ...order, fetch: buyer.fetch })
      t.equal(accepted.status, 202)
      while (script.length > 0) {
        await queue.pass()
        const again = await front.ask(order)
        t.match(await again.json(), { error: { code: 'settlement_unknown' } })
        const answers = [again, await front.ask({ ...order, fetch: other.fetch }), await recover(accepted)]
        t.same(
          answers.map(({ status }) => status),
          [202, 202, 202],
        )
      }
      await queue.drain()
      const result = await readResult(await front.ask({ ...order, fetch: other.fetch }))
      t.equal(result.payment.status, 'settled')
      t.same(other.signed, [], 'a second client has not even signed')
      t.equal(buyer.signed.length, 1)
      t.same(await chargedAmong(shop, buyer.nonces()), buyer.nonces())
      t.equal(front.site.requests.filter((path) => path === order.path).length, 1, 'the page was fetched once')
    })
  t.equal((await shop.ledger.charges()).length, doubts.length)
})

const refusals: Deed[][] = [['is unpaid'], ['does not know', 'is unpaid'], ['throws', 'is unpaid']]

t.test('once it is certain that nothing was charged, another payment is asked for, and charged alone', async (t) => {
  let script: Deed[] = []
  await using shop = await openShop(() => script.shift())
  const { front, queue } = shop
  for (const deeds of refusals)
    await t.test(summarize(deeds), async (t) => {
      script = [...deeds]
      const order = openOrder(front)
      const buyer = openBuyer()
      const accepted = await front.ask({ ...order, fetch: buyer.fetch })
      await queue.drain()
      t.equal((await recover(accepted)).status, 402)
      const asked = await front.ask(order)
      t.equal(asked.status, 402)
      t.match(await asked.json(), { error: { code: 'settlement_failed' }, payment_required: { x402Version: 2 } })
      t.same(await chargedAmong(shop, buyer.nonces()), [])
      t.equal((await front.ask({ ...order, fetch: buyer.fetch })).status, 202)
      await queue.drain()
      await readResult(await front.ask(order))
      t.equal(buyer.signed.length, 2)
      t.same(await chargedAmong(shop, buyer.nonces()), buyer.nonces().slice(1))
      t.equal(front.site.requests.filter((path) => path === order.path).length, 1, 'the work of before was kept')
    })
  t.same(shop.facilitator.violations, [])
})

t.test('work that fails is not charged, and its authorization is free for another request', async (t) => {
  let works = false
  await using shop = await openShop(() => undefined, {
    procedure: 'fails at first',
    async assess() {
      if (!works) throw new AppError('assessment_failed', 'No verdict.', { retryable: false })
      return { ...NOT_ASSESSED, procedure: 'fails at first' }
    },
  })
  const { front, ledger, queue } = shop
  const [first, second] = [openOrder(front), openOrder(front)]
  const buyer = openBuyer()
  t.equal((await front.ask({ ...first, fetch: buyer.fetch })).status, 202)
  await queue.drain()
  t.equal((await front.ask(first)).status, 422)
  t.same(await ledger.charges(), [])
  works = true
  const headers = { 'payment-signature': buyer.signed[0]?.header ?? '' }
  t.equal((await front.ask({ ...second, headers })).status, 202)
  await queue.drain()
  t.equal((await front.ask(first)).status, 422, 'a failed request stays one')
  await readResult(await front.ask(second))
  t.same(await chargedAmong(shop, buyer.nonces()), buyer.nonces())
})

const NOT_ASSESSED: Omit<Assessment, 'procedure'> = {
  assessment_scope: 'literal_quotation_only',
  claim_support: 'not_assessed',
  evidence: [],
  explanation: 'Nothing was looked for.',
  risk_flags: [],
}

t.test('forty purchases, each with a facilitator that does anything it may: the books agree', async (t) => {
  const random = openRandom(20_261_120)
  const buyers = Array.from({ length: 40 }, () => ({
    key: randomUUID(),
    ...openBuyer(),
    script: Array.from({ length: random(6) }, () => anyDeed(random)),
  }))
  await using shop = await openShop(({ nonce }) =>
    buyers.find((buyer) => buyer.nonces().includes(nonce))?.script.shift(),
  )
  const { front, ledger, queue } = shop

  const open = new Set(buyers)
  for (let round = 0; open.size > 0 && round < 50; round++) {
    for (const buyer of open) {
      const answer = await front.ask({ key: buyer.key, fetch: buyer.fetch })
      if (![200, 202].includes(answer.status)) t.fail(`${answer.status}: ${await answer.text()}`)
      if (answer.status === 200) open.delete(buyer)
    }
    await queue.pass()
  }
  t.equal(open.size, 0, 'all were served')
  const charged = (await ledger.charges()).map(({ nonce }) => nonce)
  t.same(
    buyers.map((buyer) => charged.filter((nonce) => buyer.nonces().includes(nonce)).length),
    buyers.map(() => 1),
    'each was charged once',
  )
  t.equal(charged.length, buyers.length, 'and nobody else was')
  const { rows } = await front.tables.query(
    `select nonce from payment_ledger where outcome = 'settled' order by payer, nonce`,
  )
  t.same(
    rows.map(({ nonce }) => nonce),
    charged,
    'our own book says the same',
  )
  t.same(shop.facilitator.violations, [])
  t.ok(
    buyers.some(({ signed }) => signed.length > 1),
    'some had to pay anew',
  )
})

function summarize(deeds: Deed[]): string {
  const [first] = deeds
  return deeds.length > 4 && new Set(deeds).size === 1 ? `${first} ${deeds.length} times` : deeds.join(', then ')
}

const DEEDS: Deed[] = [
  'answers',
  'throws',
  'throws, but charged',
  'does not know',
  'does not know, but charged',
  'is unpaid',
]

function anyDeed(random: (below: number) => number): Deed {
  return DEEDS[random(DEEDS.length)] as Deed
}

/** Whole numbers from 0, the same ones for the same seed. */
function openRandom(seed: number) {
  let state = seed >>> 0
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
