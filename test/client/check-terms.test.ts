// `check --verify` after an interrupted run, at a service that has since changed its price and its recipient: no claim is
// paid on the new terms if its payment on the old terms was settled or can still settle.
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../client/clock.ts'
import { verifyCitations } from '../../client/commands/check/verdicts.ts'
import type { Judged } from '../../client/report/judgement.ts'
import { askFor, buildWallet, lose, openFolder, openShop, posts, type Shop } from './batch-desk.ts'

const CLAIMS = ['The harbour has three piers.', 'The harbour opened in 1874.']

function citationOf(sentence: string): Judged {
  return {
    kind: 'claim',
    status: 'unverified',
    sentence,
    url: 'https://example.org/',
    parts: [],
    message: '',
    code: null,
    finalUrl: null,
    verdict: null,
  } as unknown as Judged
}

/** The first claim is paid for and its answer is lost, the payment of the second one never arrives; then the user stops the run. */
async function openCutOff(t: Test, lifeMs: number) {
  const shop = await openShop(t)
  const { price, payment_mode } = shop.capabilities
  shop.capabilities = { price, payment_mode, methodology_version: 'text-2 semantic-5 model' }
  const { wallet, signed } = buildWallet(systemClock, lifeMs)
  const folder = join(openFolder(t), 'verdicts')
  const options = {
    service: shop.baseUrl,
    wallet,
    cap: 1_000_000n,
    budgetFile: undefined,
    isGrouped: false,
    folder,
    yes: true,
  }
  const run = (claims = CLAIMS) => verifyCitations(claims.map(citationOf), options)

  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  let held = 0
  shop.rule = ({ headers, body }, sell) => {
    if (!headers['payment-signature']) return
    if (++held === CLAIMS.length) arrive()
    return body.includes('piers') ? (_, request) => lose(sell)({} as never, request) : () => {}
  }
  const first = run()
  await arrived
  const insisting = setInterval(() => process.emit('SIGINT'), 100)
  t.equal((await first).isInterrupted, true)
  clearInterval(insisting)
  t.equal(signed.length, 2)
  t.equal(shop.settled.size, 1)
  changeTerms(shop)
  return { shop, signed, run }
}

/** From here on a payment that was signed before counts only where it was settled before. */
function changeTerms(shop: Shop) {
  const [terms] = shop.terms.accepts
  Object.assign(terms ?? {}, { amount: '40000', payTo: `0x${'7'.repeat(40)}` })
  shop.capabilities.price = { amount_atomic: '40000', currency: 'USDC', decimals: 6, usd: '0.04' }
  const old = new Set(shop.payments)
  shop.rule = ({ headers }) => {
    const isOld = old.has(String(headers['payment-signature']))
    return isOld && !shop.settled.has(String(headers['idempotency-key'])) ? askFor(shop.terms) : undefined
  }
}

t.test('paid results are fetched, and no new payment is signed while an earlier one can still settle', async (t) => {
  const { shop, signed, run } = await openCutOff(t, 300_000)
  const { judged, sums } = await run()
  t.equal(signed.length, 2, 'nothing is signed')
  t.equal(shop.settled.size, 1)
  t.match(sums, { wanted: 2, bought: 1, missing: 1, spentUsd: '0.06' })
  t.equal(judged[0]?.verdict?.isNew, true)
  t.match(judged[1], {
    code: 'payment_open',
    message:
      /nothing is paid twice\. The service asks for a payment again\. A payment on earlier terms can be taken until \d{4}-/,
  })
  const again = await run()
  t.match(again.sums, { wanted: 2, bought: 0, kept: 1, missing: 1 })
  t.equal(signed.length, 2)
})

t.test('an expired payment is followed by one on the new terms', async (t) => {
  // It expired longer ago than the allowed difference between clocks.
  const { shop, signed, run } = await openCutOff(t, -120_000)
  const { judged, sums } = await run()
  t.same(
    signed.map(({ amount }) => amount),
    ['30000', '30000', '40000'],
  )
  t.equal(shop.settled.size, 2)
  t.equal(new Set(posts(shop).map(({ headers }) => headers['idempotency-key'])).size >= 3, true)
  t.match(sums, { wanted: 2, bought: 2, missing: 0, spentUsd: '0.07' })
  t.ok(judged.every(({ verdict }) => verdict?.isNew))
})
