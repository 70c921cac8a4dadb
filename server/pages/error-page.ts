// The page that a browser gets where another caller gets an error in JSON.
import { type Html, html } from '../../client/page/html.ts'
import { Facts, Notice } from '../../client/page/parts.ts'
import { EFFECT_UNKNOWN } from '../errors.ts'
import { renderPage, type Site } from './layout.ts'

export interface ShownError {
  status: number
  code: string
  message: string
  retryable: boolean
  /** The value of `Retry-After`. */
  retryAfter?: string | undefined
}

/** @param url the path of the request and its query */
export function errorPage(site: Site, url: string, error: ShownError): string {
  const { status, code, message, retryable } = error
  const [path = url] = url.split('?')
  const title = TITLES[status] ?? 'It did not work'
  const next = nextStep(error)
  // Its message names a header, which a browser does not send.
  const isForPrograms = code === 'unauthenticated'
  return renderPage(site, {
    title,
    path,
    description: message,
    unlisted: true,
    body: html`<h1>${title}</h1>
      <${Notice} tone=${status < 500 ? 'open' : 'bad'}>${isForPrograms ? next : inWords(error)}<//>
      <${Facts} facts=${[
        ['What next', isForPrograms ? null : next],
        ['Message', isForPrograms ? message : null],
        ['Address', html`<code>${path}</code>`],
        ['Status', String(status)],
        ['Error code', html`<a href=${`/docs/errors#error-${code}`}><code>${code}</code></a>`],
      ]} />
      <p class="actions">${buttons({ isForPrograms, isPassing: retryable, isAsked: status === 400 && url !== path, path })}<a class="button quiet" href="/guide">Search the guide</a></p>`,
  })
}

interface Doors {
  isForPrograms: boolean
  isPassing: boolean
  /** What is wrong may be in the query, and the same address is there without it. */
  isAsked: boolean
  path: string
}

function buttons({ isForPrograms, isPassing, isAsked, path }: Doors): Html {
  const home = (look = 'button quiet') => html`<a class=${look} href="/">To the front page</a>`
  if (isForPrograms) return html`<a class="button" href="/account">Open or make an account</a>${home()}`
  // An empty reference is the address of this page with its query.
  if (isPassing)
    return html`<a class="button" href="">Try again</a><a class="button quiet" href="/status">What works now</a>${home()}`
  // A path that begins with two slashes would lead to another host.
  if (isAsked && !path.startsWith('//'))
    return html`<a class="button" href=${path}>Open it without the part after “?”</a>${home()}`
  return home('button')
}

/** What is wrong. A message about a value of the request begins with its name: `from: Too small: ...`. */
function inWords({ code, message }: ShownError): Html {
  if (code !== 'invalid_request') return message.replace(EFFECT_UNKNOWN, '').trimEnd()
  const faults = message.split('; ').map((fault) => /^([\w.]+): (.+)$/s.exec(fault))
  if (faults.includes(null)) return message
  return faults.map(
    (fault, n) => html`${n > 0 && ' '}In the address, the value of <code>${fault?.[1]}</code> is wrong. ${fault?.[2]}.`,
  )
}

function nextStep({ status, code, retryable, retryAfter }: ShownError): Html {
  if (code === 'unauthenticated')
    return 'This address is for programs, which send an API key. In a browser, open your account with its API key, or make one there.'
  if (code === 'not_found') return 'Look for it from the front page, or search the guide.'
  if (retryable) return html`Try again ${whenAgain(retryAfter)}. Nothing has to be changed.`
  if (status === 400)
    return html`Correct the address and open it again. What each address takes is in the <a href="/docs">API reference</a>.`
  return 'The same call would end in the same way. Change what the message names.'
}

function whenAgain(retryAfter: string | undefined): string {
  const seconds = Number(retryAfter)
  if (!(seconds > 10)) return 'in a few seconds'
  if (seconds < 120) return `in ${seconds} seconds`
  return seconds < 7200 ? `in ${Math.ceil(seconds / 60)} minutes` : `in ${Math.ceil(seconds / 3600)} hours`
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'The address cannot be read',
  401: 'An API key is needed',
  403: 'That is not allowed',
  404: 'There is nothing at this address',
  405: 'That is not how this address is called',
  410: 'It is no longer kept',
  429: 'Too many requests',
  500: 'A fault of ours',
  503: 'Not available at present',
}
