// The account page in the browser: register or open an account, then its sections. The API key is only a variable of this script: it is in no URL, cookie or storage, and
// is sent only as bearer token to operations of this service. A reload deletes it.
import { type ComponentChildren, render } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { Countersign } from '../../client.ts'
import { CountersignError } from '../../error.ts'
import type { Tier } from '../../operations/account.ts'
import { type Html, html } from '../html.ts'
import { Notice } from '../parts.ts'
import { CitationsSection } from './account-citations.ts'
import { KeysSection } from './account-keys.ts'
import { LeasesSection } from './account-leases.ts'
import { KeepIt, type Secret, type SectionProps } from './account-parts.ts'
import type { Plans } from './account-plans.ts'
import { JournalSection, ReceiptsSection } from './account-records.ts'
import { RegisterForm } from './account-register.ts'
import { UsageSection } from './account-usage.ts'
import { WatchdogsSection } from './account-watchdogs.ts'

interface Opened {
  client: Countersign
  handle: string
  tier: Tier
}

interface PageProps {
  /** Address of the service, with a slash at its end. */
  service: string
  plans: Plans
}

function AccountPage({ service, plans }: PageProps): Html {
  const [opened, setOpened] = useState<Opened | null>(null)
  const [isMade, setMade] = useState(false)
  const clientWith = (apiKey?: string) => new Countersign({ baseUrl: service, apiKey, plainFetch: sendPlainly })
  const open = (one: Opened) => {
    setOpened(one)
    setMade(false)
  }
  if (opened) return html`<${Sections} ...${opened} plans=${plans} onForget=${() => setOpened(null)} />`
  return html`${!isSecureContext && html`<${Notice} tone="bad" title="This connection is not encrypted.">Others can read what you send. Open the page over https.<//>`}
    <p class="lead">An account is for people who run agents: permissions that end by themselves, an alert when a job falls silent, and
      signed records. Checking a claim needs none.</p>
    <div class="doors">
      ${!isMade && html`<${KeyForm} clientWith=${clientWith} onOpen=${open} />`}
      <${RegisterForm} key="register" plans=${plans} clientWith=${clientWith} onOpen=${open} onMade=${() => setMade(true)} />
    </div>`
}

interface KeyFormProps {
  clientWith(apiKey: string): Countersign
  onOpen(opened: Opened): void
}

function KeyForm({ clientWith, onOpen }: KeyFormProps): Html {
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  const open = async (event: Event) => {
    event.preventDefault()
    const key = field.current?.value.trim() ?? ''
    if (key === '') {
      setProblem('Enter the API key.')
      return
    }
    setBusy(true)
    setProblem('')
    const client = clientWith(key)
    try {
      const { handle, tier } = await client.getUsage()
      onOpen({ client, handle, tier })
    } catch (error) {
      // The service names the header of a program.
      const isUnknown = error instanceof CountersignError && error.status === 401
      setProblem(isUnknown ? 'This is not a valid API key of this service.' : (error as Error).message)
      setBusy(false)
    }
  }
  return html`<form class="door key-form" onSubmit=${open} aria-labelledby="open" novalidate>
    <h2 id="open">Open your account</h2>
    <p>The API key stays in the memory of this page, and is forgotten when you leave or reload it.</p>
    <div class="field">
      <label for="api-key">API key</label>
      <input class="mono" id="api-key" type="password" ref=${field} required autocomplete="off" spellcheck=${false}
        aria-describedby="api-key-hint api-key-problem" aria-invalid=${problem ? 'true' : undefined} />
      <p id="api-key-hint" class="detail">It begins with ctk_. You kept it when you made the account.</p>
      <p id="api-key-problem" class="problem" role="alert">${problem}</p>
    </div>
    <p class="actions"><button type="submit" disabled=${isBusy}>Open the account</button></p>
  </form>`
}

/** No cookie goes along, and no answer with the account's data is kept. */
const sendPlainly = (url: string, init: RequestInit = {}) =>
  fetch(url, { ...init, credentials: 'omit', cache: 'no-store' })

const SECTIONS: readonly (readonly [name: string, view: (props: SectionProps) => Html])[] = [
  ['Usage', UsageSection],
  ['Watchdogs', WatchdogsSection],
  ['Leases', LeasesSection],
  ['Citations', CitationsSection],
  ['Receipts', ReceiptsSection],
  ['Journal', JournalSection],
  ['API keys', KeysSection],
]

function Sections({ client, handle, tier: first, plans, onForget }: Opened & { plans: Plans; onForget(): void }): Html {
  const [name, setName] = useState('Usage')
  const [tier, setTier] = useState(first)
  const [secret, setSecret] = useState<Secret | null>(null)
  const View = useMemo(() => SECTIONS.find(([one]) => one === name)?.[1], [name])
  if (secret)
    return html`<p class="signed-in"><span>Account: <strong>${handle}</strong></span></p>
      <${KeepIt} secret=${secret} next=${`Go on to ${name === 'API keys' ? name : name.toLowerCase()}`} onKept=${() => setSecret(null)} />`
  return html`<p class="signed-in"><span>Account: <strong>${handle}</strong></span>
      <button type="button" class="quiet" onClick=${onForget}>Sign out: forget the API key</button></p>
    <nav class="sections" aria-label="Sections of the account">${SECTIONS.map(
      ([one]) =>
        html`<button key=${one} type="button" class="quiet" aria-current=${one === name ? 'page' : undefined} onClick=${() => setName(one)}>${one}</button>`,
    )}</nav>
    <section><h2>${name}</h2><${View} key=${name} client=${client} plans=${plans} tier=${tier} onTier=${setTier}
      onSecret=${setSecret} /></section>`
}

const place = document.getElementById('account')
if (place) {
  const service = new URL(place.dataset.service ?? '/', location.href).href
  const plans = JSON.parse(place.dataset.plans ?? '{}') as Plans
  render(html`<${AccountPage} service=${service} plans=${plans} />` as ComponentChildren, place)
}
