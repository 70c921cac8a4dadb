// The page /pricing: what a verification costs, and what each tier of accounts has, from the tables that enforce it.
import { html } from '../../client/page/html.ts'
import { inFigures, Notice, Table } from '../../client/page/parts.ts'
import {
  CALLER_LIMITS,
  LIMITS,
  MONTHLY_PRICE_USD,
  PUBLIC_LIMITS,
  TIERS,
  type TierLimits,
  tierLimits,
} from '../accounts/tiers.ts'
import type { Capabilities } from '../verification/capabilities.ts'
import { renderPage, type Site } from './layout.ts'

export function pricingPage(site: Site, { price, payment_mode, networks, idempotency }: Capabilities): string {
  return renderPage(site, {
    title: 'Prices and limits',
    path: '/pricing',
    description: `${price.usd} ${price.currency} for each verification, paid through x402. Accounts are free; a subscription raises their limits.`,
    body: html`<h1>Prices and limits</h1>
      ${
        payment_mode !== 'mainnet' &&
        html`<${Notice} tone="open" title=${`This service runs in ${payment_mode} mode.`}>${
          payment_mode === 'offline' ? 'No money moves.' : 'It takes test money only.'
        }<//>`
      }
      <h2>Verifications</h2>
      <p><strong>${price.usd} ${price.currency}</strong> (${inFigures(Number(price.amount_atomic))} atomic units) for one page and one claim,
        paid through x402; no account is needed. One <code>Idempotency-Key</code> is charged at most once. A page that
        cannot be read costs nothing. A result is kept ${idempotency.result_retention_seconds / 3600} hours. Networks:
        ${networks.map((name) => html` <code key=${name}>${name}</code>`)}.</p>
      <h2>Accounts</h2>
      <p>An account costs nothing: <code>POST /v1/register</code>. A subscription raises its limits; a person takes it on the page
        that <code>POST /v1/checkout</code> names. Days are UTC.</p>
      <${Table} caption="What each tier has" unseen columns=${[{ name: '' }, ...TIERS.map((tier) => ({ name: tier, number: true }))]}
        rows=${[
          ['USD per month', ...TIERS.map((tier) => (tier === 'free' ? '0' : inFigures(MONTHLY_PRICE_USD[tier])))],
          ...LIMIT_NAMES.map((name) => [
            html`<${Limit} name=${name} />`,
            ...TIERS.map((tier) => inFigures(LIMITS[tier][name])),
          ]),
        ]} />
      <h2>Everybody</h2>
      <p>These limits hold for callers who pay and for callers without an account. <a href="/guide/limits">What a refusal
        looks like</a></p>
      <${Table} caption="Limits for everybody" unseen columns=${[{ name: '' }, { name: 'limit', number: true }]}
        rows=${Object.entries({ ...PUBLIC_LIMITS, ...CALLER_LIMITS }).map(([name, limit]) => [inWords(name), inFigures(limit)])} />`,
  })
}

const LIMIT_NAMES = tierLimits.keyof().options

function Limit({ name }: { name: keyof TierLimits }) {
  const about = tierLimits.shape[name].description
  return html`${inWords(name)}${about && html`<br /><span class="detail">${about}</span>`}`
}

const inWords = (name: string) => name.replaceAll('_', ' ')
