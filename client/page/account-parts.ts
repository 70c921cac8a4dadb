// Shared by the sections of the account page: the client that calls, answers that are loaded, actions with a question
// before what cannot be undone, and forms.
import { useCallback, useEffect, useState } from 'preact/hooks'
import type { Countersign } from '../client.ts'
import { type Html, html } from './html.ts'
import { Code, Notice } from './parts.ts'

export interface SectionProps {
  client: Countersign
}

export interface Loaded<T> {
  value: T | null
  problem: string | null
  reload(): void
}

/**
 * Loads at once, when something in `inputs` changes, and every `everySeconds`. The old value stays visible while the
 * new one is loaded.
 */
export function useLoaded<T>(load: () => Promise<T>, inputs: readonly unknown[], everySeconds?: number): Loaded<T> {
  const [value, setValue] = useState<T | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [round, setRound] = useState(0)
  const reload = useCallback(() => setRound((n) => n + 1), [])
  useEffect(() => {
    let isCurrent = true
    load().then(
      (loaded) => {
        if (!isCurrent) return
        setValue(loaded)
        setProblem(null)
      },
      (error: Error) => isCurrent && setProblem(error.message),
    )
    return () => {
      isCurrent = false
    }
  }, [...inputs, round])
  useEffect(() => {
    if (everySeconds === undefined) return
    const timer = setInterval(reload, everySeconds * 1000)
    return () => clearInterval(timer)
  }, [everySeconds, reload])
  return { value, problem, reload }
}

/** Shows the loaded value, that it is being loaded, or the error. */
export function Show<T>({ loaded, children }: { loaded: Loaded<T>; children: (value: T) => Html }): Html {
  const { value, problem } = loaded
  return html`${problem && html`<${Notice} tone="bad" title="The service refused.">${problem}<//>`}
    ${value === null ? !problem && html`<p role="status">Loading.</p>` : children(value)}`
}

export interface ActProps {
  label: string
  /** Asked before it is done; for what cannot be undone. */
  question?: string
  /** What it is done to, for screen readers. */
  to?: string
  run(): Promise<unknown>
  onDone?(): void
}

/** A button that does something at the service, asks before if there is a question, and says what went wrong. */
export function Act({ label, question, to, run, onDone }: ActProps): Html {
  const [step, setStep] = useState<'idle' | 'asking' | 'doing'>('idle')
  const [problem, setProblem] = useState('')
  const act = async () => {
    setStep('doing')
    setProblem('')
    try {
      await run()
      onDone?.()
    } catch (error) {
      setProblem((error as Error).message)
    }
    setStep('idle')
  }
  const name = to ? `${label}: ${to}` : label
  if (step === 'asking')
    return html`<span class="asking" role="group" aria-label=${name}>
      <span>${question}</span>
      <button type="button" class="danger" onClick=${act}>Yes, ${label.toLowerCase()}</button>
      <button type="button" class="quiet" ref=${focus} onClick=${() => setStep('idle')}>No</button>
    </span>`
  return html`<button type="button" class=${question ? 'danger' : 'quiet'} aria-label=${name} disabled=${step === 'doing'}
      onClick=${question ? () => setStep('asking') : act}>${label}</button>
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}`
}

const focus = (button: HTMLButtonElement | null) => button?.focus()

export interface EntryProps {
  title: string
  button: string
  /** Gets the values of the fields by their names. A message of a thrown error is shown. */
  submit(values: Record<string, string>, form: HTMLFormElement): Promise<unknown>
  onDone?(): void
  children?: Html
}

/** A folded form. It is sent by a script, so that the key never gets into an address. */
export function Entry({ title, button, submit, onDone, children }: EntryProps): Html {
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const send = async (event: Event) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const values = [...new FormData(form)].filter((pair): pair is [string, string] => typeof pair[1] === 'string')
    setBusy(true)
    setProblem('')
    try {
      await submit(Object.fromEntries(values), form)
      form.reset()
      onDone?.()
    } catch (error) {
      setProblem((error as Error).message)
    }
    setBusy(false)
  }
  return html`<details class="entry"><summary>${title}</summary>
    <form onSubmit=${send}>${children}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <p class="actions"><button type="submit" disabled=${isBusy}>${button}</button></p>
    </form></details>`
}

export interface Secret {
  what: string
  text: string
}

/** A secret that the service shows once. */
export function OnceShown({ secret }: { secret: Secret | null }): Html {
  return (
    secret &&
    html`<div role="status"><${Notice} tone="open" title="Save it now.">${secret.what} is shown this once and cannot be shown again.<//>
      <${Code} label=${secret.what} text=${secret.text} /></div>`
  )
}

/** Milliseconds of an ISO time. */
export const msOf = (iso: string): number => Date.parse(iso)

/** For example `45 s`, `3 min`, `5 h`, `2 d`. */
export function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`
}
