// The page /pricing: what a verification costs, with a calculator, and what each tier of accounts has, from the tables that enforce it.
import { networkInWords } from '../../client/networks.ts'
import { CHOSEN_BY } from '../../client/page/account/account-plans.ts'
import { html } from '../../client/page/html.ts'
import { inFigures, Notice, Table } from '../../client/page/parts.ts'
import {
  CALLER_LIMITS,
  LIMITS,
  MONTHLY_PRICE_USD,
  PUBLIC_LIMITS,
  TIERS,
  type Tier,
  type TierLimits,
  tierLimits,
} from '../accounts/tiers.ts'
import { FURTHER_CLAIM, HIGHEST_PRICE, MOST_CLAIMS } from '../interface/price.ts'
import type { Capabilities } from '../verification/offer/capabilities.ts'
import { type Calculation, Calculator } from './cost-calculator.ts'
import { renderPage, type Site } from './layout.ts'

export function pricingPage(site: Site, capabilities: Capabilities, calculation: Calculation): string {
  const { price, payment_mode, networks, idempotency } = capabilities
  return renderPage(site, {
    title: 'Pricing',
    path: '/pricing',
    description: `${price.usd} ${price.currency} for each verification, paid through x402. Accounts are free; a subscription raises their limits.`,
    body: html`<h1>Pricing</h1>
      <p class="lead">A verification is the signed answer to whether one web page says what is claimed. You pay for each one, without an account. Accounts are for other tools, and free to begin with.${site.canTry && html` <a href="/try">Try it for free</a>`}</p>
      ${
        payment_mode !== 'mainnet' &&
        // A public service in offline mode says so above every page.
        !site.offlinePublic &&
        html`<${Notice} title=${`This service runs in ${payment_mode} mode.`}>${
          payment_mode === 'offline'
            ? 'No money moves: payments and subscriptions are simulated.'
            : 'It takes test money only.'
        }<//>`
      }
      <section class="price" aria-labelledby="verifications">
        <div>
          <h2 id="verifications">A verification</h2>
          <p class="amount"><strong>${price.usd} ${price.currency}</strong> for one claim on one page</p>
          <ul>
            <li>Your program or wallet pays by itself over x402, a standard for payments by HTTP, on ${networks.map(networkInWords).join(' or ')}.</li>
            <li><a href="/guide/several-claims">Several claims on one page</a>: ${FURTHER_CLAIM.usd} ${price.currency} for each after the first, up to ${MOST_CLAIMS} for ${HIGHEST_PRICE.usd}.</li>
            <li>A page that cannot be read costs nothing. A call that is repeated with the same <code>Idempotency-Key</code> is charged once.</li>
            <li>The result is kept for ${idempotency.result_retention_seconds / 3600} hours, its receipt for good.</li>
          </ul>
          <p><a href="/guide/buying">How to pay</a></p>
        </div>
        <${Calculator} calculation=${calculation} />
      </section>
      <h2>Accounts, for people who run agents</h2>
      <p>An account has leases (permissions that end by themselves), watchdogs (alerts when a job falls silent), citation watches (alerts when a
        quote changes), quote checks, receipts for files, and a journal (small stores for agents). No verification needs one.</p>
      <ul class="plans">${TIERS.map((tier) => html`<${Plan} key=${tier} tier=${tier} />`)}</ul>
      <details id="limits"><summary>All limits of the tiers</summary>
        <p>Days are UTC. <a href="/guide/limits">What a refusal looks like</a></p>
        <${Table} caption="What each tier has" unseen stacks columns=${[{ name: '' }, ...TIERS.map((tier) => ({ name: tier, number: true }))]}
          rows=${LIMIT_NAMES.map((name) => [
            html`<${Limit} name=${name} />`,
            ...TIERS.map((tier) => inFigures(LIMITS[tier][name])),
          ])} />
      </details>
      <details id="everybody"><summary>Limits for everybody</summary>
        <p>They hold for callers who pay and for callers without an account.</p>
        <${Table} caption="Limits for everybody" unseen columns=${[{ name: '' }, { name: 'limit', number: true }]}
          rows=${Object.entries({ ...PUBLIC_LIMITS, ...CALLER_LIMITS }).map(([name, limit]) => [inWords(name), inFigures(limit)])} />
      </details>`,
  })
}

const FOR_WHOM: Record<Tier, string> = {
  free: 'To try every tool with one agent.',
  dev: 'For a team with some agents.',
  pro: 'For a fleet of agents.',
}

function Plan({ tier }: { tier: Tier }) {
  const isFree = tier === 'free'
  return html`<li class="plan">
    <h3>${tier}</h3>
    <p class="amount"><strong>${isFree ? '0' : inFigures(MONTHLY_PRICE_USD[tier])} USD</strong> a month</p>
    <p>${FOR_WHOM[tier]}</p>
    <ul>${CHOSEN_BY.map(([name, one, many]) => {
      const limit = LIMITS[tier][name]
      return html`<li key=${name}><strong>${inFigures(limit)}</strong> ${limit === 1 ? one : many}</li>`
    })}</ul>
    <p class="actions"><a class=${isFree ? 'button' : 'button quiet'} href="/account">${isFree ? 'Make an account' : `Choose ${tier[0]?.toUpperCase()}${tier.slice(1)} in your account`}</a></p>
  </li>`
}

const LIMIT_NAMES = tierLimits.keyof().options

function Limit({ name }: { name: keyof TierLimits }) {
  const about = tierLimits.shape[name].description
  return html`${inWords(name)}${about && html`<br /><span class="detail">${about}</span>`}`
}

const inWords = (name: string) => name.replaceAll('_', ' ')
