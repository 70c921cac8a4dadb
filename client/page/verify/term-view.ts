// Says whether a lease is in force now, and keeps saying it while the report is read: most are in force for half a minute.
import { useEffect, useState } from 'preact/hooks'
import { type Html, html } from '../html.ts'
import { Time } from '../parts.ts'
import type { Report } from './examine.ts'
import type { Term } from './lease-check.ts'

/** The report as it is now: a lease whose time is over is no longer in force. */
export function useNow(examined: Report | null): { report: Report | null; now: number } {
  const [now, setNow] = useState(Date.now)
  const term = examined?.term
  useEffect(() => {
    if (!term) return
    setNow(Date.now())
    const ticking = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(ticking)
  }, [term])
  return { report: examined && reportAt(examined, now), now }
}

export function reportAt(report: Report, now: number): Report {
  if (report.term?.state !== 'in_force') return report
  const term = termAt(report.term, now)
  if (term.state === 'in_force') return report
  return { ...report, term, status: report.status === 'stranger' ? 'stranger' : 'lapsed' }
}

/** What a term has become by a later time. */
function termAt(term: Term, now: number): Term {
  if (term.state === 'in_force' && now >= term.at) return termAt({ ...term, state: 'to_renew' }, now)
  return term.state === 'to_renew' && now >= term.ends ? { state: 'ended', at: term.ends } : term
}

export function TermView({ term, now }: { term: Term; now: number }): Html {
  return html`<p class="term">${wordsOf(term, now)}</p>`
}

function wordsOf(term: Term, now: number): Html {
  const at = (ms: number) => html`<${Time} ms=${ms} /> (${span(ms - now)})`
  switch (term.state) {
    case 'in_force':
      return html`<strong>In force until ${at(term.at)}</strong>, by the clock of this computer, unless it was revoked: the file cannot show that. ${
        term.ends > term.at && html`Renewed in time, it goes on until <${Time} ms=${term.ends} /> at the latest.`
      }`
    case 'to_renew':
      return html`<strong>Not in force since ${at(term.at)}</strong>: this file holds no later renewal. If it was not revoked, it can be renewed, until${' '}
        <${Time} ms=${term.ends} /> at the latest.`
    case 'ended':
      return html`<strong>Ended on ${at(term.at)}.</strong> It cannot be renewed.`
    case 'revoked':
      return term.isSigned
        ? html`<strong>Revoked${term.at !== null && html` on ${at(term.at)}`}.</strong> It cannot be renewed.`
        : html`<strong>Not proved: the file says that it was revoked${term.at !== null && html` on ${at(term.at)}`}.</strong> That part of it is not
            signed. Do not act on the lease before the service has said whether it renews it. What the service signed when it revoked the lease proves
            it, and can be checked here.`
  }
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const
const relative = new Intl.RelativeTimeFormat('en-GB')

/** `in 25 seconds`, `3 minutes ago`. From two of a unit on, it is counted in that unit. */
export function span(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= 2 * length) ?? ['second', 1]
  return relative.format(Math.trunc(seconds / length), unit)
}
