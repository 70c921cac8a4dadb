// Shared by the sections of the account page: the client that calls, answers that are loaded, actions with a question
// before what cannot be undone, and forms.
import { useCallback, useEffect, useState } from 'preact/hooks'
import type { Countersign } from '../../client.ts'
import type { Tier } from '../../operations/account.ts'
import { type Html, html } from '../html.ts'
import { Code, Notice } from '../parts.ts'
import type { Plans } from './account-plans.ts'

export interface SectionProps {
  client: Countersign
  /** What each tier has. */
  plans: Plans
  /** Of the account, as it was when the account was opened or its usage was last read. */
  tier: Tier
  onTier(tier: Tier): void
  /** Takes the place of the section until the reader says that the secret is kept. */
  onSecret(secret: Secret): void
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
      <span><strong>${name}?</strong> ${question}</span>
      <button type="button" class="danger" onClick=${act}>Yes, ${label.toLowerCase()}</button>
      <button type="button" class="quiet" ref=${focus} onClick=${() => setStep('idle')}>No</button>
    </span>`
  return html`<button type="button" class=${question ? 'danger' : 'quiet'} aria-label=${name} disabled=${step === 'doing'}
      onClick=${question ? () => setStep('asking') : act}>${label}</button>
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}`
}

const focus = (button: HTMLButtonElement | null) => button?.focus()

/** What is wrong with one field of a form; `field` is its name. */
export class FieldError extends Error {
  override name = 'FieldError'
  readonly field: string

  constructor(field: string, message: string) {
    super(message)
    this.field = field
  }
}

/** Marks the field as wrong and goes to it. @param named null when nothing is wrong any more */
function markField(form: HTMLFormElement, named: string | null) {
  for (const one of form.querySelectorAll('[aria-invalid]')) one.removeAttribute('aria-invalid')
  const field = named === null ? null : form.elements.namedItem(named)
  if (!(field instanceof HTMLElement)) return
  field.setAttribute('aria-invalid', 'true')
  field.focus()
}

export interface EntryProps {
  title: string
  button: string
  /** Gets the values of the fields by their names. A message of a thrown error is shown. */
  submit(values: Record<string, string>, form: HTMLFormElement): Promise<unknown>
  /** Asked before it is sent, for what replaces something; null if nothing is replaced. */
  question?(values: Record<string, string>): string | null
  onDone?(): void
  /** It is not folded: the form is what to do next. */
  isOpen?: boolean
  children?: Html
}

/** A folded form. It is sent by a script, so that the key never gets into an address. */
export function Entry({ title, button, submit, question, onDone, isOpen = false, children }: EntryProps): Html {
  const [problem, setProblem] = useState('')
  const [asked, setAsked] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const send = async (event: Event) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const pairs = [...new FormData(form)].filter((pair): pair is [string, string] => typeof pair[1] === 'string')
    const values = Object.fromEntries(pairs)
    const first = asked === null ? (question?.(values) ?? null) : null
    setAsked(first)
    if (first !== null) return
    setBusy(true)
    setProblem('')
    try {
      await submit(values, form)
      form.reset()
      onDone?.()
    } catch (error) {
      setProblem((error as Error).message)
      if (error instanceof FieldError) markField(form, error.field)
    }
    setBusy(false)
  }
  const change = ({ currentTarget }: { currentTarget: HTMLFormElement }) => {
    setAsked(null)
    setProblem('')
    markField(currentTarget, null)
  }
  return html`<details class="entry" open=${isOpen}><summary>${title}</summary>
    <form onSubmit=${send} onInput=${change}>${children}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <p class="actions">${
        asked === null
          ? html`<button type="submit" disabled=${isBusy}>${button}</button>`
          : html`<span class="asking" role="group" aria-label=${button}><span role="alert">${asked}</span>
              <button type="submit" class="danger">Yes, replace it</button>
              <button type="button" class="quiet" ref=${focus} onClick=${() => setAsked(null)}>No</button></span>`
      }</p>
    </form></details>`
}

export interface Secret {
  /** For example `the API key of kelby`. */
  what: string
  /** What it is good for, in a sentence or two. */
  about: string
  text: string
  /** Name of the file that it may be saved as. */
  file: string
}

export interface KeepItProps {
  secret: Secret
  /** Where the reader goes after it, on the button. */
  next: string
  onKept(): void
}

/** A secret that the service shows once, to copy or to save as a file. Nothing else may take its place before the reader says that it is kept. */
export function KeepIt({ secret: { what, about, text, file }, next, onKept }: KeepItProps): Html {
  const [said, setSaid] = useState('')
  const [isKept, setKept] = useState(false)
  const [problem, setProblem] = useState('')
  useEffect(() => {
    // Leaving the page now would lose the secret.
    const ask = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  }, [])
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setSaid('Copied.'),
      () => setSaid('The browser refused. Select the text and copy it.'),
    )
  const saveIt = () => {
    save(file, new TextEncoder().encode(`${text}\n`))
    setSaid('Saved as a file.')
  }
  const goOn = (event: Event) => {
    event.preventDefault()
    if (isKept) onKept()
    else setProblem(`Keep ${what} first, and say so here.`)
  }
  return html`<form class="door" onSubmit=${goOn} aria-labelledby="kept" novalidate>
    <h2 id="kept" tabindex="-1" ref=${(heading: HTMLElement | null) => !isKept && !problem && !said && heading?.focus()}>Keep ${what}</h2>
    <p>${about}</p>
    <div class="once"><div role="status"><${Notice} title="Save it now.">${capital(what)} is shown this once and cannot be shown again.<//></div>
    <${Code} label=${capital(what)} text=${text} />
    <p class="actions"><button type="button" class="quiet" onClick=${copy}>Copy it</button>
      <button type="button" class="quiet" onClick=${saveIt}>Save it as a file</button> <span role="status">${said}</span></p></div>
    <p><label class="check"><input type="checkbox" id="is-kept" checked=${isKept} aria-describedby="kept-problem" aria-invalid=${problem ? 'true' : undefined}
      onChange=${() => {
        setKept(!isKept)
        setProblem('')
      }} /> I have kept it</label></p>
    <p id="kept-problem" class="problem" role="alert">${problem}</p>
    <p class="actions"><button type="submit" class=${isKept ? undefined : 'quiet'}>${next}</button></p>
  </form>`
}

const capital = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1)

/** Hands bytes to the browser as a file. */
export function save(name: string, data: Uint8Array): void {
  const url = URL.createObjectURL(new Blob([new Uint8Array(data)], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

/** For example `45 s`, `3 min`, `5 h`, `2 d`. */
export function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`
}
