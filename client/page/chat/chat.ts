// The report in a chat host (MCP Apps): gets the result of a tool from the host, examines it as /verify does, and shows it.
// It sends no network requests; it asks the host for what it needs.
import './without-eval.ts'
import { App } from '@modelcontextprotocol/ext-apps'
import { type ComponentChildren, render } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { CitationsView } from '../citations/citations-view.ts'
import { type Html, html } from '../html.ts'
import { Badge, Facts, Notice } from '../parts.ts'
import { Pins, useReport } from '../verify/checking.ts'
import { ReportView } from '../verify/report-view.ts'
import { type PublishedKey, readKeyList } from '../verify/trust.ts'
import { type Answer, type Arguments, type Examinable, readAnswer } from './chat-answer.ts'
import { followTheme } from './host-theme.ts'

type Call =
  | { state: 'waiting' }
  | { state: 'answered'; answer: Answer }
  | { state: 'cancelled'; reason: string }
  | { state: 'alone' }

interface ChatProps {
  app: App
  /** Address of the service. */
  service: URL
  /** The keys that the service published when it made this page. */
  known: readonly PublishedKey[]
}

function Chat({ app, service, known }: ChatProps): Html {
  const [args, setArgs] = useState<Arguments>({})
  const [call, setCall] = useState<Call>({ state: 'waiting' })
  const [published, setPublished] = useState<readonly PublishedKey[]>()
  useEffect(() => {
    let given: Arguments = {}
    app.addEventListener('toolinput', ({ arguments: all = {} }) => {
      given = all
      setArgs(all)
      setCall({ state: 'waiting' })
    })
    app.addEventListener('toolresult', (result) => setCall({ state: 'answered', answer: readAnswer(result, given) }))
    app.addEventListener('toolcancelled', ({ reason = '' }) => setCall({ state: 'cancelled', reason }))
    app.addEventListener('hostcontextchanged', ({ theme }) => theme && followTheme(theme))
    const start = async () => {
      await app.connect()
      const theme = app.getHostContext()?.theme
      if (theme) followTheme(theme)
      setPublished(await askKeys(app).catch(() => known))
    }
    start().catch(() => setCall({ state: 'alone' }))
  }, [])
  switch (call.state) {
    case 'waiting':
      return html`<${Waiting} args=${args} />`
    case 'answered':
      return html`<${Answered} answer=${call.answer} published=${published} service=${service} app=${app} />`
    case 'cancelled':
      return html`<${Notice} title="The call was cancelled.">${call.reason}<//>`
    case 'alone':
      return html`<${Notice} title="There is no chat host.">This page draws results that a chat host hands to it. A
        saved result can be checked on the page Verify of the service.<//>`
  }
}

/** The current keys, through the host. Throws if the host cannot read them; then the keys in the page are used. */
async function askKeys(app: App): Promise<readonly PublishedKey[]> {
  return readKeyList(await readThrough(app, 'service://keys'))
}

/** The text of a resource of the service. Throws if the host cannot read it. */
async function readThrough(app: App, uri: string): Promise<string> {
  if (!app.getHostCapabilities()?.serverResources) throw new Error('the host reads no resources for its pages')
  const { contents } = await app.readServerResource({ uri }, { timeout: TIMEOUT_MS })
  const [first] = contents
  if (!first || !('text' in first)) throw new Error('the resource has no text')
  return first.text
}

const TIMEOUT_MS = 5000

function Waiting({ args: { claim, source_url } }: { args: Arguments }): Html {
  const asked = [
    ['Claim', claim],
    ['Page', source_url],
  ].filter(([, value]) => typeof value === 'string')
  return html`<div role="status"><${Notice} title="No result yet.">This page waits for the chat host to hand it the result of the
    call.<//></div>
    ${asked.length > 0 && html`<${Facts} facts=${asked} />`}`
}

interface AnsweredProps {
  answer: Answer
  published: readonly PublishedKey[] | undefined
  service: URL
  app: App
}

function Answered({ answer, published, service, app }: AnsweredProps): Html {
  if ('words' in answer) return html`<${Notice} title=${answer.title}>${answer.words}<//>`
  if ('cited' in answer)
    return html`<${CitationsView} cited=${answer.cited} readText=${(uri: string) => readThrough(app, uri)} />`
  const { document, judged } = answer
  return html`
    ${judged && html`<${Judged} ...${judged} service=${service} />`}
    ${document !== null && html`<${Examined} key=${document} text=${document} published=${published} service=${service} />`}`
}

function Judged({ valid, checks, service }: NonNullable<Examinable['judged']> & { service: URL }): Html {
  const good = checks.filter(({ ok }) => ok).length
  return html`<${Notice} tone=${valid ? 'proved' : 'refuted'} title=${`${service.host} says: ${valid ? 'valid' : 'not valid'}.`}>${
    valid
      ? 'It made this receipt, and the receipt is unchanged.'
      : 'It did not make this receipt, or the receipt was changed since.'
  }<//>
    <details class="checks">
      <summary>${good} of ${checks.length} checks of the service passed</summary>
      <ol>${checks.map(
        ({ name, ok, detail }) => html`<li key=${name} class=${ok ? 'passed' : 'failed'}>
          <p><${Badge} tone=${ok ? 'proved' : 'refuted'}>${ok ? 'Passed' : 'Failed'}<//> <code>${name}</code></p>
          ${detail && html`<p class="detail">${detail}</p>`}
        </li>`,
      )}</ol>
    </details>`
}

function Examined({ text, published, service }: { text: string } & Pick<AnsweredProps, 'published' | 'service'>): Html {
  const [pinned, setPinned] = useState<readonly PublishedKey[]>([])
  const source = useMemo(() => ({ name: 'it', blob: new Blob([text]) }), [text])
  const { report, isBusy, progress } = useReport(
    { source, pinned, published: published ?? null },
    published === undefined,
  )
  return html`<p role="status" class="progress">${progress}</p>
    <div class="outcome" aria-busy=${isBusy}>${report && html`<${ReportView} report=${report} service=${service} />`}</div>
    ${report?.key && html`<${Pins} onPin=${setPinned} count=${pinned.length} /><p class="aside">${HOST_LIMITS}</p>`}`
}

const HOST_LIMITS =
  'The checks were made in this frame. The chat host brought the result and the published keys: pin a key to trust neither.'

/** A frame may not open windows, so the host is asked to open links, if it can. */
function openLinksBy(app: App) {
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href]') : null
    if (!link || !app.getHostCapabilities()?.openLinks) return
    event.preventDefault()
    // A host that refuses says so itself.
    app.openLink({ url: link.href }).catch(() => undefined)
  })
}

const place = document.getElementById('chat')
if (place) {
  const { service = '', keys = '[]' } = place.dataset
  const app = new App({ name: 'countersign', version: '1.0.0' })
  openLinksBy(app)
  render(
    html`<${Chat} app=${app} service=${new URL(service)} known=${readKeyList(keys)} />` as ComponentChildren,
    place,
  )
}
