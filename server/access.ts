// Rate limits, authentication and authorization: what every protocol does before it reads a body. A call with a valid API
// key is counted against its account, a recovery with a valid token against its request, every other call against its
// address. So a flood of calls or wrong keys from one address does not lock out a caller there who has a valid key.
import { authenticate, type Caller, requireScope, unauthenticated } from './accounts/authentication.ts'
import type { Budget } from './accounts/rate-limit.ts'
import type { Scope } from './accounts/scopes.ts'
import type { Api } from './context.ts'
import { AppError } from './errors.ts'
import { isRecoveryToken, requestNamedBy } from './verification/recovery-token.ts'

/**
 * What the caller must show: nothing, a payment, a recovery token, a payment made before, or an API key with a scope. `terms`:
 * nothing, and the answer is a 402.
 */
export type PublicAccess = { access: 'public' | 'terms' | 'payment' | 'recovery' | 'proof' }
export type AccountAccess = { access: 'account'; scope: Scope }

/** How calls of an operation are counted. */
export interface Counting {
  /** True: calls are not counted, because discovery must always answer 200. */
  unlimited?: true
  /** The budget of an account that a call is taken from; default `calls`. */
  budget?: Budget
}

/** A call that was counted. */
export interface CountedCall {
  /** Null without a valid API key. */
  caller: Caller | null
  /** The budget that the call was taken from, where there is a caller. */
  budget: Budget
  /** Why the key has no caller: it was not looked up, or its account is disabled. */
  refusal?: AppError
}

/** Counts one call of an operation. Throws AppError `rate_limited`. */
export async function countCall(
  operation: Counting & (PublicAccess | AccountAccess),
  { address, bearer }: { address: string; bearer?: string },
  api: Api,
): Promise<CountedCall> {
  const budget = operation.budget ?? 'calls'
  if (operation.unlimited) return { caller: null, budget }
  const shown = await identifyCaller(bearer, address, api)
  const requestId = operation.access === 'recovery' ? recoverableRequest(bearer, api) : null
  if (shown.caller) await api.limits.spendAccount(shown.caller, budget)
  else if (requestId !== null) await api.limits.spendRecovery(requestId)
  else await api.limits.spend(address)
  return { ...shown, budget }
}

/** Too many unknown keys from this address, or a disabled account. An operation that needs no account is still served. */
const KEY_REFUSALS: ReadonlySet<string> = new Set(['rate_limited', 'forbidden'])

/** Finds the account of a key. Where the key was not looked up or its account is disabled, `refusal` says so and `caller` is null. */
export async function identifyCaller(
  key: string | undefined,
  address: string,
  api: Api,
): Promise<{ caller: Caller | null; refusal?: AppError }> {
  if (key === undefined) return { caller: null }
  try {
    return { caller: await authenticate(api, key, address) }
  } catch (error) {
    if (error instanceof AppError && KEY_REFUSALS.has(error.code)) return { caller: null, refusal: error }
    throw error
  }
}

/** The request that a recovery token is for; null for any other text. Checks the HMAC and makes no query. */
export function recoverableRequest(token: string | undefined, { secrets }: Pick<Api, 'secrets'>): string | null {
  const id = token === undefined ? null : requestNamedBy(token)
  return id !== null && token !== undefined && isRecoveryToken(secrets.recovery, id, token) ? id : null
}

/**
 * Checks that a counted call may use this operation. A call that was taken from another budget than the operation's own is
 * taken from that as well. Throws AppError `unauthenticated`, `forbidden`, `rate_limited`. Returns the caller for an
 * operation of accounts, null for every other.
 */
export async function authorize(
  operation: Counting & (PublicAccess | AccountAccess),
  counted: CountedCall,
  api: Pick<Api, 'limits'>,
): Promise<Caller | null> {
  if (operation.access !== 'account') return null
  const { caller, refusal } = counted
  if (!caller) throw refusal ?? unauthenticated()
  requireScope(caller, operation.scope)
  const budget = operation.budget ?? 'calls'
  if (budget !== counted.budget) await api.limits.spendAccount(caller, budget)
  return caller
}
