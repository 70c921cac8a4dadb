// What the pages of the operator's dashboard share: their frame with its own navigation, the forms of a session, and the sign-in.
import { type Html, html } from '../../../client/page/html.ts'
import { Code, Field, Notice } from '../../../client/page/parts.ts'
import { renderPage, type Site } from '../layout.ts'

export interface OperatorPage {
  title: string
  path: string
  formToken: string
  body: Html
  /** The page updates itself. */
  live?: boolean
}

/** The settings of the pages that are shown before a person signs in. */
const SIGNED_OUT = {
  title: 'Operator',
  path: '/operator',
  description: 'The dashboard of the operators of this service.',
  unlisted: true,
} as const

const PAGES = [
  ['/operator', 'Now'],
  ['/operator/requests', 'Requests'],
  ['/operator/actions', 'Actions'],
] as const

export function renderOperatorPage(site: Site, { title, path, formToken, body, live = false }: OperatorPage): string {
  return renderPage(site, {
    title,
    path,
    description: SIGNED_OUT.description,
    scripts: live ? ['live'] : [],
    unlisted: true,
    body: html`<div class="live-line" data-events=${live ? '/operator/events' : undefined}>
        <nav class="sections" aria-label="Dashboard">${PAGES.map(
          ([address, name]) =>
            html`<a key=${address} class="button quiet" href=${address} aria-current=${address === path ? 'page' : undefined}>${name}</a>`,
        )}</nav>
        ${live && html`<span class="detail" id="live-status" role="status"></span>`}
        <form method="post" action="/operator/sign-out"><${FormToken} value=${formToken} /><button type="submit" class="quiet">Sign out</button></form>
      </div>
      <p class="kicker">The operator's view</p>
      ${body}`,
  })
}

export function FormToken({ value }: { value: string }): Html {
  return html`<input type="hidden" name="form_token" value=${value} />`
}

export function signInPage(site: Site, { problem, unkept = false }: { problem?: string; unkept?: boolean }): string {
  return renderPage(site, {
    ...SIGNED_OUT,
    body: html`<h1>Operator's dashboard</h1>
      <p class="lead">For the people who run this service: its requests, processes and money. Customers use <a href="/account">Account</a>.</p>
      ${unkept && html`<${Notice} tone="bad" title="Your browser did not keep the session.">It keeps it over https alone, and on the machine itself.<//>`}
      <form method="post" action="/operator/sign-in">
        <${Field} id="token" label="Operator token" type="password" required problem=${problem} autocomplete="current-password"
          hint="The value of OPERATOR_TOKEN. It is exchanged for a session of eight hours, and is not stored." />
        <p class="actions"><button type="submit">Sign in</button></p>
      </form>`,
  })
}

export function closedPage(site: Site): string {
  return renderPage(site, {
    ...SIGNED_OUT,
    body: html`<h1>Operator's dashboard</h1>
      <${Notice} title="It is closed here.">No operator token is set.<//>
      <${Code} label="Make a token, once" text="openssl rand -hex 24" />
      <${Code} label="Set it, the same for every web and worker process, and start them again" text="OPERATOR_TOKEN=the-token-that-was-printed" />
      <p>The holder of the token sees every request of this service, and can cancel and repeat them. The same is available at a shell:${' '}
        <code>npm run cli -- status</code>.</p>`,
  })
}
