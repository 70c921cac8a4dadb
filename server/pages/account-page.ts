// The page /account: a frame for the work of the browser with an API key, and instructions for browsers without scripts.
import type { Plans } from '../../client/page/account/account-plans.ts'
import { html } from '../../client/page/html.ts'
import { Notice } from '../../client/page/parts.ts'
import { LIMITS, MONTHLY_PRICE_USD } from '../accounts/tiers.ts'
import { renderPage, type Site } from './layout.ts'

export function accountPage(site: Site): string {
  return renderPage(site, {
    title: 'Account',
    path: '/account',
    description: 'Make an account, or open yours with its API key: usage, leases, watchdogs, receipts and keys.',
    scripts: ['account'],
    body: html`<h1>Your account</h1>
      <noscript><${Notice} title="This page needs JavaScript, which is off.">The API key stays in the memory of the page, so only
        a script can use it. The command line does the same: <code>countersign account register HANDLE --service ${site.baseUrl}</code> makes an account,${' '}
        <code>countersign account show --service ${site.baseUrl} --key FILE</code> shows it, and likewise <code>lease</code>, <code>watchdog</code>, <code>citation</code>, <code>receipt</code> and <code>journal</code>.<//></noscript>
      <div id="account" data-service="/" data-plans=${JSON.stringify(PLANS)}></div>`,
  })
}

const PLANS: Plans = {
  free: { usd_per_month: 0, limits: LIMITS.free },
  dev: { usd_per_month: MONTHLY_PRICE_USD.dev, limits: LIMITS.dev },
  pro: { usd_per_month: MONTHLY_PRICE_USD.pro, limits: LIMITS.pro },
}
