// The page that a browser gets where another caller gets an error in JSON.
import { html } from '../../client/page/html.ts'
import { Facts, Notice } from '../../client/page/parts.ts'
import { renderPage, type Site } from './layout.ts'

export interface ShownError {
  status: number
  code: string
  message: string
  retryable: boolean
}

export function errorPage(site: Site, path: string, { status, code, message, retryable }: ShownError): string {
  const title = TITLES[status] ?? 'It did not work'
  const next = nextStep(code, retryable)
  // Its message names a header, which a browser does not send.
  const isForPrograms = code === 'unauthenticated'
  return renderPage(site, {
    title,
    path,
    description: message,
    unlisted: true,
    body: html`<h1>${title}</h1>
      <${Notice} tone=${status < 500 ? 'open' : 'bad'}>${isForPrograms ? next : message}<//>
      <${Facts} facts=${[
        ['Message', isForPrograms ? message : null],
        ['Address', html`<code>${path}</code>`],
        ['Status', String(status)],
        ['Error code', html`<a href=${`/docs/errors#error-${code}`}><code>${code}</code></a>`],
        ['What next', isForPrograms ? null : next],
      ]} />
      <p class="actions">${
        isForPrograms
          ? html`<a class="button" href="/account">Open or make an account</a><a class="button quiet" href="/">To the front page</a>`
          : html`<a class="button" href="/">To the front page</a>`
      }<a class="button quiet" href="/guide">Search the guide</a></p>`,
  })
}

function nextStep(code: string, retryable: boolean): string {
  if (code === 'unauthenticated')
    return 'This address is for programs, which send an API key. In a browser, open your account with its API key, or make one there.'
  if (code === 'not_found') return 'Look for it from the front page, or search the guide.'
  return retryable
    ? 'The same call may work later.'
    : 'The same call would end in the same way. Change what the message names.'
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'That is not a valid request',
  401: 'An API key is needed',
  403: 'That is not allowed',
  404: 'There is nothing at this address',
  405: 'That is not how this address is called',
  410: 'It is no longer kept',
  429: 'Too many requests',
  500: 'A fault of ours',
  503: 'Not available at present',
}
