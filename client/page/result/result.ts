// The page of a result in the browser: fetches the result with the token of the address' fragment, checks it as /verify does,
// shows it, and offers it as files.
import { type ComponentChildren, render } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { bibtexEntry, citableResults, markdownFootnote, textSelectors } from '../../citation.ts'
import type { Failure } from '../../error.ts'
import type { PurchaseResult } from '../../result.ts'
import { type Html, html } from '../html.ts'
import { Facts, Notice } from '../parts.ts'
import { againUnknown, CheckAgain } from '../try/check-again.ts'
import { Pins, usePublishedKeys, useReport } from '../verify/checking.ts'
import { ReportView } from '../verify/report-view.ts'
import type { PublishedKey } from '../verify/trust.ts'
import { cardOf, questionOf } from './card-result.ts'
import { type Recoverable, type Recovery, recover } from './recovery.ts'

/** The frame that the server made, with what it knows. */
const place = document.getElementById('result')
const canTry = place?.dataset.canTry !== undefined

interface Place {
  service: URL
  requestId: string
}

function ResultPage({ service, requestId }: Place): Html {
  const token = useToken()
  if (token === '')
    return html`<${Notice} title="The link has no token.">A result is shown to the holder of its recovery token. The link
      to it ends with <code>#</code> and the token; this one was cut off. Ask the sender for the whole link.<//>
      <p class="actions"><a class="button quiet" href="/verify">Verify a saved result</a><a class="button quiet" href="/chain">Search the receipts</a></p>`
  return html`<${Recovered} key=${token} service=${service} requestId=${requestId} token=${token} />`
}

/** What follows # in the address. A link to another token of the same page changes nothing else. */
function useToken(): string {
  const read = () => location.hash.slice(1)
  const [token, setToken] = useState(read)
  useEffect(() => {
    const change = () => setToken(read())
    addEventListener('hashchange', change)
    return () => removeEventListener('hashchange', change)
  }, [])
  return token
}

function Recovered(place: Recoverable): Html {
  const [recovery, setRecovery] = useState<Recovery>({ state: 'asking' })
  useEffect(() => {
    const leaving = new AbortController()
    follow(place, leaving.signal, setRecovery)
    return () => leaving.abort()
  }, [])
  switch (recovery.state) {
    case 'asking':
      return html`<p role="status">Asking for the result.</p>`
    case 'pending':
      return html`<div role="status"><${Notice} tone="waiting" title=${recovery.isAtWork ? 'Being checked.' : 'No answer yet.'}>${firstSentence(recovery.message)}${' '}
        This page asks again in ${recovery.seconds} s, which costs nothing.<//></div>`
    case 'refused':
      return html`<${Refused} failure=${recovery.failure} ...${place} />`
    case 'completed':
      return html`<${Shown} result=${recovery.result} bytes=${recovery.bytes} service=${place.service} />`
  }
}

async function follow(place: Recoverable, signal: AbortSignal, show: (recovery: Recovery) => void) {
  try {
    for await (const recovery of recover(place, signal)) show(recovery)
  } catch (error) {
    if (!signal.aborted) show({ state: 'refused', failure: unreadable(error) })
  }
}

function unreadable(error: unknown): Failure {
  return {
    code: 'unexpected_response',
    message: `The answer cannot be read: ${(error as Error).message}`,
    retryable: true,
  }
}

interface Refusal {
  title: string
  meaning: string
}

/** What an answer without a result means for the receiver of the link, by its status. */
const REFUSALS: Readonly<Record<number, Refusal>> = {
  402: {
    title: 'It is not paid for.',
    meaning: 'The payment was proved never to have been charged. The caller can pay again with the same key.',
  },
  404: {
    title: 'This token opens no result here.',
    meaning:
      'The link is mistyped, was cut off, belongs to another service, or the request was deleted. The service does not say which, so that nobody can try out tokens.',
  },
  410: {
    title: 'The result is no longer kept.',
    meaning:
      'Results are deleted some time after they are completed; their receipts stay. A saved result can still be verified, and names the serial of its receipt.',
  },
  422: {
    title: 'This check could not be done.',
    meaning: 'It says nothing about the claim, neither for it nor against it. Nothing was charged.',
  },
}

/** What follows of a check that could not be done. */
const FINAL = 'Asked again, this page ends in the same way: another page may bear on the claim.'
const PASSING = 'The same may get an answer later.'

/** What the service says follows for programs: when to repeat the call. */
const firstSentence = (message: string) => message.replace(/\. .*$/s, '.')

function Refused({ failure, requestId, service }: { failure: Failure } & Place): Html {
  const { status, retryable } = failure
  const { title, meaning } = REFUSALS[status ?? 0] ?? {
    title: 'The result could not be fetched.',
    meaning: retryable ? 'Load the page again later.' : 'Loaded again, the link ends in the same way.',
  }
  return html`<${Notice} title=${title}>${meaning}${status === 422 && ` ${retryable ? PASSING : FINAL}`}<//>
    <${Facts} facts=${[
      // The notice above says what was not charged.
      ['The service said', failure.message.replace(/ Nothing was charged\.$/, '')],
      ['Error code', html`<a href=${`/docs/errors#error-${failure.code}`}><code>${failure.code}</code></a>`],
      ['Request', html`<code>${requestId}</code>`],
      ['Page and claim', 'Not in this answer. The person who gave you the link knows them.'],
    ]} />
    <${WayOn} failure=${failure} service=${service} />`
}

/** What the receiver of a link that shows nothing can still do, the likeliest first. */
function WayOn({ failure, service }: { failure: Failure; service: URL }): Html {
  const { retryable } = failure
  const status = failure.status ?? 0
  const again = againAfter(status, retryable)
  return html`<p class="actions">${!Object.hasOwn(REFUSALS, status) && retryable && html`<${LoadAgain}>Load it again<//>`}${
    again && html`<${CheckAgain} service=${service} canTry=${canTry} isQuiet=${status === 404}>${again}<//>`
  }<a class="button quiet" href="/verify">Verify a saved result</a>${
    status === 410 && html`<a class="button quiet" href="/chain">Search the receipts</a>`
  }</p>`
}

/** The words of the button to a new look, of which neither the page nor the claim is known here; null where there is none. */
function againAfter(status: number, retryable: boolean): string | null {
  if (status === 422 && !retryable) return 'Check another page'
  return [404, 410, 422].includes(status) ? againUnknown(canTry) : null
}

const LoadAgain = ({ children }: { children?: Html }): Html =>
  html`<button type="button" onClick=${() => location.reload()}>${children}</button>`

interface ShownProps {
  result: PurchaseResult
  bytes: Uint8Array<ArrayBuffer>
  service: URL
}

function Shown({ result, bytes, service }: ShownProps): Html {
  const [pinned, setPinned] = useState<readonly PublishedKey[]>([])
  const published = usePublishedKeys(service)
  const source = useMemo(() => ({ name: 'the result', blob: new Blob([bytes]) }), [bytes])
  const { report, isBusy, progress } = useReport(
    { source, pinned, published: published ?? null },
    published === undefined,
  )
  const isProved = report?.status === 'good' || report?.status === 'published'
  const isChanged = report?.status === 'bad'
  return html`<p role="status" class="progress">${progress}</p>
    ${report && html`<${ReportView} report=${report} service=${service} remedy=${isChanged && html`<${Remedy} result=${result} service=${service} />`} />`}
    ${!isBusy && !isChanged && html`<${Downloads} result=${result} bytes=${bytes} service=${service} isProved=${isProved} />`}
    <${Pins} onPin=${setPinned} count=${pinned.length} />
    <p class="actions"><button type="button" class="quiet" onClick=${() => print()}>Print this report</button></p>`
}

/** What to do about an answer that is not what the service signed. */
function Remedy({ result, service }: Pick<ShownProps, 'result' | 'service'>): Html {
  const card = cardOf(result)
  return html`<div class="remedy"><p>Do not rely on it. It may have been changed on its way: load it again, or check the page again.</p>
    <p class="actions"><${LoadAgain}>Load the result again<//><${CheckAgain} service=${service} canTry=${canTry} question=${card ? questionOf(card) : {}} isQuiet>Check the page again<//></p></div>`
}

interface Download {
  name: string
  about: string
  type: string
  parts: BlobPart[]
}

function downloadsOf(result: PurchaseResult, bytes: Uint8Array<ArrayBuffer>, isProved: boolean): Download[] {
  const { receipt, request_id: id } = result
  const exact = {
    name: `result-${id}.json`,
    about: 'The result, byte for byte as the service sent it',
    type: JSON_TYPE,
    parts: [bytes],
  }
  if (!isProved) return [exact]
  const results = citableResults(result)
  const written = (value: unknown) => [`${JSON.stringify(value, null, 2)}\n`]
  const sealed = { name: `receipt-${id}.json`, about: 'Its receipt alone', type: JSON_TYPE, parts: written(receipt) }
  const cited = {
    name: `citation-${id}.bib`,
    about: 'An entry for BibTeX',
    type: TEXT_TYPE,
    parts: results.map((one, n) => `${bibtexEntry(one, results.length > 1 ? n + 1 : null)}\n`),
  }
  const quotes = results.flatMap((one) => one.evidence.map((item) => ({ one, item })))
  if (quotes.length === 0) return [exact, sealed, cited]
  const footnotes = quotes.map(({ one, item }) => `${markdownFootnote(one, item)}\n`)
  return [
    exact,
    sealed,
    cited,
    { name: `footnotes-${id}.md`, about: 'A footnote for each quote, in Markdown', type: TEXT_TYPE, parts: footnotes },
    {
      name: `selectors-${id}.json`,
      about: 'The place of each quote, as W3C selectors',
      type: JSON_TYPE,
      parts: written(quotes.map(({ one, item }) => textSelectors(one, item))),
    },
  ]
}

const JSON_TYPE = 'application/json'
const TEXT_TYPE = 'text/plain'

/** Of a result that is not proved, the bytes alone: they can be checked later, but nothing of it may be cited. */
function Downloads({ result, bytes, service, isProved }: ShownProps & { isProved: boolean }): Html {
  const files = useMemo(
    () =>
      downloadsOf(result, bytes, isProved).map((file) => ({
        ...file,
        url: URL.createObjectURL(new Blob(file.parts, { type: file.type })),
      })),
    [result, bytes, isProved],
  )
  useEffect(() => () => files.forEach(({ url }) => void URL.revokeObjectURL(url)), [files])
  // Checks have passed where it is shown.
  const serial = isProved ? result.receipt.attestation.serial : null
  return html`<section class="downloads" aria-labelledby="files">
    <h2 id="files">${isProved ? 'Keep it' : 'Save it, to check it later'}</h2>
    <p>The service deletes a result ${place?.dataset.keptHours} hours after it was completed. Save the exact bytes: only with them can the
      result be checked later.</p>
    <ul>${files.map(
      ({ name, about, url }) =>
        html`<li key=${name}><a href=${url} download=${name}>${about}</a><div class="detail">${name}</div></li>`,
    )}</ul>
    ${isProved && html`<p>Its receipt is <a href=${new URL(`receipts/${serial}`, service).href}>number ${serial} of the public chain</a>, which stays.</p>`}
  </section>`
}

/** The link to the content would put another part behind # in place of the token. */
function keepToken() {
  document.querySelector('.skip')?.addEventListener('click', (event) => {
    event.preventDefault()
    const main = document.getElementById('main')
    if (main) main.tabIndex = -1
    main?.focus()
  })
}

if (place) {
  keepToken()
  const { service = '/', request = '' } = place.dataset
  render(
    html`<${ResultPage} service=${new URL(service, location.href)} requestId=${request} />` as ComponentChildren,
    place,
  )
}
