// The pages around a checkout: the simulated checkout, and the pages that every checkout returns to. They run no script,
// and no cache may store them, because the address of a simulated page is a secret.
import { type Html, html } from '../../client/page/html.ts'
import { Notice } from '../../client/page/parts.ts'
import { MONTHLY_PRICE_USD } from '../accounts/tiers.ts'
import type { SimulatedAction, SimulatedPage } from '../billing/provider.ts'
import { renderPage, type Site } from './layout.ts'

export function simulatedPage(site: Site, page: SimulatedPage): string {
  if (page.state !== 'open')
    return simulation(site, 'Simulated checkout', html`<p>${OVER[page.state]} <a href="/account">Your account</a></p>`)
  const account = html`<b>${page.handle}</b>`
  switch (page.kind) {
    case 'subscribe':
      if (page.current)
        return simulation(site, 'Simulated checkout', html`<p>The account ${account} has a subscription already.</p>`)
      return simulation(
        site,
        'Simulated checkout',
        html`<p>The account ${account} would subscribe to ${plan(page)}.</p>
          <${Form} buttons=${[['pay', 'Pay (simulated)'], ['cancel', 'Cancel']]} />`,
      )
    case 'change':
      return simulation(
        site,
        'Simulated change of plan',
        html`<p>The account ${account} would change from ${page.current ?? 'no subscription'} to ${plan(page)}.</p>
          <${Form} buttons=${[['pay', 'Change (simulated)'], ['cancel', 'Cancel']]} />`,
      )
    case 'manage':
      if (!page.current)
        return simulation(site, 'Simulated billing portal', html`<p>The account ${account} has no subscription.</p>`)
      return simulation(
        site,
        'Simulated billing portal',
        html`<p>The account ${account} subscribes to the ${page.current} tier.</p>
          <${Form} buttons=${[['end', 'End the subscription now'], ['cancel', 'Leave it unchanged']]} />`,
      )
  }
}

const OVER = {
  completed: 'This page was used already. Start a new checkout.',
  expired: 'This page is closed. Start a new checkout.',
}

export const successPage = (site: Site) =>
  show(
    site,
    'Thank you',
    html`<p>The tier changes as soon as the payment is confirmed. <a href="/account">Your account</a> shows it, and so does <code>GET /v1/usage</code>.</p>`,
  )

export const cancelPage = (site: Site) =>
  show(
    site,
    'Nothing was changed',
    html`<p>You left without paying. You can start a new checkout at any time in <a href="/account">your account</a>.</p>`,
  )

export const noCheckoutPage = (site: Site) =>
  show(
    site,
    'There is no such page',
    html`<p>The address is wrong, or the page was deleted after it expired. Start a new checkout in <a href="/account">your account</a>.</p>`,
  )

function plan({ tier }: SimulatedPage): string {
  return tier ? `the ${tier} tier, ${MONTHLY_PRICE_USD[tier]} USD per month` : 'nothing'
}

/** Posts to the page's own address, which cannot be guessed, so another site cannot make a browser send it. */
function Form({ buttons }: { buttons: readonly (readonly [action: SimulatedAction, label: string])[] }) {
  return html`<form method="post" class="actions">${buttons.map(
    ([action, label], n) =>
      html`<button key=${action} name="action" value=${action} class=${n > 0 ? 'quiet' : undefined}>${label}</button>`,
  )}</form>`
}

function simulation(site: Site, title: string, body: Html): string {
  const notice = html`<${Notice} title="Simulation.">This service runs in offline mode without Stripe. It asks for no card, nothing is charged, and the tier applies to this service only.<//>`
  return show(site, title, html`${notice}${body}`)
}

function show(site: Site, title: string, body: Html): string {
  return renderPage(site, {
    title,
    path: '/checkout',
    description: 'A step of a subscription.',
    unlisted: true,
    isStill: true,
    body: html`<h1>${title}</h1>${body}`,
  })
}
