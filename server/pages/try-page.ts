// The page /try: the form for a page and a claim, and the answer below it. Without a script the form is sent here.
import { html } from '../../client/page/html.ts'
import { Notice } from '../../client/page/parts.ts'
import type { LookState } from '../../client/page/try/look-call.ts'
import { LookView } from '../../client/page/try/look-view.ts'
import { type TryExample, TryForm } from '../../client/page/try/try-form.ts'
import { SAMPLES, samplePath } from '../looks/samples.ts'
import type { Capabilities } from '../verification/offer/capabilities.ts'
import { renderPage, type Site } from './layout.ts'

export interface TryPageParts {
  capabilities: Capabilities
  perDay: number
  /** Why nothing is read at present, as a sentence; null where it is. */
  closed: string | null
  /** What was sent, where something was. */
  given?: { source_url: string; claim: string }
  problems?: Readonly<Record<string, string>>
  state?: LookState
}

/** The samples, with the addresses that they have on this service. */
export function tryExamples({ baseUrl }: Pick<Site, 'baseUrl'>): TryExample[] {
  return SAMPLES.map(({ name, label, claim, ...sample }) => ({
    name,
    label,
    claim,
    source_url: `${baseUrl}${samplePath({ name, ...sample })}`,
  }))
}

export function tryPage(site: Site, { capabilities, perDay, closed, given, problems, state }: TryPageParts): string {
  const { price, methodology_version: methodology } = capabilities
  const about = { claim: given?.claim ?? '', methodology, price: price.usd }
  return renderPage(site, {
    title: 'Try it',
    path: '/try',
    description:
      'Compare one web page with one claim, free and without an account: the verdict, and the sentences that decide.',
    ...(closed === null && { scripts: ['try'] as const }),
    body: html`<h1>Try it</h1>
      <p class="lead">Name a page and what it is said to say. The answer comes with the sentences of the page that decide.</p>
      <div class="hero">
        ${
          closed === null
            ? html`<${TryForm} examples=${tryExamples(site)} perDay=${perDay} problems=${problems} ...${given} />`
            : html`<div><${Notice} title="Closed.">${closed} Until they are switched on, nothing can be tried either.<//>
                <p class="actions"><a class="button" href="/verify">Verify a result</a></p></div>`
        }
        <div id="answer" data-methodology=${methodology} data-price=${price.usd}>
          ${
            state
              ? html`<${LookView} state=${state} about=${about} />`
              : closed === null &&
                html`<p class="empty">The answer appears here: the verdict, the quotes it rests on with links that open them on the page,
                  and what raises doubt.</p>`
          }
        </div>
      </div>
      <p class="aside">What is tried here is not kept beyond half an hour, makes no receipt and proves nothing to others.
        Programs send the same to <code>POST /try</code>: <a href="/guide/try">how, and within which limits</a>.</p>`,
  })
}

/** The same address where nothing is tried. @param isClosed nothing is sold either */
export function noTryPage(site: Site, { price }: Pick<Capabilities, 'price'>, isClosed: boolean): string {
  return renderPage(site, {
    title: 'No free checks here',
    path: '/try',
    description: 'This service does not offer free checks.',
    unlisted: true,
    body: html`<h1>No free checks here</h1>
      <p class="lead">This service does not offer free checks. ${isClosed ? 'Verifications are not sold at present either.' : `A verification costs ${price.usd} ${price.currency}, and you need no account.`}</p>
      <p class="actions">${!isClosed && html`<a class="button" href="/guide/buying">Buy a verification</a>`}<a class=${isClosed ? 'button' : 'button quiet'} href="/guide/operations">Run a service of your own</a><a class="button quiet" href="/">To the front page</a></p>`,
  })
}
