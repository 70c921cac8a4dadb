// A report for people: what the file is and whether it is genuine, its quotes in their text, whose key signed it, and the
// checks with the bytes behind them.
import type { Check } from '../checks.ts'
import { bytesBehind } from './bytes-behind.ts'
import { LEASE_WORDS, wordsOf } from './check-words.ts'
import type { KeyStatus, Report, Status } from './examine.ts'
import { type Html, html } from './html.ts'
import { Badge, Facts as FactList, type Tone, toneClass } from './parts.ts'
import { QuotesView } from './quotes-view.ts'

export interface ReportProps {
  report: Report
  /** Host of the service that served the page; null for the file that works from disk. */
  host: string | null
}

export function ReportView({ report, host }: ReportProps): Html {
  const { status, kind, failure, facts, value } = report
  return html`<article class="report" aria-labelledby="verdict">
    <header class=${`verdict ${toneClass(TONES[status])}`}>
      <p class="kind">This is ${failure ?? (kind === 'a file' ? 'nothing that this page knows' : kind)}.</p>
      <h2 id="verdict" tabindex="-1">${HEADLINES[status]}</h2>
      <${Summary} report=${report} host=${host} />
    </header>
    ${facts.length > 0 && html`<${Facts} facts=${facts} isProved=${status === 'good' || status === 'published'} />`}
    <${QuotesView} value=${value} />
    ${report.key && html`<${KeyView} report=${report} host=${host} />`}
    ${report.checks.length > 0 && html`<${Checks} checks=${report.checks} value=${value} />`}
    ${report.checks.length > 0 && html`<p class="aside">${LIMITS}</p>`}
  </article>`
}

const LIMITS =
  'A check shows who signed what, when, and that it is unchanged. It does not show that the claim is true, nor that the page ' +
  'says the same today.'

const TONES: Record<Status, Tone> = {
  good: 'good',
  published: 'good',
  stranger: 'open',
  lapsed: 'open',
  bad: 'bad',
  unsigned: 'open',
}

export const HEADLINES: Record<Status, string> = {
  good: 'Genuine',
  published: 'Genuine, if you trust this service',
  stranger: 'Unchanged, but signed with an unknown key',
  lapsed: 'Genuine, but no longer in force',
  bad: 'Not genuine',
  unsigned: 'Nothing to verify',
}

function Summary({ report, host }: ReportProps): Html {
  switch (report.status) {
    case 'good':
      return html`<p>It is unchanged since it was signed, and the key is one that you pinned.</p>`
    case 'published':
      return html`<p>It is unchanged since it was signed, with a key that ${host ?? 'this service'} publishes. Pin the key
        below to be sure that it is the key that you were told.</p>`
    case 'stranger':
      return html`<p>Nothing was changed since it was signed. But the key is not one that you pinned
        ${host ? ` or that ${host} publishes` : ''}: anyone can make a key and sign with it.</p>`
    case 'unsigned':
      return html`<p>This answer of the service has no receipt, so no key vouches for it.</p>`
    default:
      return html`<ul>${faultsOf(report.checks).map((fault) => html`<li key=${fault}>${fault}</li>`)}</ul>`
  }
}

/** What was changed, in words. Checks that could not run because of another one say nothing of their own. */
export function faultsOf(checks: readonly Check[]): string[] {
  const failed = checks.filter(({ ok, detail }) => !ok && !detail?.startsWith('not checked'))
  return [...new Set(failed.map((check) => (check.name === 'lease' ? leaseFault(check) : wordsOf(check.name).fails)))]
}

function leaseFault({ detail = '' }: Check): string {
  return LEASE_WORDS[detail.split(':')[0] ?? ''] ?? wordsOf('lease').fails
}

function Facts({ facts, isProved }: { facts: Report['facts']; isProved: boolean }): Html {
  return html`<section aria-label="What it says">
    <h3>${isProved ? 'What it says' : 'What it says, which is not proved'}</h3>
    <${FactList} facts=${facts} />
  </section>`
}

function KeyView({ report: { key }, host }: ReportProps): Html {
  if (!key) return null
  return html`<section class="key" aria-labelledby="whose">
    <h3 id="whose">Whose key is this?</h3>
    <p><${Badge} tone=${KEY_TONES[key.status]}>${KEY_WORDS[key.status]}<//> ${keyMeaning(key.status, host)}</p>
    <p class="bytes-line"><code>${key.hex ? `${key.id}:${key.hex}` : `key ${key.id}`}</code></p>
  </section>`
}

const KEY_TONES: Record<KeyStatus, Tone> = {
  pinned: 'good',
  published: 'good',
  unpinned: 'open',
  unknown: 'open',
}

const KEY_WORDS: Record<KeyStatus, string> = {
  pinned: 'Pinned by you.',
  published: 'Published here.',
  unpinned: 'Not one of your pins.',
  unknown: 'Unknown.',
}

function keyMeaning(status: KeyStatus, host: string | null): string {
  switch (status) {
    case 'pinned':
      return 'You gave this key yourself, so no one else has to be trusted.'
    case 'published':
      return `${host} names this key as its own. You trust the service, and the connection to it, that this is so.`
    case 'unpinned':
      return `${host} publishes this key, but you pinned others. Ask the service why before you rely on it.`
    case 'unknown':
      return 'Only the file itself names this key. Ask the sender whose key it is, and pin the key that they name.'
  }
}

function Checks({ checks, value }: { checks: readonly Check[]; value: unknown }): Html {
  const good = checks.filter(({ ok }) => ok).length
  return html`<section aria-labelledby="checks">
    <h3 id="checks">The checks</h3>
    <details class="checks">
      <summary>${good} of ${checks.length} checks passed</summary>
      <ol>${checks.map((check) => html`<${CheckRow} key=${check.name} check=${check} value=${value} />`)}</ol>
    </details>
  </section>`
}

function CheckRow({ check: { name, ok, detail }, value }: { check: Check; value: unknown }): Html {
  const wasRun = !detail?.startsWith('not checked')
  const bytes = bytesBehind(name, value)
  return html`<li class=${ok ? 'passed' : 'failed'}>
    <p><${Badge} tone=${ok ? 'good' : wasRun ? 'bad' : 'open'}>${ok ? 'Passed' : wasRun ? 'Failed' : 'Not run'}<//> ${ok || !wasRun ? wordsOf(name).holds : wordsOf(name).fails} <code>${name}</code></p>
    ${detail && name !== 'json' && html`<p class="detail">${detail}</p>`}
    ${
      bytes.length > 0 &&
      html`<details class="bytes"><summary>The bytes behind it</summary>${bytes.map(
        ({ label, text }) => html`<p key=${label}>${label}</p><pre tabindex="0" aria-label=${label}>${text}</pre>`,
      )}</details>`
    }
  </li>`
}
