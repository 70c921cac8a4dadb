// The page /verify: a frame for the work of the browser, and instructions for browsers without scripts.
import { html } from '../../client/page/html.ts'
import { INTRODUCTION, NO_SCRIPT, TITLE } from '../../client/page/verify/page-words.ts'
import type { ServedVerifier } from '../../client/page/verify/served-verifier.ts'
import type { VerificationResult } from '../../client/verification.ts'
import { renderPage, type Site } from './layout.ts'

/** @param example a result that was made on a test service, to try the page with */
export function verifyPage(site: Site, verifier: ServedVerifier, example: VerificationResult): string {
  const { key_id, pubkey_hex } = example.receipt.attestation
  return renderPage(site, {
    title: TITLE,
    path: '/verify',
    description: INTRODUCTION,
    scripts: ['verify'],
    body: html`<h1>${TITLE}</h1>
      <p class="lead">${INTRODUCTION}</p>
      <noscript><p>${NO_SCRIPT}</p></noscript>
      <div id="verifier" data-service="./" data-verifier=${JSON.stringify(verifier)} data-can-try=${site.canTry ? '' : undefined}></div>
      <p class="aside verify-aside">No file at hand? <a href="/example-result.json" download="result.json">Download an example</a> and choose it
        above. A test service signed it. Its key is unknown here, until you give it above as one that you trust:
        ${' '}<code>${`${key_id}:${pubkey_hex}`}</code></p>
      <p class="aside verify-aside">The same page as <a href="/verify.html" download="verify.html">one file</a> that works from disk without a
        network. The page requests from this service only its signing keys, a receipt if you type its serial, and the
        verifier if you press the button that makes a verdict again.</p>`,
  })
}
