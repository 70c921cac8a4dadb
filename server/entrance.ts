// Counting and permission: what every protocol does first, before it reads a body. A call with a valid API key is counted
// against its account, a recovery with the right token against its request, and every other call against its address. So
// a flood of calls or wrong keys from one address does not lock out a caller there who has a valid key.
import { type Caller, recognise, requireScope, unauthenticated } from './accounts/api-keys.ts'
import type { Budget } from './accounts/rate-limit.ts'
import type { Api } from './context.ts'
import { AppError } from './errors.ts'
import type { Operation } from './operation.ts'
import { isRecoveryToken, requestNamedBy } from './verification/recovery-token.ts'

/** A call that was counted. */
export interface Entry {
  /** Null without a valid API key. */
  caller: Caller | null
  /** What the call was taken from, where there is a caller. */
  budget: Budget
  /** Why a key was not even looked for. */
  refusal?: AppError
}

/** Counts one call of an operation. Throws AppError `rate_limited`. */
export async function enter(
  operation: Pick<Operation, 'access' | 'budget' | 'unlimited'>,
  { address, bearer }: { address: string; bearer?: string },
  api: Api,
): Promise<Entry> {
  const budget = operation.budget ?? 'calls'
  if (operation.unlimited) return { caller: null, budget }
  const shown = await identify(bearer, address, api)
  const requestId = operation.access === 'recovery' ? requestOf(bearer, api) : null
  if (shown.caller) await api.limits.spendAccount(shown.caller, budget)
  else if (requestId !== null) await api.limits.spendRecovery(requestId)
  else await api.limits.spend(address)
  return { ...shown, budget }
}

/** Finds the account of a key. `refusal` says why a key was not even looked for; `caller` is then null. */
export async function identify(
  key: string | undefined,
  address: string,
  api: Api,
): Promise<{ caller: Caller | null; refusal?: AppError }> {
  if (key === undefined) return { caller: null }
  try {
    return { caller: await recognise(api, key, address) }
  } catch (error) {
    if (error instanceof AppError && error.code === 'rate_limited') return { caller: null, refusal: error }
    throw error
  }
}

/** The request that a token recovers; null for a token that is none of ours. Asks nothing but the HMAC. */
export function requestOf(token: string | undefined, { secrets }: Api): string | null {
  const id = token === undefined ? null : requestNamedBy(token)
  return id !== null && token !== undefined && isRecoveryToken(secrets.recovery, id, token) ? id : null
}

/**
 * Whether who entered may call this operation. A call that was counted as another kind than the operation's own is counted
 * as that as well. Throws AppError `unauthenticated`, `forbidden`, `rate_limited`. Answers the caller of an operation that
 * asks for an account, null for every other.
 */
export async function permit(operation: Operation, entry: Entry, api: Api): Promise<Caller | null> {
  if (operation.access !== 'account') return null
  const { caller, refusal } = entry
  if (!caller) throw refusal ?? unauthenticated()
  requireScope(caller, operation.scope)
  const budget = operation.budget ?? 'calls'
  if (budget !== entry.budget) await api.limits.spendAccount(caller, budget)
  return caller
}
