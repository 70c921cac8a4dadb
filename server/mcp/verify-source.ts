// The paid tools. As x402 defines for MCP, terms, payment and settlement are in `_meta` and in results of the tool.
import { z } from 'zod'
import { addressKey } from '../accounts/address-key.ts'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { claimsInput } from '../interface/claims.ts'
import { FURTHER_CLAIM, PRICE } from '../interface/price.ts'
import { verificationInput } from '../interface/result.ts'
import { type Call, type CallOptions, execute, MAX_WAIT_SECONDS } from '../operation.ts'
import { configuredNetworks } from '../payments/networks.ts'
import { findPurchaseKey, type PurchaseKey } from '../verification/admission/purchase-key.ts'
import type { VerificationAnswer } from '../verification/answer-body.ts'
import { describeOffer, type Offer } from '../verification/offer/offer.ts'
import { getRequest, verifyClaims, verifySource } from '../verification/operations.ts'
import { requestNamedBy } from '../verification/recovery-token.ts'
import { reportStages } from './progress.ts'
import { REPORT_VIEW } from './report-view.ts'
import { createTask, declaresTasks } from './tasks.ts'
import { inputSchemaOf, type Tool, type ToolCall } from './tool.ts'
import { META, renderAnswer, renderVerificationError } from './verification.ts'

function descriptionOf({ closed, summary, outcomes, caveat }: Offer) {
  return `${closed ? `${closed} ` : ''}${summary} ${outcomes} ${caveat}
Costs ${PRICE.usd} USDC by x402, charged only when done. Unpaid, the answer is an error with the terms: repeat the call with the \
payment in _meta["${META.payment}"]. _meta["${META.key}"], or idempotency_key, names the purchase: charged at most once. Use the \
SAME value again when you retry the same request. While pending, repeat the call; never pay again. Failures are not charged. \
_meta["${META.token}"], sent back, returns the result for a day.`
}

/** Short, because it stands beside that of the tool for one claim. */
const CLAIMS_DESCRIPTION = `As service_verify_source, for 1 to 10 claims on one page: one payment of ${PRICE.usd} USDC and \
${FURTHER_CLAIM.usd} for each claim after the first, one result, a verdict for each claim. Keys, payment and repeats are the same.`

const NAMES = { idempotency_key: z.string().min(16).max(128).optional(), service_key: z.string().optional() }

const input = verificationInput.extend({
  source_url: verificationInput.shape.source_url.describe('One public HTTPS page.'),
  claim: verificationInput.shape.claim.describe('One claim, checked against the visible text of the page.'),
  ...NAMES,
  idempotency_key: NAMES.idempotency_key.describe('Cannot be guessed; the SAME value for a retry.'),
})

const inputOfClaims = z.object({ ...claimsInput.shape, ...NAMES })

const ANNOTATIONS = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true }

export function verifySourceTool(api: Api): Tool {
  return {
    // There is no outputSchema, because clients would also check the terms of payment against it, and then not show them.
    descriptor: {
      name: 'service_verify_source',
      title: 'Verify a claim against a page',
      description: descriptionOf(describeOffer(api.config)),
      inputSchema: inputSchemaOf(input),
      annotations: ANNOTATIONS,
      _meta: {
        'service/price': { amount_atomic: PRICE.atomic, currency: 'USDC', decimals: PRICE.decimals, usd: PRICE.usd },
        'service/networks': configuredNetworks(api.config),
        'service/payment-mode': api.config.paymentMode,
        'service/payment-protocol': 'x402-v2',
        ...REPORT_VIEW,
      },
    },
    call: callOf(verifySource),
  }
}

/** The tool for several claims on one page, which an operator switches on. */
export function verifyClaimsTool({ config }: Api): Tool {
  return {
    descriptor: {
      name: 'service_verify_claims',
      title: 'Verify claims against a page',
      description: config.verificationEnabled
        ? CLAIMS_DESCRIPTION
        : `${describeOffer(config).closed} ${CLAIMS_DESCRIPTION}`,
      inputSchema: inputSchemaOf(inputOfClaims),
      annotations: ANNOTATIONS,
    },
    call: callOf(verifyClaims),
  }
}

type Sale = typeof verifySource | typeof verifyClaims

function callOf(sale: Sale): Tool['call'] {
  return async (args, toolCall) => {
    try {
      const token = toolCall.meta[META.token]
      return token === undefined ? await buy(sale, args, toolCall) : await recover(token, toolCall)
    } catch (error) {
      if (!(error instanceof AppError))
        toolCall.api.log.error({ event: 'request_failed', operation: sale.name, err: error })
      return renderVerificationError(error)
    }
  }
}

async function buy(
  sale: Sale,
  { idempotency_key, service_key: _, ...body }: Record<string, unknown>,
  toolCall: ToolCall,
) {
  const { api, meta } = toolCall
  const payment = readPayment(meta[META.payment])
  const purchase =
    readKey(meta[META.key] ?? idempotency_key) ?? (await findPurchaseKey(payment, api, toolCall.credentials.address))
  using seat = takeSeat(toolCall)
  const call: Call = {
    api,
    credentials: { ...toolCall.credentials, payment },
    options: { ...waitOptions(toolCall, seat), ...purchase },
  }
  return answerWith(await execute(sale, () => body, call), toolCall, purchase.idempotencyKey)
}

/** Ignores all arguments, because the token names its request. */
async function recover(token: unknown, toolCall: ToolCall) {
  const { api } = toolCall
  const bearer = typeof token === 'string' ? token : ''
  using seat = takeSeat(toolCall)
  const call: Call = {
    api,
    credentials: { ...toolCall.credentials, bearer },
    options: waitOptions(toolCall, seat),
  }
  return answerWith(await execute(getRequest, () => ({ request_id: requestNamedBy(bearer) ?? '' }), call), toolCall)
}

function answerWith(answer: VerificationAnswer, { api, capabilities, links }: ToolCall, key?: string) {
  if (answer.kind === 'pending' && declaresTasks(capabilities)) return createTask(answer, api, key)
  return renderAnswer(answer, api, { links, ...(key !== undefined && { key }) })
}

/** Null for a call that does not wait, because its client supports tasks or too many calls wait already. */
function takeSeat({ api, credentials: { counted, address }, capabilities }: ToolCall): Disposable | null {
  return declaresTasks(capabilities) ? null : api.seats.take(counted?.caller?.accountId ?? addressKey(address))
}

/** When the caller disconnects or cancels, the call is withdrawn. */
function waitOptions({ options, progress }: ToolCall, seat: Disposable | null): CallOptions {
  const withdrawable = { ...options, withdrawn: options.signal }
  if (!seat) return { ...withdrawable, waitSeconds: 0 }
  return { ...withdrawable, waitSeconds: MAX_WAIT_SECONDS, ...(progress && { watch: reportStages(progress) }) }
}

function readKey(given: unknown): PurchaseKey | null {
  if (given === undefined) return null
  if (typeof given !== 'string') throw new AppError('invalid_idempotency_key', `${META.key} must be a string.`)
  return { idempotencyKey: given }
}

/** Accepts an object, its JSON text (from clients whose metadata is text), or the value of PAYMENT-SIGNATURE. */
function readPayment(given: unknown): unknown {
  if (typeof given !== 'string' || !given.trimStart().startsWith('{')) return given ?? undefined
  try {
    return JSON.parse(given)
  } catch {
    return given
  }
}
