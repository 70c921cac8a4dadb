// Prompts for two procedures: verify a source before citing it, and act only under a lease.
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { PRICE } from '../interface/price.ts'
import type { Offer } from '../verification/offer/offer.ts'
import { type Feature, refuseCursor } from './server.ts'

export interface Prompt {
  name: string
  title: string
  description: string
  arguments: readonly { name: string; description: string; required: boolean }[]
  write(given: Readonly<Record<string, string>>): string
}

/** The prompt for verification is offered only with its tool. */
export function offeredPrompts(offer: Offer): Prompt[] {
  return offer.tool ? [verifyBeforeCiting(offer), runUnderLease] : [runUnderLease]
}

const VERDICTS = `Cite only if claim_support is "supports", and quote from evidence, word for word. With "mixed" or "contradicts" report
   what the page says instead. With "insufficient_evidence" or "not_assessed" do not cite it for this claim.`
/** What to do with the answer: it holds a verdict, or quotes that the reader has to judge. */
const CITING: Record<Offer['assessment'], string> = {
  semantic: VERDICTS,
  local: VERDICTS,
  literal: `This service gives no verdict and asks no model. With claim_support "not_assessed" read the quotes in evidence yourself, and
   cite the page only if one of them says what the claim says, word for word. With "insufficient_evidence" do not cite it.`,
}

function verifyBeforeCiting({ assessment, closed, caveat }: Offer): Prompt {
  return {
    name: 'verify_before_citing',
    title: 'Verify before citing',
    description: 'Check one page for one claim before you cite the page as the source of the claim.',
    arguments: [
      { name: 'source_url', description: 'Public https:// address of the page.', required: true },
      { name: 'claim', description: 'One statement, as it would be cited.', required: true },
    ],
    write: ({ source_url, claim }) => `Before you cite this page for this claim, verify it.${closed ? ` ${closed}` : ''}

Page: ${source_url}
Claim: ${claim}

1. Call service_verify_source with exactly this source_url and claim. It costs ${PRICE.usd} ${PRICE.currency}, paid through x402. The first answer
   holds the terms and charges nothing; pay only within the budget you were given. Use the SAME
   _meta["service/idempotency-key"] again whenever you retry, and never pay again while an answer says "pending".
2. ${CITING[assessment]}
3. Keep request_id and receipt with the citation: they let others check it. ${caveat}
4. If the call fails, nothing was charged: say that the page could not be verified.`,
  }
}

const runUnderLease: Prompt = {
  name: 'run_under_lease',
  title: 'Run under a lease',
  description: 'Do one action only while a lease permits it, and leave a receipt of what was done.',
  arguments: [
    { name: 'agent', description: 'Name of the agent that acts.', required: true },
    { name: 'action', description: 'What it is going to do, e.g. deploy:prod.', required: true },
    { name: 'lim', description: 'Policy that the gateway enforces, e.g. amount<=100.', required: false },
  ],
  write: ({ agent, action, lim = '' }) => `Do the following only under a lease.

Agent: ${agent}
Action: ${action}
Policy (lim): ${lim === '' ? '(none: pass an empty string)' : lim}

1. Call service_lease_grant with this agent, action and lim, and a ttl_s no longer than the work needs. If it fails, do not
   act: say why, and stop.
2. Right before each step that cannot be undone, call service_lease_verify. Go on only while it says that the lease is valid.
3. A lease authorizes only until its recheck_by_ms, at most 30 seconds away. While you work, call service_lease_renew before
   that. If renewing fails with lease_ended, stop at once: the lease was revoked or has expired.
4. When done, make a record of what you did, take its SHA-256, and call service_receipt_issue with it. The receipt is public:
   put nothing private into its label.
5. Call service_lease_revoke. The permission should end with the work.`,
}

export function promptsFeature(offered: readonly Prompt[]): Feature {
  const list = {
    prompts: offered.map(({ write: _, arguments: args, ...listed }) => ({ ...listed, arguments: [...args] })),
  }
  const byName = new Map(offered.map((prompt) => [prompt.name, prompt]))
  return {
    capabilities: { prompts: {} },
    install(server) {
      server.setRequestHandler('prompts/list', ({ params }) => {
        refuseCursor(params?.cursor)
        return list
      })
      server.setRequestHandler('prompts/get', ({ params }) => {
        const prompt = byName.get(params.name)
        if (!prompt) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no prompt of this name.')
        const given = params.arguments ?? {}
        const missing = prompt.arguments.filter(({ name, required }) => required && !given[name])
        if (missing.length > 0) {
          const names = missing.map(({ name }) => name).join(', ')
          throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The prompt needs: ${names}.`)
        }
        const text = prompt.write(given)
        return { description: prompt.description, messages: [{ role: 'user', content: { type: 'text', text } }] }
      })
    },
  }
}
