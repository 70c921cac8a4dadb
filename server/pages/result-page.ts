// The page /results/{request_id}: a frame for the result that the browser fetches with the token behind #, which the server never sees.
import { html } from '../../client/page/html.ts'
import { Notice } from '../../client/page/parts.ts'
import { renderPage, type Site } from './layout.ts'

/**
 * The same page for every id, because only a caller with the token may learn whether there is a result.
 * @param keptSeconds how long a result is kept after it is completed
 */
export function resultPage(site: Site, requestId: string, keptSeconds: number): string {
  return renderPage(site, {
    title: 'Result',
    path: `/results/${requestId}`,
    description: 'A completed verification, shown to the holder of its link and checked in the browser.',
    scripts: ['result'],
    unlisted: true,
    body: html`<h1>Result of a verification</h1>
      <p class="lead">A result is shown to each person who has its whole link. Your browser checks it; the token in the link is sent only to this service.</p>
      <noscript><${Notice} title="This page needs JavaScript, which is off.">The token in the address never reaches a
        server by itself, so only a script can ask with it. The command line does the same: <code>countersign recover ${site.baseUrl}
        ${requestId} --token FILE</code><//></noscript>
      <div id="result" data-service="/" data-request=${requestId} data-kept-hours=${keptSeconds / 3600} data-can-try=${site.canTry ? '' : undefined}></div>`,
  })
}
