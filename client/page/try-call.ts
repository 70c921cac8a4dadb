// Sends the call of a page of the reference to this service, as the reader has changed it, and shows the answer. Credentials stay in the
// memory of the page.
import { type ComponentChildren, render } from 'preact'
import { useState } from 'preact/hooks'
import { type Html, html } from './html.ts'
import { Code, Field } from './parts.ts'

interface Call {
  method: string
  path: string
  headers: Readonly<Record<string, string>>
  /** JSON, text, or null for no body. */
  request: unknown
}

/** Of the body, before it is scrolled. */
const MOST_ROWS = 20
const LEAST_ROWS = 4

function TryCall({ call }: { call: Call }): Html {
  const { method, headers, request } = call
  // A field is drawn anew after each answer: it keeps what was typed.
  const [path, setPath] = useState(call.path)
  const [key, setKey] = useState<string>(() => crypto.randomUUID())
  const type = ({ target }: Event) => {
    const { id, value } = target as HTMLInputElement
    if (id === 'path') setPath(value)
    if (id === 'idempotency-key') setKey(value)
  }
  const [answer, setAnswer] = useState('')
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const sample = request === null ? null : typeof request === 'string' ? request : JSON.stringify(request, null, 2)
  const rows = Math.min(Math.max(sample?.split('\n').length ?? 0, LEAST_ROWS), MOST_ROWS)
  const credential = Object.entries(headers).find(([, value]) => value.includes('$'))
  const send = async (event: Event) => {
    event.preventDefault()
    const values = new FormData(event.currentTarget as HTMLFormElement)
    const text = (name: string) => String(values.get(name) ?? '')
    const url = new URL(text('path'), location.origin)
    if (url.origin !== location.origin) return setProblem('The path begins with a slash: only this service is called.')
    setBusy(true)
    setProblem('')
    const sent = Object.entries(headers).flatMap(([name, value]) => {
      if (name === 'Idempotency-Key') return key === '' ? [] : [[name, key]]
      if (!value.includes('$')) return [[name, value]]
      const given = text('credential').trim()
      return given === '' ? [] : [[name, value.replace(/\$[A-Z]+/, () => given)]]
    })
    try {
      const body = request === null ? undefined : text('body')
      const got = await fetch(url, {
        method,
        headers: Object.fromEntries(sent),
        body,
        credentials: 'omit',
        cache: 'no-store',
      })
      setAnswer([`HTTP ${got.status}`, '', pretty(await got.text())].join('\n'))
    } catch (error) {
      setProblem(`It was not sent: ${(error as Error).message}`)
    }
    setBusy(false)
  }
  return html`<form class="try-call" onSubmit=${send} onInput=${type} aria-labelledby="try">
    <h2 id="try">Try it here</h2>
    <p class="detail">This service runs in offline mode: the call is real, and no money moves.</p>
    <${Field} id="path" label="Path" value=${path} required />
    ${
      'Idempotency-Key' in headers &&
      html`<${Field} id="idempotency-key" label="Idempotency-Key" value=${key} hint="One for each purchase. The same call with the same key gets the same answer, and is charged once." />
        <p class="actions"><button type="button" class="quiet" onClick=${() => setKey(crypto.randomUUID())}>Another key</button></p>`
    }
    ${credential && html`<${Field} id="credential" type="password" label=${CREDENTIALS[credential[1]] ?? credential[0]} hint="It stays in this page and is forgotten when you leave. Without it you see the refusal." />`}
    ${sample !== null && html`<p><label for="body">Body</label><textarea id="body" name="body" rows=${rows} spellcheck=${false} autocomplete="off">${sample}</textarea></p>`}
    <p class="actions"><button type="submit" disabled=${isBusy}>Send ${method}</button></p>
    <p class="problem" role="alert">${problem}</p>
    <div role="status">${answer && html`<${Code} label="The answer" text=${answer} />`}</div>
  </form>`
}

const CREDENTIALS: Readonly<Record<string, string>> = {
  'Bearer $KEY': 'API key',
  'Bearer $TOKEN': 'Recovery token',
  $SIGNATURE: 'Payment (Base64, as an x402 client makes it)',
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

const place = document.getElementById('try-call')
if (place) {
  const call = JSON.parse((place.dataset.call ?? 'null').replaceAll('{base_url}', location.origin)) as Call
  render(html`<${TryCall} call=${call} />` as ComponentChildren, place)
}
