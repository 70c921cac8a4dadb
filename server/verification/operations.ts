// The operations of verification: buy one, recover its result, learn what is on offer.
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { claimsInput, claimsResult, purchaseResult } from '../interface/claims.ts'
import { completedResult, verificationInput } from '../interface/result.ts'
import { type Call, defineExchange, defineVerification } from '../operation.ts'
import { answerRequest, askForPayment } from './answer.ts'
import type { VerificationAnswer } from './answer-body.ts'
import { findById } from './lookup.ts'
import { capabilities, describeCapabilities } from './offer/capabilities.ts'
import { buy, quoteAnyCall, showTerms, submit } from './purchase.ts'
import { isRecoveryToken, isSameToken } from './recovery-token.ts'
import { isPayable } from './request.ts'

export const verifySource = defineVerification({
  name: 'verify_source',
  summary: 'Verify one claim against one public HTTPS page',
  description:
    'Without PAYMENT-SIGNATURE: 402 with the terms of payment. With it, the identical body and the identical ' +
    'Idempotency-Key: the work is done, and paid for only when it is done. Repeat the same call as often as you like: ' +
    'one key is charged at most once. After a failure that is `retryable`, the same call is answered 402 and may be paid ' +
    'again. `Prefer: wait=N` (up to 25 s) holds the answer until the work is finished.',
  method: 'POST',
  path: '/api/agent/v1/verify-source',
  family: 'verification',
  access: 'payment',
  kind: 'exchange',
  input: verificationInput,
  output: completedResult,
  run: submit,
})

/** Bytes of the body of verify-claims: ten claims of the longest kind and a context fit, however they are escaped. */
const CLAIMS_BODY_LIMIT = 262_144

export const verifyClaims = defineVerification({
  name: 'verify_claims',
  summary: 'Verify up to ten claims against one public HTTPS page',
  description:
    'As verify-source, for 1 to 10 claims at once: the page is read once, paid for once (0.03 USDC, and 0.01 for each claim ' +
    'after the first) and attested once, with a verdict, quotes and flags for each claim. `context` says what the claims refer ' +
    'to; where a claim was read with words of it, `claim_as_read` says how. A claim that cannot be assessed is ' +
    '`not_assessed`, and the others are assessed. Keys, payment, waiting and recovery are those of verify-source.',
  method: 'POST',
  path: '/api/agent/v1/verify-claims',
  family: 'verification',
  access: 'payment',
  kind: 'exchange',
  input: claimsInput,
  output: claimsResult,
  bodyLimit: CLAIMS_BODY_LIMIT,
  through: 'claims',
  run: submit,
})

export const buySource = defineVerification({
  name: 'buy_source',
  summary: 'Buy a verification with a stock x402 client',
  description:
    'Verify-source for clients that know only x402. Without PAYMENT-SIGNATURE, whatever the body: 402 with the terms and ' +
    '`how_to_call`. With it: the work is done, and paid for only when it is done. Idempotency-Key may be left out; the ' +
    'payment then names the purchase, so that the same signed payment with the same body is charged at most once, however ' +
    'often it is sent. With a key this is verify-source, and keys and terms of one are good at the other. The answer is ' +
    'held up to 25 s by itself (`Prefer: wait=N` for less). A body with `claims` instead of `claim` buys what verify-claims ' +
    'sells, on its terms.',
  method: 'POST',
  path: '/api/agent/v1/buy',
  family: 'verification',
  access: 'payment',
  kind: 'exchange',
  input: verificationInput,
  otherwise: { member: 'claims', input: claimsInput },
  output: purchaseResult,
  through: 'buy',
  waits: true,
  unpaid: quoteAnyCall,
  run: buy,
})

export const getTerms = defineVerification({
  name: 'get_terms',
  summary: 'The terms of a verification, and how to buy one',
  description:
    'For catalogues and clients that ask before they buy: always 402. Buying is the POST of the same address.',
  method: 'GET',
  path: '/api/agent/v1/buy',
  family: 'verification',
  access: 'terms',
  kind: 'exchange',
  input: z.object({}),
  output: z.never(),
  through: 'buy',
  run: async (_input, call) => showTerms(call),
})

export const getRequest = defineVerification({
  name: 'get_request',
  summary: 'Recover the result of a request',
  description:
    'Needs the recovery token that came with 202 and 200 as bearer token. `Prefer: wait=N` holds the answer. A request that ' +
    'failed answers 422, or 503 if the service was too busy for it; one whose payment did not settle, and provably never will, answers 402 with the terms.',
  method: 'GET',
  path: '/api/agent/v1/requests/{request_id}',
  family: 'verification',
  access: 'recovery',
  kind: 'exchange',
  input: z.object({ request_id: z.string() }),
  output: purchaseResult,
  run: recover,
})

export const getCapabilities = defineExchange({
  name: 'get_capabilities',
  summary: 'What this service offers: schemas, limits, price, networks',
  method: 'GET',
  path: '/api/agent/v1/capabilities',
  family: 'verification',
  unlimited: true,
  access: 'public',
  kind: 'exchange',
  input: z.object({}),
  output: capabilities,
  run: async (_input, { api }) => describeCapabilities(api),
})

const requestId = z.uuid()

async function recover(input: { request_id: string }, call: Call): Promise<VerificationAnswer> {
  const { api, credentials } = call
  const unknown = () => new AppError('not_found', 'There is no such request, or the recovery token is not its own.')
  if (!requestId.safeParse(input.request_id).success || !credentials.bearer) throw unknown()
  const id = input.request_id.toLowerCase()
  const kept = api.results.get(id)
  if (kept && kept.expiresAt > Date.now() && isSameToken(kept.recoveryToken, credentials.bearer))
    return { kind: 'completed', requestId: id, replay: false, ...kept }
  if (!isRecoveryToken(api.secrets.recovery, id, credentials.bearer)) throw unknown()
  const row = await findById(api.db, id)
  if (!row || row.state === 'quoted') throw unknown()
  if (row.state === 'unpaid' && isPayable(row, Date.now())) return askForPayment(row, call, null)
  return answerRequest(row, call, { replay: false })
}
