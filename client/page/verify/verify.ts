// The page /verify in the browser: takes a file, a text or a serial, examines it here, and shows the report.
import { type ComponentChildren, render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { UsageError } from '../../arguments.ts'
import { type Html, html } from '../html.ts'
import { cardOf, questionOf } from '../result/card-result.ts'
import { againUnknown, CheckAgain } from '../try/check-again.ts'
import { Pins, type Source, usePublishedKeys, useReport } from './checking.ts'
import type { Report } from './examine.ts'
import { InsteadOfReport, Replay } from './instead.ts'
import { LEASES } from './lease-kinds.ts'
import { type Again, Differs, RecomputationView } from './recomputation-view.ts'
import { ReportView } from './report-view.ts'
import type { ServedVerifier } from './served-verifier.ts'
import { TermView, useNow } from './term-view.ts'
import type { PublishedKey } from './trust.ts'

interface VerifierProps {
  /** The address of the service that served the page; null for the file that works from disk. */
  service: URL | null
  /** What recomputes verdicts; null for the file that works from disk. */
  verifier: ServedVerifier | null
  /** The service has a page /try. */
  canTry: boolean
}

function Verifier({ service, verifier, canTry }: VerifierProps) {
  const [source, setSource] = useState<Source | null>(null)
  const [pinned, setPinned] = useState<readonly PublishedKey[]>([])
  const published = usePublishedKeys(service)
  const isWaiting = published === undefined
  const {
    report: examined,
    isBusy,
    progress,
  } = useReport({ source, pinned, published: published ?? null, kinds: LEASES }, isWaiting)
  const { report, now } = useNow(examined)
  const [compared, setCompared] = useState<{ of: Report | null; again: Again } | null>(null)
  const again = compared?.of === examined ? compared.again : null
  const [problem, setProblem] = useState('')
  const [takings, setTakings] = useState(0)
  const outcome = useRef<HTMLDivElement>(null)
  const take = async (given: () => Promise<Source> | Source) => {
    setProblem('')
    setTakings((count) => count + 1)
    try {
      setSource(await given())
    } catch (error) {
      setSource(null)
      setProblem((error as Error).message)
    }
  }
  useDropped((blob, name) => take(() => ({ blob, name })))
  // Other pages link to the check of a receipt as /verify#SERIAL.
  useEffect(() => {
    const named = /^#\d{1,15}$/.exec(location.hash)?.[0]
    if (service && named) take(() => fromText(named, service))
  }, [service])
  useEffect(() => outcome.current?.querySelector<HTMLElement>('h2')?.focus(), [examined])
  const intake = html`<${Intake} service=${service} onTake=${take} />`
  // The answer stands first. The form is folded below it, made anew for each file, and whole again where there is no answer.
  return html`
    <p role="status" class="progress">${report && source ? `Checked: ${source.name}.` : progress}</p>
    <div ref=${outcome} class="outcome" aria-busy=${isBusy}>${
      report &&
      html`<${ReportView} report=${report} service=${service} term=${report.term && html`<${TermView} term=${report.term} now=${now} />`}
          remedy=${html`<${Remedy} report=${report} service=${service} canTry=${canTry} />`}
          differs=${again === 'differs' && report.status !== 'bad' && html`<${Differs} isKnown=${report.status === 'good' || report.status === 'published'} service=${service} />`}
          again=${again ? AGAIN[again] : ''} />
        <${RecomputationView} report=${report} verifier=${verifier} host=${service?.host ?? null}
          onAgain=${(found: Again) => setCompared({ of: examined, again: found })} />
        ${
          report.checks.length > 0 &&
          html`<p class="actions"><button type="button" class="quiet" onClick=${() => print()}>Print this report</button></p>`
        }`
    }</div>
    ${source ? html`<details key=${takings} class="another"><summary>Check another file</summary>${intake}</details>` : intake}
    ${problem && html`<p role="alert" class="problem">${problem}</p>`}
    <${Pins} onPin=${setPinned} count=${pinned.length} />`
}

/** Beside the count of the checks, which the verdict is none of. */
const AGAIN: Record<Again, string> = {
  same: 'The verdict was made again here: the same.',
  differs: 'The verdict was made again here: not the same.',
  undone: 'The verdict could not be made again here.',
}

/** What to do about what is not genuine or not checked here, or about a request that failed. */
function Remedy({ report, service, canTry }: Pick<VerifierProps, 'service' | 'canTry'> & { report: Report }): Html {
  const { status, kind, failure, value } = report
  if (status === 'unread') return html`<${Replay} service=${service} />`
  if (status === 'unsigned' && !failure) return html`<${InsteadOfReport} value=${value} service=${service} />`
  const card = cardOf(value)
  const again = (words: string) =>
    service &&
    html`<p class="actions"><${CheckAgain} service=${service} canTry=${canTry} question=${card ? questionOf(card) : {}}>${words}<//></p>`
  if (status === 'unsigned' && failure && isFailed(value))
    return html`<div class="remedy"><p>The answer names neither the page nor the claim: the person who asked knows them.</p>${again(isRetryable(value) ? againUnknown(canTry) : 'Check another page')}</div>`
  if (status !== 'bad' || kind === 'a file') return null
  return html`<div class="remedy"><p>Do not rely on it. Ask its sender for the file as the service made it${
    card ? ', or for the link to the result. You can also check the page again' : ''
  }.</p>${card && again('Check the page again')}</div>`
}

const isFailed = (value: unknown) => (value as { status?: unknown } | null)?.status === 'failed'
const isRetryable = (value: unknown) => (value as { error?: { retryable?: unknown } } | null)?.error?.retryable === true

interface IntakeProps {
  service: URL | null
  onTake(given: () => Promise<Source> | Source): void
}

function Intake({ service, onTake }: IntakeProps) {
  const [text, setText] = useState('')
  const submit = (event: Event) => {
    event.preventDefault()
    if (text.trim() !== '') onTake(() => fromText(text, service))
  }
  const choose = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    const [file] = currentTarget.files ?? []
    if (file) onTake(() => ({ blob: file, name: file.name }))
  }
  return html`<form class="intake" onSubmit=${submit}>
    <p class="file"><label for="file">Choose a file, or drop one anywhere on this page</label>
      <input id="file" type="file" onChange=${choose} /></p>
    <p><label for="text">Or paste it here${service ? ', or type the serial of a receipt' : ''}</label>
      <textarea id="text" rows="4" spellcheck=${false} autocomplete="off" value=${text}
        onInput=${({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => setText(currentTarget.value)}></textarea></p>
    <p class="actions"><button type="submit">Verify it</button></p>
  </form>`
}

/** A serial is looked up at the service that served the page: the one thing that leaves the browser is that number. */
async function fromText(text: string, service: URL | null): Promise<Source> {
  const serial = /^\s*#?(\d{1,15})\s*$/.exec(text)?.[1]
  if (serial === undefined) return { name: 'the pasted text', blob: new Blob([text]) }
  if (!service)
    throw new UsageError('A serial can only be looked up on the page of a service. Paste the receipt itself.')
  const answer = await fetch(new URL(`v1/receipt/${Number(serial)}`, service), { credentials: 'omit' }).catch(
    () => null,
  )
  if (!answer) throw new UsageError('The service did not answer. Try again, or paste the receipt itself.')
  if (answer.status === 404) throw new UsageError(`This service has no receipt with the serial ${serial}.`)
  return { name: `receipt ${serial}`, blob: await answer.blob() }
}

function useDropped(take: (blob: Blob, name: string) => void) {
  useEffect(() => {
    const over = (event: DragEvent) => event.preventDefault()
    const drop = (event: DragEvent) => {
      event.preventDefault()
      const file = event.dataTransfer?.files[0]
      const text = event.dataTransfer?.getData('text')
      if (file) take(file, file.name)
      else if (text) take(new Blob([text]), 'the dropped text')
    }
    addEventListener('dragover', over)
    addEventListener('drop', drop)
    return () => {
      removeEventListener('dragover', over)
      removeEventListener('drop', drop)
    }
  })
}

const place = document.getElementById('verifier')
if (place) {
  const { service, verifier, canTry } = place.dataset
  render(
    html`<${Verifier} service=${service === undefined ? null : new URL(service, location.href)}
      verifier=${verifier === undefined ? null : JSON.parse(verifier)} canTry=${canTry !== undefined} />` as ComponentChildren,
    place,
  )
}
