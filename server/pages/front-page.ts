// The front page: what the service does and for whom, a page and a claim to try at once, an answer, three ways to use it, price and
// proof.

import { networkInWords } from '../../client/networks.ts'
import { html } from '../../client/page/html.ts'
import { Code, Facts, Notice } from '../../client/page/parts.ts'
import { cardOf } from '../../client/page/result/card-result.ts'
import { ResultCard } from '../../client/page/result/result-card.ts'
import { TryForm } from '../../client/page/try/try-form.ts'
import { FRESH_RIGHT_OF_100 } from '../../client/verdict-words.ts'
import type { VerificationResult } from '../../client/verification.ts'
import { RIGHT_OF_100 } from '../../workers/assessment/local/explanation.ts'
import type { TrySettings } from '../config/looks.ts'
import type { Capabilities } from '../verification/offer/capabilities.ts'
import type { Offer } from '../verification/offer/offer.ts'
import { renderPage, type Site } from './layout.ts'
import { tryExamples } from './try-page.ts'

export interface FrontPageParts {
  /** What `GET /api/agent/v1/capabilities` answers. */
  capabilities: Capabilities
  offer: Offer
  /** A result of the kind of assessment that is offered. */
  example: VerificationResult
  trying: TrySettings
}

export function frontPage(site: Site, { capabilities, offer, example, trying }: FrontPageParts): string {
  const { methodology_version: methodology, price } = capabilities
  // A look is a verification too.
  const canTry = trying.enabled && !offer.closed
  return renderPage(site, {
    title: 'Countersign',
    path: '/',
    description: `${HEADLINE}. ${offer.summary}`,
    ...(canTry && { scripts: ['try'] as const }),
    body: html`<div class="hero">
        <div>
          <h1>${HEADLINE}</h1>
          <p class="lead">${LEADS[offer.assessment]}</p>
          ${offer.closed && html`<${Notice} title="Closed.">${offer.closed}<//>`}
          ${
            canTry
              ? html`<${TryForm} examples=${tryExamples(site)} perDay=${trying.perAddress} />`
              : offer.closed
                ? html`<p class="actions"><a class="button" href="/verify">Verify a result</a><a class="button quiet" href="/guide">Read the guide</a></p>`
                : html`<p class="actions"><a class="button" href="/guide/buying">Buy a verification</a><a class="button quiet" href="/guide">Read the guide</a></p>`
          }
        </div>
        <div id="answer" data-methodology=${methodology} data-price=${price.usd}>
          <${ExampleCard} result=${example} />
        </div>
      </div>
      <${WaysIn} site=${site} capabilities=${capabilities} closed=${offer.closed !== null} />
      <${InForce} capabilities=${capabilities} offer=${offer} />
      <${Proof} result=${example} />`,
  })
}

const HEADLINE = 'Check the sources that your AI agent cites'

/** What an answer is, by the assessment in force. */
const LEADS: Record<Offer['assessment'], string> = {
  literal:
    'Name one page and one claim. Countersign reads the page and quotes the sentences that speak about the claim, so that you can judge it yourself.',
  local:
    'Name one page and one claim. Countersign reads the page and says whether it supports the claim, contradicts it, or does not say enough, and quotes the sentences that decide.',
  semantic:
    'Name one page and one claim. Countersign reads the page and says whether it supports the claim, contradicts it, or does not say enough, and quotes the sentences that decide.',
}

/** Null where it stands beside the price. */
const MODES: Record<Capabilities['payment_mode'], string | null> = {
  offline: null,
  testnet: 'testnet: paid in test money',
  mainnet: 'mainnet: paid in USDC',
}

const ASSESSMENTS: Record<Offer['assessment'], string> = {
  literal: 'literal: passages are quoted, no verdict is given',
  local: `local: a small model that comes with the service judges. On pages that it had never seen, ${RIGHT_OF_100.supports} of 100 of its verdicts for a claim and ${RIGHT_OF_100.contradicts} of 100 against one were right, on fresh public sets ${FRESH_RIGHT_OF_100.supports} and ${FRESH_RIGHT_OF_100.contradicts}; a third of the former claims and a sixth of the latter got one. Anyone can recompute it`,
  semantic: 'semantic: a language model gives the verdict, the service proves every quote',
}

function ExampleCard({ result }: { result: VerificationResult }) {
  const card = cardOf(result)
  return html`<p class="kicker">A result looks like this</p>
    ${card && html`<${ResultCard} result=${card} accuracy="/accuracy" id="example" isReachable=${false} />`}`
}

function InForce({ capabilities, offer }: Pick<FrontPageParts, 'capabilities' | 'offer'>) {
  const { price, payment_mode, networks, idempotency } = capabilities
  return html`<section aria-labelledby="price">
    <h2 id="price">What it costs</h2>
    <p class="fee"><strong>${price.usd} ${price.currency}</strong> for one verification. No account, no subscription, nothing for a page
      that cannot be read.</p>
    ${
      payment_mode === 'offline' &&
      html`<${Notice} title="This copy of the service takes no money.">It runs in offline mode, to try out: the signature of a
        payment is checked, and nothing is charged.<//>`
    }
    <${Facts} facts=${[
      ['Payment here', MODES[payment_mode]],
      ['Networks', networks.map(networkInWords).join(', ')],
      [
        'Assessment',
        html`${ASSESSMENTS[offer.assessment]}. <a href="/accuracy">${offer.assessment === 'literal' ? 'How often it finds the passage' : 'How often it is right'}</a>`,
      ],
      ['What it says', offer.caveat],
      ['Results kept', `${idempotency.result_retention_seconds / 3600} hours; their receipts for good`],
    ]} />
    <p><a href="/pricing">Prices, and what accounts get for free</a></p>
  </section>`
}

function Proof({ result }: { result: VerificationResult }) {
  const { key_id, pubkey_hex } = result.receipt.attestation
  return html`<section aria-labelledby="proof">
    <h2 id="proof">Proof that lasts</h2>
    <p>Every paid result is signed, and its receipt stands in a public list that only grows. Anyone who gets the result later can check, without
      asking this service, that nothing in it was changed, who signed it and since when it exists.</p>
    <p class="actions"><a class="button quiet" href="/verify">Verify a result</a><a class="button quiet" href="/chain">See the receipts</a></p>
    <details><summary>Try it with the example above</summary>
      <p><a href="/example-result.json" download="result.json">Download the example</a>, drop it on <a href="/verify">Verify</a>, and give
        this as the key to trust: <code>${`${key_id}:${pubkey_hex}`}</code>. It was made on a test service, about a test page.</p></details>
  </section>`
}

export const PURCHASE = { source_url: 'https://example.com/', claim: 'This domain is for documentation examples.' }

function WaysIn({
  site: { baseUrl },
  capabilities,
  closed,
}: {
  site: Site
  capabilities: Capabilities
  closed: boolean
}) {
  const { networks, mcp_tool } = capabilities
  const takesEvm = networks.some((network) => network.startsWith('eip155:'))
  return html`<section aria-labelledby="ways">
    <h2 id="ways">Use it</h2>
    ${
      closed &&
      html`<${Notice} title="Purchases are closed now.">Each one below is answered with 503, and nothing is charged. What works:${' '}
        <a href="/verify">verifying a result</a>, <a href="/chain">the receipts</a>, and for agents <a href="/guide/control-toolkit">the free tools</a>.<//>`
    }
    <div class="ways">
      <div>
        <h3>As an agent</h3>
        <p>In Claude Code, or any other MCP host: the agent gets tools that check claims, pay from your wallet within your budget, and check what they get.</p>
        <${Code} label="Claude Code" text=${`claude mcp add countersign -- npx -y countersign mcp \\\n  --service ${baseUrl} \\\n  --wallet ~/wallet.key --budget 1.00`} />
        <p>${
          mcp_tool
            ? html`A program that pays over x402 by itself buys with <code>${mcp_tool}</code>; 25 more tools are free.`
            : '25 tools are free. Verifications are not sold over MCP here.'
        } <a href="/guide/mcp">All hosts</a></p>
        <${Code} label="Over HTTP" text=${`claude mcp add --transport http \\\n  countersign ${baseUrl}/mcp`} />
      </div>
      <div>
        <h3>As code</h3>
        ${
          takesEvm
            ? html`<p>Any x402 client pays by itself. Install one: <code>npm install @x402/fetch @x402/evm viem</code>. Save the program as${' '}
              <code>buy.mjs</code>, and run it with the private key of a wallet: <code>WALLET_KEY=0x... node buy.mjs</code>.${' '}
              It prints the result. <a href="/guide/buying">Every answer explained</a></p>
              <${Code} label="The program buy.mjs" text=${purchaseCode(baseUrl)} />`
            : html`<p>Payments are taken on Solana here: <a href="/guide/buying">how to pay</a>.</p>`
        }
      </div>
      <div>
        <h3>In a terminal</h3>
        <p>One command asks, pays, waits and checks the result offline. Run again, it never pays twice.</p>
        <${Code} label="Buy one" text=${`npx -y countersign buy ${PURCHASE.source_url} \\\n  '${PURCHASE.claim}' \\\n  --service ${baseUrl} \\\n  --wallet wallet.key`} />
        <p>Without a wallet, the first call answers 402 with the price, and charges nothing.</p>
        <${Code} label="With curl: the terms" text=${termsCall(baseUrl)} />
      </div>
    </div>
    <p>More: the <a href="/guide">guide</a>, every operation in the <a href="/docs">API reference</a>, what works now on${' '}
      <a href="/status">status</a>, and all of it for language models in <a href="/llms.txt">llms.txt</a>.</p>
  </section>`
}

/** In lines that fit beside another column; the address may be of any length. */
function purchaseCode(baseUrl: string): string {
  return `import { env } from 'node:process'
import { ExactEvmScheme } from '@x402/evm'
import * as x402 from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'

const wallet = new ExactEvmScheme(
  privateKeyToAccount(env.WALLET_KEY),
)
const client = new x402.x402Client()
client.register('eip155:*', wallet)
const pay = x402.wrapFetchWithPayment(fetch, client)

const url =
  '${baseUrl}/api/agent/v1/buy'
const answer = await pay(url, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    source_url: '${PURCHASE.source_url}',
    claim:
      '${PURCHASE.claim}',
  }),
})
const { claim_support, error } = await answer.json()
console.log(claim_support ?? error)`
}

function termsCall(baseUrl: string): string {
  return `curl -i -X POST ${baseUrl}/api/agent/v1/buy`
}
