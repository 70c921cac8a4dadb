// The way from a result that is not there, or not genuine, to a new look at its page.
import { type Html, html } from '../html.ts'
import type { LookQuestion } from './look-call.ts'
import { tryLink } from './try-link.ts'

export interface CheckAgainProps {
  service: URL
  /** There is a page /try. */
  canTry: boolean
  /** What is known of the question; the reader fills in the rest. */
  question?: Partial<LookQuestion>
  isQuiet?: boolean
  children: Html
}

/** A button to the form of /try, filled in; where nothing can be tried, to how a verification is bought. */
export function CheckAgain({ service, canTry, question = {}, isQuiet = false, children }: CheckAgainProps): Html {
  const href = canTry ? tryLink(new URL('try', service), question) : new URL('guide/buying', service).href
  return html`<a class=${isQuiet ? 'button quiet' : 'button'} href=${href}>${children}</a>`
}

/** What the button says where the question is not known: the form that it leads to is empty. */
export const againUnknown = (canTry: boolean): string =>
  canTry ? 'Check it again: enter page and claim' : 'Check it again'
