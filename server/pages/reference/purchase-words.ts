// What the pages of operations that buy say beside their schemas: which of two operations a reader needs, and what the payment and the
// recovery token are.
import { type Html, html } from '../../../client/page/html.ts'
import type { Operation } from '../../operation.ts'
import { withCode } from './schema-list.ts'

/** Two operations sell the same. By the name of one: who takes it, and who takes the other one. */
const WHICH: Readonly<Record<string, { mine: string; other: string; theirs: string }>> = {
  verify_source: {
    mine: 'This one, if you write the client: you name the purchase by an `Idempotency-Key`, so that every repeat is safe.',
    other: 'buy_source',
    theirs: 'if your x402 client can only pay and send one call. Result and price are the same.',
  },
  buy_source: {
    mine: 'This one, if your x402 client can only pay and send one call: it needs no `Idempotency-Key`.',
    other: 'verify_source',
    theirs: 'if you write the client: with a key of your own every repeat is safe. Result and price are the same.',
  },
}

/** The first lines of an operation that has a twin. */
export function Which({ name }: { name: string }): Html {
  const which = WHICH[name]
  if (!which) return null
  const { mine, other, theirs } = which
  return html`<p class="which"><strong>Which of the two do you need?</strong> ${withCode(mine)}${' '}<a href=${`/docs/${other}`}>${other.replaceAll('_', ' ')}</a>, ${withCode(theirs)}</p>`
}

/** What a caller has to hold for an operation, as a list of names and meanings. */
export function PurchaseWords({ access }: Pick<Operation, 'access'>): Html {
  if (access !== 'payment' && access !== 'recovery') return null
  return html`<h2>${access === 'payment' ? 'Payment and recovery' : 'The recovery token'}</h2>
    <dl class="members">
      ${
        access === 'payment' &&
        html`<div><dt><code>PAYMENT-SIGNATURE</code></dt><dd>The header with which you pay. Send the call without it first: the
          answer 402 has the terms in <code>PAYMENT-REQUIRED</code>. A wallet signs one of them, and the signed payment in Base64
          is the value. An x402 client does all of it. <a href="/guide/buying#the-steps">The steps</a></dd></div>`
      }
      <div><dt>Recovery token</dt><dd>The secret in <code>X-Service-Recovery-Token</code> of each 202 and 200 of a purchase. Keep it:
        sent as <code>Authorization: Bearer …</code> to${' '}${
          access === 'payment' ? html`<a href="/docs/get_request">get request</a>` : 'this address'
        }, it gets the result again, also after a lost answer, and pays nothing.</dd></div>
    </dl>`
}
