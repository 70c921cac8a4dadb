// The text of /llms.txt and of the MCP resource `quickstart`: what this service does, how to buy a verification, and how to
// use the control toolkit.
import type { Api } from './context.ts'
import { FURTHER_CLAIM, MOST_CLAIMS, PRICE } from './interface/price.ts'
import { resourceUrl } from './payments/discovery.ts'
import { describeOffer } from './verification/offer/offer.ts'

/** In Markdown. */
export function introduction({ baseUrl, config }: Pick<Api, 'baseUrl' | 'config'>): string {
  const { summary, outcomes, scope, closed, tool } = describeOffer(config)
  return `# Countersign

> Source verification for AI agents. ${summary}
> ${PRICE.usd} USDC for each, paid through x402 v2. Payment mode here: ${config.paymentMode}.
${closed ? `\n${closed}\n` : ''}
${outcomes}

${scope}

## How to buy one verification

1. POST ${baseUrl}/api/agent/v1/verify-source with Content-Type: application/json, an unpredictable Idempotency-Key
   (16 to 128 characters of A-Z a-z 0-9 _ . : -) and {"source_url": "https://...", "claim": "..."}.
   The answer is 402; its PAYMENT-REQUIRED header holds the terms. Nothing is charged.
2. Check recipient, asset, amount, network and expiry against your wallet policy; authorize with an x402 v2 client.
3. Send the identical body with the identical Idempotency-Key and PAYMENT-SIGNATURE. 202 means: wait Retry-After seconds
   and repeat the same call, or GET the Location with the X-Service-Recovery-Token as bearer token. Never pay again for a
   pending request. \`Prefer: wait=20\` holds the answer until it is done.
4. Keep the result, PAYMENT-RESPONSE, receipt and recovery token. Results are kept ${config.resultRetentionSeconds} seconds.${config.capture.enabled ? EVIDENCE : ''}

With a stock x402 client (\`@x402/fetch\`, \`@x402/axios\`) one call is enough: POST the same body to
${resourceUrl('buy', baseUrl)}, without Idempotency-Key. The payment names the purchase: the same signed
payment is charged at most once. The answer is held up to 25 s; GET the same address for the terms alone.

Several claims on one page: POST ${resourceUrl('claims', baseUrl)} takes
{"source_url": "https://...", "claims": ["...", "..."], "context": "..."} with 1 to ${MOST_CLAIMS} claims, by the same steps. It costs ${PRICE.usd} USDC and
${FURTHER_CLAIM.usd} for each claim after the first; the page is read once, and the result holds a verdict for each claim. \`context\` may
be left out: it says what words such as "it" or "the company" refer to.

A page that cannot be retrieved ends with 422 and is never charged. If the error is retryable, the same call with the same
Idempotency-Key is answered 402 again and may be paid for again; if it is not, the same failure comes again. Only the visible
text of a page can be quoted: its \`<title>\` is not part of it.

## The control toolkit

POST ${baseUrl}/v1/register with {"handle": "..."} makes an account, free of charge. The answer holds its API key, once; all
calls below take it as Authorization: Bearer.

- POST /v1/lease {agent, action, ttl_s, lim}: signed permission for an agent, which a gateway checks offline. /renew, /revoke.
- POST /v1/receipt {subject_sha256, label}: a digest signed into the public hash chain (GET /v1/chain-head, /v1/chain,
  /checkpoint; /checkpoint/timestamp proves by an outside authority when it existed, where the service has one).
- PUT /v1/watchdog/{name} {interval_s, webhook_url}, then POST /v1/heartbeat/{name}: a signed alert when no heartbeat comes.
- PUT /v1/citation-watch/{name}: a signed alert when a quote that you bought is no longer on its page.
- POST /v1/quote-check {source_url, quotes}: whether a page has these quotes, and where.
- PUT, GET, DELETE /v1/journal/{slot}: up to 64 KiB of your bytes.
- GET /v1/usage: how much of the tier is used. POST /v1/checkout {tier}: the page where a person subscribes to dev or pro.

## Over MCP

POST ${baseUrl}/mcp (Streamable HTTP, no session; protocol 2025-03-26 to 2025-11-25, and 2026-07-28) has
${tool ? 'the same as tools' : 'the control toolkit as tools; verifications are not sold over it'}:

${tool ? PAID_TOOL : ''}- 25 free tools are the control toolkit. service_register makes the account; its key goes into service_key, or into
  Authorization: Bearer.
- Claude Code: claude mcp add --transport http countersign ${baseUrl}/mcp

## Reference

- [OpenAPI](${baseUrl}/openapi.json): every operation, schema and error code
- [Capabilities](${baseUrl}/api/agent/v1/capabilities): price, networks, limits
- [Risk flags](${baseUrl}/risk-flags): what each flag of a result means, and what to do
- [Methodology](${baseUrl}/methodology): what the methodology_version of a result names; /methodology/{version} for one of them
- [Weights](${baseUrl}/model/) of the local verifier, with which anyone can recompute a local verdict
- [Signing keys](${baseUrl}/v1/keys): pin them through a channel you trust
`
}

const EVIDENCE = `
   GET /api/agent/v1/verify-source/{request_id}/evidence with the recovery token as bearer token answers a WACZ file with
   every byte that the page came in, signed into the chain.`

const PAID_TOOL = `- service_verify_source buys one verification. Unpaid it answers with isError and the terms in structuredContent. Repeat the
  call with the payment in _meta["x402/payment"] and the same _meta["service/idempotency-key"].
`
