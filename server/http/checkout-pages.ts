// The pages around a checkout: the simulated checkout, and the pages that every checkout returns to. HTML without scripts.

import { MONTHLY_PRICE_USD } from '../accounts/tiers.ts'
import type { SimulatedAction, SimulatedPage } from '../billing/provider.ts'

/** The page loads nothing, runs no scripts, cannot be framed, and sends no referrer: its address is a secret. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
}

const NOTICE =
  '<p class="notice"><strong>Simulation.</strong> This service runs in offline mode without Stripe. ' +
  'It asks for no card, nothing is charged, and the tier applies to this service only.</p>'

export function simulatedPage(page: SimulatedPage): string {
  const account = `<b>${escaped(page.handle)}</b>`
  if (page.state !== 'open') return layout('Simulated checkout', `${NOTICE}<p>${OVER[page.state]}</p>`)
  switch (page.kind) {
    case 'subscribe':
      if (page.current) return layout('Simulated checkout', `${NOTICE}<p>${account} has a subscription already.</p>`)
      return layout(
        'Simulated checkout',
        `${NOTICE}<p>${account} would subscribe to ${plan(page)}.</p>${form('pay', 'Pay (simulated)')}${form('cancel', 'Cancel')}`,
      )
    case 'change':
      return layout(
        'Simulated change of plan',
        `${NOTICE}<p>${account} would change from ${escaped(page.current ?? 'no subscription')} to ${plan(page)}.</p>
${form('pay', 'Change (simulated)')}${form('cancel', 'Cancel')}`,
      )
    case 'manage':
      if (!page.current) return layout('Simulated billing portal', `${NOTICE}<p>${account} has no subscription.</p>`)
      return layout(
        'Simulated billing portal',
        `${NOTICE}<p>${account} subscribes to the ${escaped(page.current)} tier.</p>
${form('end', 'End the subscription now')}${form('cancel', 'Leave it unchanged')}`,
      )
  }
}

const OVER = {
  completed: 'This page was used already. Start a new checkout.',
  expired: 'This page is closed. Start a new checkout.',
}

export const successPage = () =>
  layout(
    'Thank you',
    '<p>The tier changes as soon as the payment is confirmed. <code>GET /v1/usage</code> shows it.</p>',
  )

export const cancelPage = () =>
  layout('Nothing was changed', '<p>You left without paying. You can start a new checkout at any time.</p>')

export const noPage = () =>
  layout(
    'There is no such page',
    '<p>The address is wrong, or the page was deleted after it expired. Start a new checkout.</p>',
  )

function plan({ tier }: SimulatedPage): string {
  return tier ? `the ${escaped(tier)} tier, ${MONTHLY_PRICE_USD[tier]} USD per month` : 'nothing'
}

/** Posts to the page's own address, which cannot be guessed, so another site cannot make a browser send it. */
function form(action: SimulatedAction, label: string): string {
  return `<form method="post"><button name="action" value="${action}">${label}</button></form>`
}

function layout(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · Countersign</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}form{display:inline-block;margin-right:1rem}
button{font:inherit;padding:.4rem 1rem}.notice{border:2px solid #b00;padding:.5rem 1rem}</style>
<h1>${title}</h1>
${body}
</html>
`
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}
