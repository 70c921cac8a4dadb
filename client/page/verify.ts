// The page /verify in the browser: takes a file, a text or a serial, examines it here, and shows the report.
import { type ComponentChildren, render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { UsageError } from '../arguments.ts'
import { examine, type Report } from './examine.ts'
import { html } from './html.ts'
import { ReportView } from './report-view.ts'
import { type PublishedKey, readKeyList, readPins } from './trust.ts'

interface Source {
  name: string
  blob: Blob
}

interface Task {
  source: Source | null
  pinned: readonly PublishedKey[]
  published: readonly PublishedKey[] | null
}

/** `service`: the address of the service that served the page; null for the file that works from disk. */
function Verifier({ service }: { service: URL | null }) {
  const [source, setSource] = useState<Source | null>(null)
  const [pinned, setPinned] = useState<readonly PublishedKey[]>([])
  const published = usePublishedKeys(service)
  const { report, progress } = useReport({ source, pinned, published: published ?? null }, published === undefined)
  const [problem, setProblem] = useState('')
  const outcome = useRef<HTMLDivElement>(null)
  const take = async (given: () => Promise<Source> | Source) => {
    setProblem('')
    try {
      setSource(await given())
    } catch (error) {
      setSource(null)
      setProblem((error as Error).message)
    }
  }
  useDropped((blob, name) => take(() => ({ blob, name })))
  useEffect(() => outcome.current?.querySelector<HTMLElement>('#verdict')?.focus(), [report])
  return html`
    <${Intake} service=${service} onTake=${take} />
    <${Pins} onPin=${setPinned} count=${pinned.length} />
    <p role="status" class="progress">${progress}</p>
    ${problem && html`<p role="alert" class="problem">${problem}</p>`}
    <div ref=${outcome}>${
      report &&
      html`<${ReportView} report=${report} host=${service?.host ?? null} />
        <p class="actions"><button type="button" class="quiet" onClick=${() => print()}>Print this report</button></p>`
    }</div>`
}

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
    <p class="actions"><button type="submit">Check it</button></p>
  </form>`
}

function Pins({ onPin, count }: { onPin(keys: readonly PublishedKey[]): void; count: number }) {
  const [fault, setFault] = useState('')
  const read = ({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => {
    try {
      onPin(readPins(currentTarget.value))
      setFault('')
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      onPin([])
      setFault(error.message)
    }
  }
  return html`<details class="pins">
    <summary>${count > 0 ? `${count} keys pinned by you` : 'Pin the keys that you trust'}</summary>
    <p id="pins-help">A pin is a key that you got from a source you trust, not together with the file. One a line, as
      KEYID:HEX, or the JSON of /v1/keys. It stays in this page and is forgotten when you leave.</p>
    <p><label for="pins">Your pinned keys</label>
      <textarea id="pins" rows="3" spellcheck=${false} autocomplete="off" aria-describedby="pins-help pins-fault"
        aria-invalid=${fault !== ''} onChange=${read}></textarea></p>
    <p id="pins-fault" role="alert" class="problem">${fault}</p>
  </details>`
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

/** Undefined until the service has answered; null where there is none, or it does not answer. */
function usePublishedKeys(service: URL | null): readonly PublishedKey[] | null | undefined {
  const [keys, setKeys] = useState<readonly PublishedKey[] | null | undefined>(service ? undefined : null)
  useEffect(() => {
    if (service) fetchKeys(service).then(setKeys, () => setKeys(null))
  }, [service])
  return keys
}

async function fetchKeys(service: URL): Promise<readonly PublishedKey[]> {
  const answer = await fetch(new URL('v1/keys', service), { credentials: 'omit' })
  if (!answer.ok) throw new Error(`The keys were answered ${answer.status}`)
  return readKeyList(await answer.text())
}

function useReport({ source, pinned, published }: Task, isWaiting: boolean) {
  const [report, setReport] = useState<Report | null>(null)
  const [progress, setProgress] = useState('')
  useEffect(() => {
    setReport(null)
    if (!source || isWaiting) return
    let isCurrent = true
    const tell = (percent: number) => isCurrent && setProgress(`Checking ${source.name}: ${percent} %`)
    examine(() => inSteps(source.blob, tell), { pinned, published }).then(
      (made) => {
        if (!isCurrent) return
        setProgress('')
        setReport(made)
      },
      (error: Error) => isCurrent && setProgress(`It cannot be checked: ${error.message}`),
    )
    return () => {
      isCurrent = false
    }
  }, [source, pinned, published, isWaiting])
  return { report, progress }
}

/** Lets the browser draw between the steps: the signatures of a step take some tenths of a second. */
async function* inSteps(blob: Blob, tell: (percent: number) => void): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < blob.size; at += STEP_BYTES) {
    tell(Math.floor((100 * at) / blob.size))
    await new Promise((resolve) => setTimeout(resolve))
    yield new Uint8Array(await blob.slice(at, at + STEP_BYTES).arrayBuffer())
  }
}

const STEP_BYTES = 65_536

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
  const { service } = place.dataset
  render(
    html`<${Verifier} service=${service === undefined ? null : new URL(service, location.href)} />` as ComponentChildren,
    place,
  )
}
