// What each tier has, as the service tells the account page, and the words that say it before a limit is met.
import type { Tier, TierLimits } from '../../operations/account.ts'
import { type Html, html } from '../html.ts'
import { inFigures, Notice } from '../parts.ts'

export type Plans = Readonly<Record<Tier, { usd_per_month: number; limits: TierLimits }>>

/** What people choose a tier by, in words for one and for several. */
export const CHOSEN_BY: readonly (readonly [name: keyof TierLimits, one: string, many: string])[] = [
  ['active_leases', 'active lease', 'active leases'],
  ['watchdogs', 'watchdog', 'watchdogs'],
  ['citation_watches', 'citation watch', 'citation watches'],
  ['receipts_per_day', 'receipt a day', 'receipts a day'],
  ['quote_check_pages_per_day', 'page a day checked for quotes', 'pages a day checked for quotes'],
  ['journal_slots', 'journal slot of 64 KiB', 'journal slots of 64 KiB'],
]

/** `The free tier has 1 active lease, 1 watchdog, ... .` */
export function tierInWords(tier: Tier, plans: Plans): string {
  const parts = CHOSEN_BY.map(([name, one, many]) => {
    const limit = plans[tier].limits[name]
    return `${inFigures(limit)} ${limit === 1 ? one : many}`
  })
  return `The ${tier} tier has ${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}.`
}

export interface RoomProps {
  plans: Plans
  tier: Tier
  limit: keyof TierLimits
  /** How many there are now; undefined until that is known. */
  used: number | undefined
}

/** How much of a limit is left, before the form that would meet it. */
export function Room({ plans, tier, limit, used }: RoomProps): Html {
  const most = plans[tier].limits[limit]
  const [, one = '', many = ''] = CHOSEN_BY.find(([name]) => name === limit) ?? []
  const words = `${inFigures(most)} ${most === 1 ? one : many}`
  if (used === undefined || used < most)
    return html`<p class="detail">The ${tier} tier has ${words}${used !== undefined && `; ${used === 0 ? 'none is' : `${inFigures(used)} ${used === 1 ? 'is' : 'are'}`} used`}.</p>`
  const more = tier === 'free' ? 'dev' : tier === 'dev' ? 'pro' : null
  return html`<${Notice} title="There is no room for another one.">The ${tier} tier has ${words}. ${
    more &&
    html`The ${more} tier has ${inFigures(plans[more].limits[limit])}, for ${inFigures(plans[more].usd_per_month)} USD a month: see Usage.`
  }<//>`
}
