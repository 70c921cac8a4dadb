// The paid tool. Terms, payment and settlement travel as x402 has them in MCP: in `_meta`, and in results of the tool.
import { z } from 'zod'
import { addressKey } from '../accounts/rate-limit.ts'
import type { Api } from '../context.ts'
import { AppError } from '../errors.ts'
import { PRICE, verificationInput } from '../interface/result.ts'
import { type Credentials, execute } from '../operation.ts'
import { configuredNetworks } from '../payments/networks.ts'
import type { VerificationAnswer } from '../verification/answer.ts'
import { describeOffer, type Offer } from '../verification/offer.ts'
import { getRequest, verifySource } from '../verification/operations.ts'
import { requestNamedBy } from '../verification/recovery-token.ts'
import { META, renderFailure, renderResult, TOOL_NAME } from './answers.ts'
import { IGNORED_KEY } from './operation-tool.ts'
import { findPurchaseKey, type PurchaseKey } from './purchase-key.ts'
import { watchStages } from './stages.ts'
import { createTask, declaresTasks } from './tasks.ts'
import type { CallToolResult, Tool, ToolCall } from './tool.ts'

/** Seconds it waits for the end by itself; Heroku's router gives up at 30 s. */
const WAIT_SECONDS = 25

function descriptionOf({ closed, summary, outcomes, caveat }: Offer) {
  return `${closed ? `${closed} ` : ''}${summary} ${outcomes} ${caveat}
Costs ${PRICE.usd} USDC by x402, and only when the work is done. Without a payment the answer is an error with the terms: sign \
them and repeat the call with the payment in _meta["${META.payment}"].
_meta["${META.key}"], or idempotency_key, names the purchase: 16 to 128 characters that nobody can guess. Use the SAME \
value again when you retry the same request; one value is charged at most once.
While pending, repeat the call and never pay anew. Failures are not charged; with retryable true the same call gets \
terms again. _meta["${META.token}"], sent back in _meta, gets the result for a day.`
}

const input = verificationInput.extend({
  idempotency_key: z
    .string()
    .min(16)
    .max(128)
    .optional()
    .describe('Names the purchase. Use the SAME value again when you retry the same request.'),
  service_key: z.string().optional().describe(IGNORED_KEY),
})

export function verifySourceTool(api: Api): Tool {
  const title = 'Verify a claim against a page'
  const inputSchema = z.toJSONSchema(input, { io: 'input' }) as Tool['descriptor']['inputSchema']
  return {
    // No outputSchema: clients hold the terms of payment to it as well, and never show them.
    descriptor: {
      name: TOOL_NAME,
      title,
      description: descriptionOf(describeOffer(api.config)),
      inputSchema,
      annotations: {
        title,
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
        openWorldHint: true,
      },
      _meta: {
        'service/price': { amount_atomic: PRICE.atomic, currency: 'USDC', decimals: PRICE.decimals, usd: PRICE.usd },
        'service/networks': configuredNetworks(api.config),
        'service/payment-mode': api.config.paymentMode,
        'service/payment-protocol': 'x402-v2',
      },
    },
    call,
  }
}

async function call(args: Record<string, unknown>, toolCall: ToolCall): Promise<CallToolResult> {
  try {
    const token = toolCall.meta[META.token]
    return token === undefined ? await buy(args, toolCall) : await recover(token, toolCall)
  } catch (error) {
    if (!(error instanceof AppError))
      toolCall.api.log.error({ event: 'request_failed', operation: verifySource.name, err: error })
    return renderFailure(error)
  }
}

async function buy({ idempotency_key, service_key: _, ...body }: Record<string, unknown>, toolCall: ToolCall) {
  const { api, meta } = toolCall
  const payment = readPayment(meta[META.payment])
  const purchase =
    readKey(meta[META.key] ?? idempotency_key) ?? (await findPurchaseKey(payment, api, toolCall.credentials.address))
  using seat = takeSeat(toolCall)
  const credentials = { ...waiting(toolCall, seat), ...purchase, payment }
  const answer = (await execute(verifySource, () => body, { api, credentials })) as VerificationAnswer
  return answerWith(answer, toolCall, purchase.idempotencyKey)
}

/** Needs no arguments: the token names its request. */
async function recover(token: unknown, toolCall: ToolCall) {
  const { api } = toolCall
  const given = typeof token === 'string' ? token : ''
  using seat = takeSeat(toolCall)
  const credentials = { ...waiting(toolCall, seat), bearer: given }
  const request_id = requestNamedBy(given) ?? ''
  return answerWith(
    (await execute(getRequest, () => ({ request_id }), { api, credentials })) as VerificationAnswer,
    toolCall,
  )
}

function answerWith(answer: VerificationAnswer, { api, capabilities }: ToolCall, key?: string) {
  if (answer.kind === 'pending' && declaresTasks(capabilities)) return createTask(answer, api, key)
  return renderResult(answer, api, key)
}

/** Null for a call that is answered at once: its client can be given a task, or too many wait already. */
function takeSeat({ api, credentials: { entry, address }, capabilities }: ToolCall): Disposable | null {
  return declaresTasks(capabilities) ? null : api.seats.take(entry?.caller?.accountId ?? addressKey(address))
}

function waiting({ credentials, progress }: ToolCall, seat: Disposable | null): Credentials {
  const given = { ...credentials, withdrawn: credentials.signal }
  if (!seat) return { ...given, waitSeconds: 0 }
  return { ...given, waitSeconds: WAIT_SECONDS, ...(progress && { watch: watchStages(progress) }) }
}

function readKey(given: unknown): PurchaseKey | null {
  if (given === undefined) return null
  if (typeof given !== 'string') throw new AppError('invalid_idempotency_key', `${META.key} must be a string.`)
  return { idempotencyKey: given }
}

/** An object; JSON text of it, from clients whose metadata is text; or what PAYMENT-SIGNATURE would hold. */
function readPayment(given: unknown): unknown {
  if (typeof given !== 'string' || !given.trimStart().startsWith('{')) return given ?? undefined
  try {
    return JSON.parse(given)
  } catch {
    return given
  }
}
