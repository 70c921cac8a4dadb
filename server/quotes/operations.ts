// The operations of quote checks: start a search for quotes in a page, and fetch the answer.
import { z } from 'zod'
import { transact } from '../db/pool.ts'
import { AppError, ERROR_CODES, type ErrorCode } from '../errors.ts'
import { type Call, defineAccountExchange, endOfWait, Reply } from '../operation.ts'
import { sourceDomain } from '../outbound/registrable-domain.ts'
import { parsePublicUrl } from '../outbound/url-policy.ts'
import { describeWork } from '../verification/pending-answer.ts'
import { admitCheck } from './admission.ts'
import {
  type CheckView,
  findCheck,
  KEEP_SECONDS,
  PAUSE_SECONDS,
  pendingQuoteCheck,
  quoteCheckInput,
  quoteCheckResult,
} from './quote-check.ts'

/** The error codes of reading a page and searching in it. */
const READING = ERROR_CODES.filter((code) => code.startsWith('source_'))
const FAILURES: readonly ErrorCode[] = [...READING, 'execution_failed', 'capacity_exceeded']

export const checkQuotes = defineAccountExchange({
  name: 'check_quotes',
  summary: 'Look for quotes in one public HTTPS page',
  description:
    'Free of charge: no receipt is made and no model is asked. The page is read as for a verification. The same body gets the ' +
    `same answer for ${KEEP_SECONDS / 3600} hours, and is checked again ${PAUSE_SECONDS} seconds after a failure that is ` +
    '`retryable`. `Prefer: wait=N` (up to 25 s) holds the answer until the work is finished.',
  method: 'POST',
  path: '/v1/quote-check',
  family: 'control',
  access: 'account',
  scope: 'quote:write',
  statuses: [200, 202],
  errors: [...FAILURES, 'daily_limit'],
  kind: 'exchange',
  input: quoteCheckInput,
  output: quoteCheckResult,
  pending: pendingQuoteCheck,
  async run(input, call) {
    const { api, caller } = call
    const { fixtures } = api.config
    const domain = sourceDomain(parsePublicUrl(input.source_url, fixtures), fixtures)
    const owner = { id: caller.accountId, tier: caller.tier }
    return answerCheck(await transact(api.db, (tx) => admitCheck(tx, { owner, input, domain })), owner.id, call)
  },
})

export const getQuoteCheck = defineAccountExchange({
  name: 'get_quote_check',
  summary: 'The answer to a quote check',
  description: '`Prefer: wait=N` holds the answer. A check whose page could not be read answers 422.',
  method: 'GET',
  path: '/v1/quote-check/{check_id}',
  family: 'control',
  access: 'account',
  scope: 'quote:read',
  statuses: [200, 202],
  errors: [...FAILURES, 'not_found'],
  kind: 'exchange',
  input: z.strictObject({ check_id: z.string() }),
  output: quoteCheckResult,
  pending: pendingQuoteCheck,
  async run({ check_id }, call) {
    if (!z.uuid().safeParse(check_id).success) throw unknown()
    return answerCheck(check_id, call.caller.accountId, call)
  },
})

/**
 * Waits for the outcome, as long as the caller asks and the limits of the process allow. Throws the error of a failed
 * check.
 * @param ownerId the account, or the id of an address (see address-checks.ts)
 */
export async function answerCheck(id: string, ownerId: string, { api, options }: Call): Promise<Reply<never>> {
  const enough = endOfWait(options, api.draining)
  let check = await findCheck(api.db, ownerId, id)
  while (check?.state === 'pending' && enough && !enough.aborted) {
    await api.changeEvents.waitForChange(check.id, enough)
    check = await findCheck(api.db, ownerId, id)
  }
  if (!check) throw unknown()
  if (check.error) throw failureOf(check.error, check.pause)
  return check.result ? json(200, check.result) : answerPending(check, api)
}

async function answerPending({ id, waiting }: CheckView, api: Call['api']): Promise<Reply<never>> {
  const { reason, retryAfterSeconds } = describeWork(waiting, {
    now: api.now(),
    hasWorker: await api.assessors.hasWorker(),
  })
  const message = `${reason} Repeat this call, or ask at Location, in ${retryAfterSeconds} s.`
  const body = pendingQuoteCheck.parse({ check_id: id, status: 'pending', message })
  return json(202, Buffer.from(JSON.stringify(body)), {
    'retry-after': String(retryAfterSeconds),
    location: `${api.baseUrl}/v1/quote-check/${id}`,
  })
}

const json = (status: number, bytes: Buffer, headers: Record<string, string> = {}) =>
  Reply.bytes(bytes, {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', ...headers },
  })

/** A code that another release stored and this release does not know becomes `execution_failed`. */
function failureOf({ code, message, retryable }: NonNullable<CheckView['error']>, pause: number): AppError {
  const known = FAILURES.find((one) => one === code) ?? 'execution_failed'
  const headers: Record<string, string> = retryable ? { 'retry-after': String(Math.max(1, Math.ceil(pause))) } : {}
  return new AppError(known, message, { retryable, headers })
}

const unknown = () => new AppError('not_found', 'This account has no such quote check, or it has expired.')
