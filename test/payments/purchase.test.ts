// A purchase without faults on each chain id.
import { decodePaymentResponseHeader } from '@x402/core/http'
import t from 'tap'
import { completedResult } from '../../server/interface/result.ts'
import { openEvmHarness, PRICE } from './evm-harness.ts'

for (const network of ['eip155:84532', 'eip155:8453'] as const) {
  t.test(`a stock client buys on ${network}`, async (t) => {
    await using harness = await openEvmHarness({ network })
    const order = await harness.order()
    const response = await order.buyAndWait()
    t.equal(response.status, 200, await response.clone().text())
    const { payment } = completedResult.parse(await response.json())
    t.equal(await order.spent(), PRICE)
    t.equal(await harness.chain.balanceOf(harness.payTo), PRICE)
    const settled = decodePaymentResponseHeader(response.headers.get('payment-response') ?? '')
    t.match(settled, { success: true, network, transaction: payment.transaction ?? '' })
    t.match(payment, { network, simulated: false, mode: network === 'eip155:8453' ? 'mainnet' : 'testnet' })
    t.equal(payment.facilitator_fee_usd, null)
    const receipt = await harness.chain.reader.getTransactionReceipt({ hash: payment.transaction as `0x${string}` })
    t.equal(receipt.status, 'success')
  })
}
