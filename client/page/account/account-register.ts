// How an account begins: a handle is registered, and its key is kept before anything else happens.
import { useState } from 'preact/hooks'
import type { Countersign } from '../../client.ts'
import { type Html, html } from '../html.ts'
import { Field } from '../parts.ts'
import { KeepIt, type Secret } from './account-parts.ts'
import { type Plans, tierInWords } from './account-plans.ts'

export interface RegisterProps {
  plans: Plans
  /** A client that sends the key, or none without one. */
  clientWith(apiKey?: string): Countersign
  onOpen(opened: { client: Countersign; handle: string; tier: 'free' }): void
  /** Says that a key is shown, so that nothing else may take its place. */
  onMade(): void
}

interface Made {
  handle: string
  apiKey: string
}

const secretOf = ({ handle, apiKey }: Made): Secret => ({
  what: `the API key of ${handle}`,
  about: 'Everyone who has this API key can use the account, and a lost one cannot be recovered.',
  text: apiKey,
  file: `countersign-${handle}.key`,
})

export function RegisterForm({ plans, clientWith, onOpen, onMade }: RegisterProps): Html {
  const [made, setMade] = useState<Made | null>(null)
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const register = async (event: Event) => {
    event.preventDefault()
    const handle = String(new FormData(event.currentTarget as HTMLFormElement).get('handle') ?? '').trim()
    if (!HANDLE.test(handle)) {
      setProblem('A handle has 1 to 64 of a-z, 0-9, - and _, and begins with a letter or digit.')
      return
    }
    setBusy(true)
    setProblem('')
    try {
      const { api_key } = await clientWith().register({ handle })
      setMade({ handle, apiKey: api_key })
      onMade()
    } catch (error) {
      setProblem((error as Error).message)
    }
    setBusy(false)
  }
  if (made)
    return html`<${KeepIt} secret=${secretOf(made)} next="Go on to the account"
      onKept=${() => onOpen({ client: clientWith(made.apiKey), handle: made.handle, tier: 'free' })} />`
  return html`<form class="door" onSubmit=${register} aria-labelledby="register" novalidate>
    <h2 id="register">Make an account</h2>
    <p>It costs nothing and asks for no e-mail address: its API key, shown once, is the only way in.</p>
    <${Field} id="handle" label="Handle" required hint="A name for the account, of a-z, 0-9, - and _. It is public: receipts that you ask for name it." problem=${problem} />
    <p class="actions"><button type="submit" disabled=${isBusy}>Make the account</button></p>
    <p class="detail">${tierInWords('free', plans)} Alerts go to webhooks with https.</p>
  </form>`
}

/** As the service takes them. */
const HANDLE = /^[a-z0-9][a-z0-9_-]{0,63}$/
