// Counts messages against accounts, requests and addresses. The headers come first and may hold an API key. Without one, a
// key or a recovery token may still be in the message, so the message has to be read before its caller is known.
import { type CountedCall, identifyCaller, recoverableRequest } from '../access.ts'
import type { Api } from '../context.ts'
import type { AppError } from '../errors.ts'
import { isRecord } from './rpc.ts'
import { META } from './verification.ts'

/** A message of which only the headers are read. */
export interface Arrival {
  address: string
  /** Present if the headers hold a valid key: the call is counted. */
  counted?: CountedCall
  /** The error for a message without a key or a token, because its address has no call left. */
  refusal: AppError | null
  /** Why the key in the headers was not looked up. */
  keyRefusal?: AppError
}

/**
 * Counts a message against the account whose key came in Authorization, else against its address. An address that is far
 * over its limit is refused here, and the message is not read. Throws AppError `rate_limited`.
 */
export async function countHeaders(
  { address, bearer }: { address: string; bearer?: string },
  api: Api,
): Promise<Arrival> {
  const { caller, refusal: keyRefusal } = await identifyCaller(bearer, address, api)
  if (caller) {
    await api.limits.spendAccount(caller, 'calls')
    return { address, counted: { caller, budget: 'calls' }, refusal: null }
  }
  const { refusal, flooding } = await api.limits.count(address)
  if (refusal && flooding) throw refusal
  return { address, refusal, ...(keyRefusal && { keyRefusal }) }
}

/**
 * Counts a message against the account whose key it holds, or the request whose recovery token it holds; the count against
 * its address is then undone. Throws AppError `rate_limited`.
 */
export async function countMessage(arrival: Arrival | undefined, message: unknown, api: Api): Promise<CountedCall> {
  if (!arrival) throw new Error('the headers of a message were not counted')
  if (arrival.counted) return arrival.counted
  const { key, token } = secretsIn(message)
  const { caller, refusal = arrival.keyRefusal } = await identifyCaller(key, arrival.address, api)
  const requestId = caller ? null : recoverableRequest(token, api)
  if (!caller && requestId === null) {
    if (arrival.refusal) throw arrival.refusal
    return { caller: null, budget: 'calls', ...(refusal && { refusal }) }
  }
  arrival.refusal = null
  await api.limits.giveBack(arrival.address)
  if (caller) await api.limits.spendAccount(caller, 'calls')
  else if (requestId !== null) await api.limits.spendRecovery(requestId)
  return { caller, budget: 'calls' }
}

/** The API key and the recovery token of a message, where it has them. */
function secretsIn(message: unknown): { key?: string; token?: string } {
  const { method, params } = membersOf(message)
  const { arguments: args, _meta, taskId } = membersOf(params)
  const key = method === 'tools/call' ? membersOf(args).service_key : undefined
  const token = method === 'tools/call' ? membersOf(_meta)[META.token] : taskId
  return { ...(typeof key === 'string' && { key }), ...(typeof token === 'string' && { token }) }
}

function membersOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}
