// The front page: what the service is, a real result in readable form, three ways to use it, price, limits and current
// settings.

import { describe } from '../../client/page/describe.ts'
import { html } from '../../client/page/html.ts'
import { Badge, Code, Facts, Notice, VERDICT_TONES } from '../../client/page/parts.ts'
import { passagesOf, quotedIn } from '../../client/page/passages.ts'
import { PassageView } from '../../client/page/quotes-view.ts'
import type { VerificationResult } from '../../client/verification.ts'
import { PRICE } from '../interface/price.ts'
import type { Capabilities } from '../verification/capabilities.ts'
import type { Offer } from '../verification/offer.ts'
import { renderPage, type Site } from './layout.ts'

export interface FrontPageParts {
  /** What `GET /api/agent/v1/capabilities` answers. */
  capabilities: Capabilities
  offer: Offer
  /** A result of the kind of assessment that is offered. */
  example: VerificationResult
}

export function frontPage(site: Site, { capabilities, offer, example }: FrontPageParts): string {
  return renderPage(site, {
    title: 'Countersign',
    path: '/',
    description: `Source verification for AI agents. ${offer.summary}`,
    body: html`<div class="front">
      <div>
        <h1>Does the page say so?</h1>
        <p class="lead">${offer.summary}</p>
        ${offer.closed && html`<${Notice} tone="open" title="Closed.">${offer.closed}<//>`}
        <p>${offer.caveat}</p>
        <${InForce} capabilities=${capabilities} offer=${offer} />
        <p class="actions"><a class="button" href="/guide">Read the guide</a><a class="button quiet" href="/verify">Verify a result</a></p>
      </div>
      <${ExampleResult} result=${example} />
    </div>
    <${WaysIn} site=${site} capabilities=${capabilities} />
    <${ReadOn} />`,
  })
}

const MODES: Record<Capabilities['payment_mode'], string> = {
  offline: 'offline: signatures are checked, no money moves',
  testnet: 'testnet: paid in test money',
  mainnet: 'mainnet: paid in USDC',
}

const ASSESSMENTS: Record<Offer['assessment'], string> = {
  literal: 'literal: passages are quoted, no verdict is given',
  semantic: 'semantic: a language model gives the verdict, the service proves every quote',
}

function InForce({ capabilities, offer }: Omit<FrontPageParts, 'example'>) {
  const { price, payment_mode, networks, idempotency } = capabilities
  return html`<${Facts} facts=${[
    ['Price', html`${price.usd} ${price.currency} for each verification; nothing for a page that cannot be read`],
    ['Payment here', MODES[payment_mode]],
    ['Networks', networks.map((name) => html`<code key=${name}>${name}</code> `)],
    ['Assessment', ASSESSMENTS[offer.assessment]],
    ['Results kept', `${idempotency.result_retention_seconds / 3600} hours`],
  ]} />`
}

function ExampleResult({ result }: { result: VerificationResult }) {
  const quoted = quotedIn(result)
  const passages = quoted ? passagesOf(quoted) : []
  const { serial, key_id, pubkey_hex } = result.receipt.attestation
  const facts = new Map(describe(result, JSON.stringify(result)))
  return html`<article class="example" aria-labelledby="example">
    <h2 id="example">A result, as an example</h2>
    <p class="claim">“${result.claim}”</p>
    <p><${Badge} tone=${VERDICT_TONES[result.claim_support] ?? 'plain'}>${result.claim_support}<//> ${result.explanation}</p>
    ${passages.map((passage) => html`<${PassageView} key=${passage.id} ...${passage} link=${null} />`)}
    <${Facts} facts=${[
      ['Page', html`<code>${result.source.final_url}</code>`],
      ['Read on', facts.get('Read on') ?? result.checked_at],
      [
        'Receipt',
        html`serial ${serial} · ${result.payment.simulated ? 'no money moved' : result.payment.mode}<br /><code>${result.receipt.attestation.receipt_hash}</code>`,
      ],
    ]} />
    <p class="aside">Made on a test service, about a test page. <a href="/example-result.json" download="result.json">Download it</a> and
      drop it on <a href="/verify">Verify</a>, with the pin <code>${`${key_id}:${pubkey_hex}`}</code>.</p>
  </article>`
}

const PURCHASE = { source_url: 'https://example.com/', claim: 'This domain is for use in documentation examples.' }

function WaysIn({ site: { baseUrl }, capabilities }: { site: Site; capabilities: Capabilities }) {
  const { networks, mcp_tool } = capabilities
  return html`<section aria-labelledby="ways">
    <h2 id="ways">Three ways in</h2>
    <h3>An agent, over MCP</h3>
    <p>${
      mcp_tool
        ? html`<code>${mcp_tool}</code> buys a verification; 25 more tools are free.`
        : '25 free tools. Verifications are not sold over MCP here.'
    } <a href="/guide/mcp">Other hosts, and how it pays</a></p>
    <${Code} label="Claude Code" text=${`claude mcp add --transport http countersign ${baseUrl}/mcp`} />
    <h3>Code</h3>
    ${
      networks.some((network) => network.startsWith('eip155:'))
        ? html`<p>Any x402 client pays by itself. This one is in JavaScript, with <code>npm install @x402/fetch @x402/evm viem</code>.${' '}<a href="/guide/buying">Every answer explained</a></p>
          <${Code} label="buy.mjs" text=${purchaseCode(baseUrl)} />`
        : html`<p>Payments are taken on Solana here: <a href="/guide/buying">how to pay</a>.</p>`
    }
    <h3>The command line</h3>
    <p>The first call answers 402 with the terms, and charges nothing. The client of this project pays within a budget, and checks what it gets.</p>
    <${Code} label="With curl: the terms" text=${termsCall(baseUrl)} />
    <${Code} label="With the client: what it would cost" text=${`countersign ask ${baseUrl} --source ${PURCHASE.source_url} \\\n  --claim '${PURCHASE.claim}' --dry-run`} />
  </section>`
}

function purchaseCode(baseUrl: string): string {
  return `import { randomUUID } from 'node:crypto'
import { env } from 'node:process'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'

const wallet = new ExactEvmScheme(privateKeyToAccount(env.WALLET_KEY))
const pay = wrapFetchWithPayment(fetch, new x402Client().register('eip155:*', wallet))
const answer = await pay('${baseUrl}/api/agent/v1/verify-source', {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), prefer: 'wait=20' },
  body: JSON.stringify(${JSON.stringify(PURCHASE, null, 2)
    .replaceAll('\n', '\n  ')
    .replace(/"(\w+)":/g, '$1:')
    .replaceAll('"', "'")}),
})
console.log(answer.status, await answer.json())`
}

function termsCall(baseUrl: string): string {
  return `curl -i ${baseUrl}/api/agent/v1/verify-source \\
  -H 'Content-Type: application/json' -H "Idempotency-Key: $(date +%s)-0123456789abcdef" \\
  -d '${JSON.stringify(PURCHASE)}'`
}

function ReadOn() {
  return html`<section aria-labelledby="read-on">
    <h2 id="read-on">Read on</h2>
    <ul class="links">
      <li><a href="/guide">Guide</a>: buying, the tools for accounts, auditing, running it</li>
      <li><a href="/docs">API reference</a>: every operation with an example</li>
      <li><a href="/pricing">Prices and limits</a>: ${PRICE.usd} ${PRICE.currency} a verification; accounts are free to begin with</li>
      <li><a href="/verify">Verify</a>: whether a result, receipt, lease, alert or chain is genuine</li>
      <li><a href="/status">Status</a>: what works now, and the last 90 days; <a href="/accuracy">accuracy</a>: how well claims are assessed</li>
      <li><a href="/llms.txt">llms.txt</a>: the same for language models</li>
    </ul>
  </section>`
}
