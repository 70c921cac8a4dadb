// The operations of verification: buy one, recover its result, learn what is on offer.
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { completedResult, verificationInput } from '../interface/result.ts'
import { type Call, defineExchange, defineVerification } from '../operation.ts'
import { answerRequest, askForPayment } from './answer.ts'
import type { VerificationAnswer } from './answer-body.ts'
import { capabilities, describeCapabilities } from './capabilities.ts'
import { findById } from './lookup.ts'
import { submit } from './purchase.ts'
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

export const getRequest = defineVerification({
  name: 'get_request',
  summary: 'Recover the result of a request',
  description:
    'Needs the recovery token that came with 202 and 200 as bearer token. `Prefer: wait=N` holds the answer. A request that ' +
    'failed answers 422; one whose payment did not settle, and provably never will, answers 402 with the terms.',
  method: 'GET',
  path: '/api/agent/v1/requests/{request_id}',
  family: 'verification',
  access: 'recovery',
  kind: 'exchange',
  input: z.object({ request_id: z.string() }),
  output: completedResult,
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
