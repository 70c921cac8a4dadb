// The page that a browser gets where another caller gets an error in JSON.
import { type Html, html } from '../../client/page/html.ts'
import { Facts, Notice } from '../../client/page/parts.ts'
import { EFFECT_UNKNOWN, STORAGE_FULL } from '../errors.ts'
import { type InputFault, sentence } from './input-faults.ts'
import { renderPage, type Site } from './layout.ts'

export interface ShownError {
  status: number
  /** Null where the protocol of the address has no code of ours. */
  code: string | null
  message: string
  retryable: boolean
  /** The value of `Retry-After`. */
  retryAfter?: string | undefined
  /** What is wrong with the values of the request, where a schema refused them. */
  faults?: readonly InputFault[] | undefined
}

/** What a browser sent, where it did not only open an address. */
export interface Sent {
  /** The page that has the form, as a reference from the address; null where nothing can be sent. */
  form: string | null
  /** The address can be opened without sending anything. */
  isPage: boolean
  isTooLong: boolean
}

/** What the page says, and the ways out of it. */
interface Words {
  title: string
  wrong: Html
  next: Html
  /** The first is the main one. */
  doors: readonly Door[]
  /** The message as programs get it, where `wrong` says it in other words. */
  message?: string
}
type Door = readonly [href: string, label: string]

/**
 * @param url the path of the request and its query
 * @param sent a form, or what else a browser sends
 */
export function errorPage(site: Site, url: string, error: ShownError, sent?: Sent): string {
  const { status, code, message } = error
  const [path = url] = url.split('?')
  const words = sent ? wordsOfSent(error, path, sent) : wordsOf(error, path, url !== path)
  const { title } = words
  return renderPage(site, {
    title,
    path,
    description:
      error.faults?.map(({ words: said }) => said).join(' ') ??
      (typeof words.wrong === 'string' ? words.wrong : message),
    unlisted: true,
    body: html`<h1>${title}</h1>
      <${Notice} tone=${status < 500 ? 'plain' : 'bad'}>${words.wrong}<//>
      <${Facts} facts=${[
        ['What next', words.next === words.wrong ? null : words.next],
        ['Message', words.message ?? null],
        ['Address', html`<code>${path}</code>`],
        ['Status', String(status)],
        ['Error code', code && html`<a href=${`/docs/errors#error-${code}`}><code>${code}</code></a>`],
      ]} />
      <p class="actions">${[...words.doors, HOME, GUIDE].map(
        ([href, label], n) =>
          html`<a key=${label} class=${n === 0 ? 'button' : 'button quiet'} href=${href}>${label}</a>`,
      )}</p>`,
  })
}

const HOME: Door = ['/', 'To the front page']
const GUIDE: Door = ['/guide', 'Search the guide']
const WHAT_WORKS: Door = ['/status', 'What works now']
const LOOK_ELSEWHERE = 'Look for it from the front page, or search the guide.'

/** @param isAsked the address has a query */
function wordsOf(error: ShownError, path: string, isAsked: boolean): Words {
  const { status, code, message, retryable } = error
  const title = TITLES[status] ?? 'It did not work'
  if (code === null)
    return {
      title: 'This address is for programs',
      wrong: message,
      next: html`Connect an agent to it: <a href="/guide/mcp">how</a>. In a browser there is nothing to see here.`,
      doors: [['/guide/mcp', 'How to connect an agent']],
    }
  // Its message names a header, which a browser does not send.
  if (code === 'unauthenticated') {
    const next =
      'This address is for programs, which send an API key. In a browser, open your account with its API key, or make one there.'
    return { title, wrong: next, next, doors: [['/account', 'Open or make an account']] }
  }
  const wrong = inWords(error)
  if (isFull(error))
    return {
      title: FULL.title,
      wrong: `${STORAGE_FULL} Nothing was charged.`,
      next: FULL.next,
      doors: [WHAT_WORKS, ['', 'Try again']],
    }
  if (code === 'not_found') return { title, wrong, next: LOOK_ELSEWHERE, doors: [] }
  if (retryable) {
    const next = `Try again ${whenAgain(error.retryAfter)}. Nothing has to be changed.`
    // An empty reference is the address of this page with its query.
    return {
      title,
      wrong,
      next,
      doors: [['', 'Try again'], WHAT_WORKS],
    }
  }
  if (status !== 400)
    return { title, wrong, next: 'The same call would end in the same way. Change what the message names.', doors: [] }
  const next = html`Correct the address and open it again. What each address takes is in the <a href="/docs">API reference</a>.`
  // What is wrong may be in the query. A path that begins with two slashes would lead to another host.
  const canOpen = isAsked && !path.startsWith('//')
  return { title, wrong, next, doors: canOpen ? [[path, 'Open it without the part after “?”']] : [] }
}

function wordsOfSent(error: ShownError, path: string, { form, isPage, isTooLong }: Sent): Words {
  const { status, code, message, retryable, retryAfter } = error
  if (form === null || code === 'not_found')
    return {
      title: form === null ? 'Nothing can be sent to this address' : 'There is nothing at this address',
      wrong: message,
      next: isPage ? 'Open the page. What was sent was not read.' : LOOK_ELSEWHERE,
      doors: isPage ? [[path, 'Open the page']] : [],
    }
  const doors: Door[] = [[form, 'Back to the form']]
  if (isTooLong)
    return {
      title: 'What you sent is too long',
      wrong: 'The form takes less than that. It was not read, and nothing was changed.',
      next: `Go back in your browser: ${STILL_THERE}. Make it shorter and send it again.`,
      doors,
      message,
    }
  const title = code === 'forbidden' ? 'That is not allowed' : (TITLES[status] ?? 'It did not work')
  const said =
    error.faults?.map(({ name, words }) => (name === null ? words : `${name}: ${words}`)).join(' ') ?? message
  const wrong = said.replace(EFFECT_UNKNOWN, 'It is not known whether the form had an effect.')
  if (isFull(error)) return { title: FULL.title, wrong, next: FULL.next, doors: [WHAT_WORKS, ...doors] }
  if (retryable) {
    const next = `Go back in your browser: ${STILL_THERE}. Send it again ${whenAgain(retryAfter)}; nothing has to be changed.`
    return { title, wrong, next, doors: [...doors, WHAT_WORKS] }
  }
  const isUnread = code === 'invalid_request' || code === 'unsupported_media_type'
  return {
    title: isUnread ? 'The form cannot be read' : title,
    wrong,
    next: 'Open the form here, fill it in and send it again.',
    doors,
  }
}

/** No time can be named: a person has to act first. */
const FULL = {
  title: 'The storage is full',
  next: 'The operator of the service has to free space; until then the same happens again. Nothing has to be changed at your end.',
}
const isFull = ({ message }: ShownError) => message.startsWith(STORAGE_FULL)

const STILL_THERE = 'it may still have what you wrote'

/** What is wrong. Another message about a value of the request than a schema's begins with its name too: `after: is not ...`. */
function inWords({ code, message, faults }: ShownError): Html {
  if (code !== 'invalid_request') return message.replace(EFFECT_UNKNOWN, '').trimEnd()
  const [, named, said = ''] = /^([\w.]+): (.+)$/s.exec(message) ?? []
  const found = faults ?? (named === undefined ? null : [{ name: named, words: sentence(said) }])
  return (
    found?.map(({ name, words }, n) => {
      const where =
        name === null ? 'In the address:' : html`In the address, the value of <code>${name}</code> is wrong.`
      return html`${n > 0 && ' '}${where} ${words}`
    }) ?? message
  )
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
