// What the account used of its tier, and its subscription.
import { useEffect, useState } from 'preact/hooks'
import type { Tier, TierLimits, Usage } from '../../operations/account.ts'
import { type Html, html } from '../html.ts'
import { Badge, Facts, inFigures, Time } from '../parts.ts'
import { Act, type SectionProps, Show, useLoaded } from './account-parts.ts'
import { tierInWords } from './account-plans.ts'

export function UsageSection({ client, plans, onTier }: SectionProps): Html {
  const loaded = useLoaded(() => client.getUsage(), [client])
  const { value } = loaded
  useEffect(() => {
    if (value) onTier(value.tier)
  }, [value?.tier])
  // The checkout is in another tab: who comes back sees its outcome.
  useEffect(() => {
    addEventListener('focus', loaded.reload)
    return () => removeEventListener('focus', loaded.reload)
  }, [loaded.reload])
  return html`<${Show} loaded=${loaded}>${(usage: Usage) => html`
    <${Facts} facts=${[
      ['Tier', html`<${Badge}>${usage.tier}<//>`],
      ['Daily counts begin anew', html`<${Time} ms=${Date.parse(usage.resets_at)} />`],
    ]} />
    <p>Verifications are paid one by one, with or without an account, and count nowhere here.</p>
    <dl class="meters">${MEASURES.map(
      ([name, used, limit]) => html`<${Meter} key=${name} name=${name}
      used=${usage.used[used]} limit=${usage.limits[limit]} />`,
    )}</dl>
    <h3>Rates</h3>
    <p>${RATES.map(([name, limit]) => `${inFigures(usage.limits[limit])} ${name}`).join(', ')}.</p>
    <${Subscription} client=${client} plans=${plans} usage=${usage} onDone=${loaded.reload} />`}<//>`
}

const MEASURES: readonly (readonly [name: string, used: keyof Usage['used'], limit: keyof TierLimits])[] = [
  ['Receipts today', 'receipts_today', 'receipts_per_day'],
  ['Active leases', 'active_leases', 'active_leases'],
  ['Lease acts today', 'lease_acts_today', 'lease_acts_per_day'],
  ['Watchdogs', 'watchdogs', 'watchdogs'],
  ['Alerts of watchdogs today', 'watchdog_alerts_today', 'watchdog_alerts_per_day'],
  ['Citation watches', 'citation_watches', 'citation_watches'],
  ['Pages checked for quotes today', 'quote_check_pages_today', 'quote_check_pages_per_day'],
  ['Quote checks at work', 'quote_checks_in_flight', 'quote_checks_in_flight'],
  ['Journal slots', 'journal_slots', 'journal_slots'],
  ['Bytes in the journal', 'journal_bytes', 'journal_bytes'],
  ['API keys', 'api_keys', 'api_keys'],
]

const RATES: readonly (readonly [name: string, limit: keyof TierLimits])[] = [
  ['calls a minute', 'calls_per_minute'],
  ['receipts a minute', 'receipts_per_minute'],
  ['heartbeats a minute', 'heartbeats_per_minute'],
  ['checkouts an hour', 'checkouts_per_hour'],
]

function Meter({ name, used, limit }: { name: string; used: number; limit: number }): Html {
  const part = limit === 0 ? 1 : Math.min(1, used / limit)
  return html`<div class=${part >= 1 ? 'tone-bad' : part >= 0.8 ? 'tone-open' : ''}>
    <dt>${name}</dt>
    <dd><svg class="meter" width="100%" height="8" aria-hidden="true"><rect width="100%" height="8" />
      <rect class="used" width=${`${(part * 100).toFixed(1)}%`} height="8" /></svg>
      <span>${inFigures(used)} of ${inFigures(limit)}${part >= 1 ? ', used up' : ''}</span></dd>
  </div>`
}

interface SubscriptionProps extends Pick<SectionProps, 'client' | 'plans'> {
  usage: Usage
  onDone(): void
}

function Subscription({ client, plans, usage: { subscription, tier }, onDone }: SubscriptionProps): Html {
  const [page, setPage] = useState<{ url: string; label: string } | null>(null)
  const buy = (wanted: 'dev' | 'pro') => async () => {
    const { checkout_url, price_usd, mode } = await client.createCheckout({ tier: wanted })
    setPage({
      url: checkout_url,
      label: `Pay for ${wanted}: ${price_usd} USD a month${mode === 'simulated' ? ', simulated' : ''}`,
    })
  }
  const manage = async () => {
    const { portal_url } = await client.openBillingPortal()
    setPage({ url: portal_url, label: 'Manage the subscription' })
  }
  const offered = (['dev', 'pro'] as const).filter((one) => one !== tier)
  return html`<h3>Subscription</h3>
    ${
      subscription
        ? html`<${Facts} facts=${[
            ['Status', subscription.status],
            ['Tier', subscription.tier],
            [
              'Paid until',
              subscription.current_period_end && html`<${Time} ms=${Date.parse(subscription.current_period_end)} />`,
            ],
            ['Afterwards', subscription.cancel_at_period_end ? 'it ends' : 'it goes on'],
          ]} />`
        : html`<p>The account has none. ${tier === 'free' ? 'The free tier costs nothing.' : `Its ${tier} tier was given to it.`}</p>`
    }
    <dl class="facts">${offered.map(
      (one: Tier) =>
        html`<div key=${one}><dt>${one}</dt><dd>${inFigures(plans[one].usd_per_month)} USD a month. ${tierInWords(one, plans)}</dd></div>`,
    )}</dl>
    <p class="actions">
      ${offered.map((one) => html`<${Act} key=${one} label=${`Subscribe to ${one}`} run=${buy(one)} />`)}
      ${subscription && html`<${Act} label="Change or cancel" run=${manage} />`}
    </p>
    ${
      page &&
      html`<p role="status"><a class="button" href=${page.url} target="_blank" rel="noreferrer noopener">${page.label}</a></p>
      <p class="detail">It opens in another tab. Nothing is charged before you agree there.</p>
      <p class="actions"><button type="button" class="quiet" onClick=${onDone}>Look again</button></p>`
    }`
}
