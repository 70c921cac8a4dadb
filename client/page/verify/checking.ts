// Shared by the pages that check something: the pinned keys, the keys that the service publishes, and the report of an
// examination.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { UsageError } from '../../arguments.ts'
import { html } from '../html.ts'
import { examine, type Kind, type Report } from './examine.ts'
import { type PublishedKey, readKeyList, readPins } from './trust.ts'

export interface Source {
  name: string
  blob: Blob
}

interface Task {
  source: Source | null
  pinned: readonly PublishedKey[]
  published: readonly PublishedKey[] | null
  kinds?: readonly Kind[]
}

/** The field for the keys that the reader trusts. They stay in the page. */
export function Pins({ onPin, count }: { onPin(keys: readonly PublishedKey[]): void; count: number }) {
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
    <summary>${count > 0 ? `${count} ${count === 1 ? 'key' : 'keys'} pinned by you` : 'Pin the keys that you trust'}</summary>
    <p id="pins-help">A pin is a key that you got from a source you trust, not together with the file. One a line, as
      KEYID:HEX, or the JSON of /v1/keys. It stays in this page and is forgotten when you leave.</p>
    <p><label for="pins">Your pinned keys</label>
      <textarea id="pins" rows="3" spellcheck=${false} autocomplete="off" aria-describedby="pins-help pins-fault"
        aria-invalid=${fault !== ''} onChange=${read}></textarea></p>
    <p id="pins-fault" role="alert" class="problem">${fault}</p>
  </details>`
}

/** Undefined until the service has answered; null where there is none, or it does not answer. */
export function usePublishedKeys(service: URL | null): readonly PublishedKey[] | null | undefined {
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

/**
 * Examines the source again whenever the keys change. `report` is of this very task: while it is examined, `isBusy` is true and
 * there is no report, so that what is shown never belongs to another file or to other keys.
 */
export function useReport({ source, pinned, published, kinds }: Task, isWaiting: boolean) {
  const [made, setMade] = useState<{ of: object; report: Report | null }>()
  const [progress, setProgress] = useState('')
  const task = useMemo(() => ({ source, pinned, published, isWaiting }), [source, pinned, published, isWaiting])
  useEffect(() => {
    setProgress('')
    if (!source || isWaiting) return
    let isCurrent = true
    const onProgress = (percent: number) => isCurrent && setProgress(`Checking ${source.name}: ${percent} %`)
    const end = (report: Report | null, said: string) => {
      if (!isCurrent) return
      setProgress(said)
      setMade({ of: task, report })
    }
    examine(() => inSteps(source.blob, onProgress), { pinned, published }, kinds).then(
      (report) => end(report, ''),
      (error: Error) => end(null, `It cannot be checked: ${error.message}`),
    )
    return () => {
      isCurrent = false
    }
  }, [task])
  const isDone = made?.of === task
  return { report: isDone ? made.report : null, isBusy: source !== null && !isDone, progress }
}

/** Lets the browser draw between the steps: the signatures of a step take some tenths of a second. */
async function* inSteps(blob: Blob, onProgress: (percent: number) => void): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < blob.size; at += STEP_BYTES) {
    onProgress(Math.floor((100 * at) / blob.size))
    await new Promise((resolve) => setTimeout(resolve))
    yield new Uint8Array(await blob.slice(at, at + STEP_BYTES).arrayBuffer())
  }
}

const STEP_BYTES = 65_536
