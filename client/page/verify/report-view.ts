// A report for people about something that was examined: for a result its card, for anything else what it says; whether it is genuine
// and whose key signed it; and the checks with the bytes behind them.
import { useMemo } from 'preact/hooks'
import type { Check } from '../../checks.ts'
import { type Html, html } from '../html.ts'
import { Badge, Facts, type Tone, toneClass } from '../parts.ts'
import { cardOf } from '../result/card-result.ts'
import { Mark, WholeText } from '../result/quotes-view.ts'
import { ResultCard } from '../result/result-card.ts'
import { attestationIn, bytesBehind } from './bytes-behind.ts'
import { changedParts } from './changed-parts.ts'
import { LEASE_WORDS, wordsOf } from './check-words.ts'
import type { KeyStatus, Report, Status } from './examine.ts'

export interface ReportProps {
  report: Report
  /** Address of the service that served the page; null for the file that works from disk. */
  service: URL | null
  /** Until when it is in force. */
  term?: Html
  /** What to do about what is not genuine, or is not checked here. */
  remedy?: Html
  /** Of a verdict that was made again and differs: what stands above all else. */
  differs?: Html
  /** What is said of a verdict that was to be made again, after the count of the checks. */
  again?: string
}

/**
 * Of a result that is proved, the verdict comes first and its proof last. Of any other, and of a changed one in particular, the reader
 * learns first why it is not proved.
 */
export function ReportView({ report, service, term, remedy, differs, again = '' }: ReportProps): Html {
  const { status, facts, value } = report
  const result = useMemo(() => cardOf(value), [value])
  const isProved = status === 'good' || status === 'published'
  if (!result)
    return html`<div class="report"><${Standing} report=${report} service=${service} term=${term} isFirst />${remedy}
      ${facts.length > 0 && html`<section aria-label="What it says"><h3>${isProved || status === 'lapsed' ? 'What it says' : SAID}</h3><${Facts} facts=${facts} /></section>`}
      <${Proof} report=${report} service=${service} /></div>`
  const marks = status === 'bad' ? changedParts(report.checks) : undefined
  const all = { source: result.source, evidence: result.claims.flatMap(({ evidence }) => evidence) }
  return html`<div class="report">
    ${differs}
    ${!isProved && html`<${Standing} report=${report} service=${service} isFirst />`}${remedy}
    <${ResultCard} result=${result} isProved=${isProved} differs=${isProved && Boolean(differs)} marks=${marks} accuracy=${service && new URL('accuracy', service).href}
      outcome=${isProved && html`<${Outcome} words=${`${differs ? 'The signature holds' : 'Genuine'}: ${outcomeOf(report)} ${again}`.trim()} link="What was proved" />`}>
      <${WholeText} ...${all} mark=${marks?.text} />
      <footer class="proof">
        ${isProved ? html`<${Standing} report=${report} service=${service} />` : html`<h3>Its receipt, which is not proved</h3>`}
        ${marks?.receipt && html`<${Mark} title="Changed">${marks.receipt}<//>`}
        <${Facts} facts=${receiptFacts(report, service)} />
        <${Proof} report=${report} service=${service} />
      </footer>
    <//>
  </div>`
}

const SAID = 'What it says, which is not proved'
/** Facts of a result that its card shows in a better form; several claims are numbered. */
const ON_CARD = /^(Claim|Verdict)( \d+)?$|^Page$|^Read on$/

/** Of a result that the service of this page signed, the receipt is in its chain, and has a page there. */
function receiptFacts({ status, facts, value }: Report, service: URL | null): (readonly [name: string, value: Html])[] {
  const { serial } = attestationIn(value)
  const page = status === 'published' && service ? new URL(`receipts/${serial}`, service).href : null
  const linked = (name: string, words: string) =>
    name === 'Receipt' && page ? html`<a href=${page}>${words}</a>` : words
  return facts.filter(([name]) => !ON_CARD.test(name)).map(([name, words]) => [name, linked(name, words)])
}

const SIGNED = 'A check shows who signed what, when, and that it is unchanged. It does not show '
const OF_RECEIPT = `${SIGNED}what the digest is of, nor that what it is of is true.`
const OF_CHAIN =
  'A check shows that the receipts follow each other, unchanged. It does not show what their digests are of.'

/** What the checks do not show, by the kind of what was checked. A check of anything else shows nothing. */
const LIMITS: Readonly<Record<string, string>> = {
  'a completed result': `${SIGNED}that the claim is true, nor that the page says the same today.`,
  'the receipt of a purchase': `${SIGNED}what the result says; the result itself can be checked here too.`,
  'a lease': `${SIGNED}whether the lease was revoked since: only the service knows, and then refuses to renew it.`,
  'the revocation of a lease': `${SIGNED}that every gateway knows of it: offline, one may accept the lease for up to 30 seconds more.`,
  'an alert': `${SIGNED}what has happened since.`,
  'a receipt': OF_RECEIPT,
  'an attestation': OF_RECEIPT,
  'consecutive attestations': OF_CHAIN,
  'a page of the chain': OF_CHAIN,
  'an export of the whole chain': OF_CHAIN,
}

/** None of them is the colour of a verdict. */
const TONES: Record<Status, Tone> = {
  good: 'proved',
  published: 'proved',
  stranger: 'plain',
  keyless: 'plain',
  lapsed: 'plain',
  bad: 'refuted',
  unsigned: 'plain',
  unread: 'plain',
}

export const HEADLINES: Record<Status, string> = {
  good: 'Genuine',
  published: 'Genuine: signed by this service',
  stranger: 'Unchanged, but signed with an unknown key',
  keyless: 'Not checked: its key is not known here',
  lapsed: 'Genuine, but no longer in force',
  bad: 'Not genuine',
  unsigned: 'Nothing to verify',
  unread: 'Not checked here',
}

/** Of a lease whose revocation is only said in the file: that part is not signed. */
const SAID_REVOKED = 'Genuine, but said to be revoked'

function headlineOf({ status, kind, failure, value, term }: Report): string {
  if (status === 'lapsed' && term?.state === 'revoked' && !term.isSigned) return SAID_REVOKED
  if (status === 'bad' && (kind === 'a file' || failure)) return 'It cannot be checked'
  const isPending = failure !== null && (value as { status?: unknown }).status === 'pending'
  return isPending ? 'Being checked: nothing to verify yet' : HEADLINES[status]
}

/** How many checks passed, as the end of a sentence; empty where that says nothing. */
function outcomeOf({ status, kind, checks, failure }: Report): string {
  const passed = checks.filter(({ ok }) => ok).length
  const unrun = checks.filter(wasNotRun).length
  const [all, failed] = [checks.length, checks.length - passed - unrun]
  if (all === 0 || failure || kind === 'a file' || status === 'lapsed' || status === 'keyless') return ''
  if (failed === 0 && unrun === 0) return all === 1 ? 'the check passed.' : `all ${all} checks passed.`
  if (failed === 0) return `${passed} of ${all} checks passed; ${unrun} could not be made.`
  if (status === 'stranger') return `${passed} of ${all} checks passed, but not that of the key.`
  return `${failed} of ${all} checks failed${unrun > 0 ? `, and ${unrun} could not be made` : ''}.`
}

const wasNotRun = ({ ok, detail }: Check) => !ok && (detail?.startsWith('not checked') ?? false)

/** A button, because a link to a part of the page would replace the token in the address of a result. */
function Outcome({ words, link }: { words: string; link: string }): Html {
  return html`<p class="outcome-line">${words}${' '}<button type="button" class="link" onClick=${showChecks}>${link}</button></p>`
}

function showChecks({ currentTarget }: { currentTarget: Element }) {
  const report = currentTarget.closest('.report')
  const checks = report?.querySelector<HTMLDetailsElement>('details.checks')
  if (!checks) return
  checks.open = true
  checks.querySelector('summary')?.focus({ preventScroll: true })
  const start = report?.querySelector('.proof') ?? checks
  start.scrollIntoView()
}

/** Whether it is genuine, and why or why not. @param isFirst it stands above all else, so that it says how many checks passed */
function Standing({ report, service, term, isFirst = false }: ReportProps & { isFirst?: boolean }): Html {
  const { status, kind, failure } = report
  const outcome = isFirst ? outcomeOf(report) : ''
  return html`<header class=${`standing ${toneClass(TONES[status])}`.trim()}>
    <p class="kind">${status === 'bad' && kind !== 'a file' && !failure ? 'It says that it is' : 'This is'} ${failure ?? (kind === 'a file' ? 'nothing that this page knows' : kind)}.</p>
    <h2 id="standing" tabindex="-1">${headlineOf(report)}</h2>
    ${term}
    ${outcome && html`<${Outcome} words=${outcome} link="See the checks" />`}
    <${Summary} report=${report} service=${service} />
  </header>`
}

function Summary({ report, service }: ReportProps): Html {
  const { failure } = report
  const host = service?.host
  switch (report.status) {
    case 'good':
      return html`<p>It is unchanged since it was signed, and the key is one that you pinned.</p>`
    case 'published':
      return html`<p>It is unchanged since it was signed, with a key that ${host ?? 'this service'} publishes as its own. To check that
        without taking its word for it, pin the key that its owner told you in another way<span class="on-screen">, under “Pin the keys that you trust”</span>.</p>`
    case 'stranger':
      return html`<p>Nothing was changed since it was signed. But the key is not one that you pinned
        ${host ? ` or that ${host} publishes` : ''}: anyone can make a key and sign with it.</p>`
    case 'keyless':
      return html`<p>Without its key not even a change would show. Pin the keys of the service that is said to have made it.</p>`
    case 'lapsed':
      return html`<p>It is unchanged since it was signed, with a key that ${report.key?.status === 'pinned' ? 'you pinned' : `${host ?? 'this service'} publishes as its own`}.</p>`
    case 'unread':
      return html`<p>A package holds what was read, byte for byte. A program does the whole verification again from it, offline; the steps are
        below. This page checks the result that belongs to it.</p>`
    case 'unsigned':
      if (!failure)
        return html`<p>Nobody signs the report of a check: anyone can write such a file, so it proves nothing, whatever it says.</p>`
      return html`<p>This answer of the service has no receipt, so no key vouches for it.</p>`
    default:
      return html`<ul>${faultsOf(report.checks).map((fault) => html`<li key=${fault}>${fault}</li>`)}</ul>`
  }
}

/** What was changed, in words. Checks that could not run because of another one say nothing of their own. */
export function faultsOf(checks: readonly Check[]): string[] {
  const failed = checks.filter((check) => !check.ok && !wasNotRun(check))
  return [...new Set(failed.map((check) => (check.name === 'lease' ? leaseFault(check) : wordsOf(check.name).fails)))]
}

function leaseFault({ detail = '' }: Check): string {
  return LEASE_WORDS[detail.split(':')[0] ?? ''] ?? wordsOf('lease').fails
}

/** Whose key it is, and every check. */
function Proof({ report, service }: ReportProps): Html {
  const { key, checks, status, value, kind } = report
  // Of a lease that has ended the one check is that it is in force, and the words above say it.
  const hasChecks = checks.length > 0 && status !== 'lapsed'
  const limit = LIMITS[kind]
  return html`${key && html`<${KeyView} report=${report} service=${service} />`}
    ${hasChecks && html`<${Checks} checks=${checks} value=${value} />`}
    ${hasChecks && limit && html`<p class="aside">${limit}</p>`}`
}

function KeyView({ report: { key, status }, service }: ReportProps): Html {
  if (!key) return null
  return html`<section class="key" aria-labelledby="whose">
    <h3 id="whose">Whose key is this?</h3>
    <p><${Badge} tone=${status === 'bad' ? 'plain' : KEY_TONES[key.status]}>${status === 'bad' ? 'Named by the file.' : KEY_WORDS[key.status]}<//> ${status === 'bad' ? NO_MEANING : keyMeaning(key.status, service?.host, key.hex !== null)}</p>
    <p class="bytes-line"><code>${key.hex ? `${key.id}:${key.hex}` : `key ${key.id}`}</code></p>
  </section>`
}

/** Of the key of a file that failed a check. */
const NO_MEANING = 'That says nothing for the file, because it did not pass every check.'

const KEY_TONES: Record<KeyStatus, Tone> = {
  pinned: 'proved',
  published: 'proved',
  unpinned: 'plain',
  unknown: 'plain',
}

const KEY_WORDS: Record<KeyStatus, string> = {
  pinned: 'Pinned by you.',
  published: 'Published here.',
  unpinned: 'Not one of your pins.',
  unknown: 'Unknown.',
}

function keyMeaning(status: KeyStatus, host: string | undefined, hasHex: boolean): string {
  switch (status) {
    case 'pinned':
      return 'You gave this key yourself: whose it is does not rest on the word of this page or of the file.'
    case 'published':
      return `${host} names this key as its own. You trust the service, and the connection to it, that this is so.`
    case 'unpinned':
      return `${host} publishes this key, but you pinned others. Ask the service why before you rely on it.`
    case 'unknown':
      if (!hasHex) return 'The file names its number alone.'
      return 'Only the file itself names this key. Ask the service that is said to have made it, not the sender of the file, and pin the key that it names.'
  }
}

function Checks({ checks, value }: { checks: readonly Check[]; value: unknown }): Html {
  const good = checks.filter(({ ok }) => ok).length
  const failed = checks.filter((check) => !check.ok && !wasNotRun(check)).length
  return html`<section aria-labelledby="checks">
    <h3 id="checks">The checks</h3>
    <details class="checks">
      <summary>${failed === 0 ? `${good} of ${checks.length} checks passed` : `${checks.length - good} of ${checks.length} checks did not pass`}</summary>
      <ol>${checks.map((check) => html`<${CheckRow} key=${check.name} check=${check} value=${value} />`)}</ol>
    </details>
  </section>`
}

function CheckRow({ check, value }: { check: Check; value: unknown }): Html {
  const { name, ok, detail } = check
  const wasRun = !wasNotRun(check)
  const bytes = bytesBehind(name, value)
  return html`<li class=${ok ? 'passed' : 'failed'}>
    <p><${Badge} tone=${ok ? 'proved' : wasRun ? 'refuted' : 'plain'}>${ok ? 'Passed' : wasRun ? 'Failed' : 'Not run'}<//> ${ok || !wasRun ? wordsOf(name).holds : wordsOf(name).fails} <code>${name}</code></p>
    ${detail && name !== 'json' && html`<p class="detail">${detail}</p>`}
    ${
      bytes.length > 0 &&
      html`<details class="bytes"><summary>The bytes behind it</summary>${bytes.map(
        ({ label, text }) => html`<p key=${label}>${label}</p><pre tabindex="0" aria-label=${label}>${text}</pre>`,
      )}</details>`
    }
  </li>`
}
