// Counts messages against accounts, requests and addresses. The headers come first and may hold an API key. Without one, a
// key or a recovery token may still be in the message, so the message has to be read before its caller is known.
import type { Api } from '../context.ts'
import { type Entry, identify, requestOf } from '../entrance.ts'
import type { AppError } from '../errors.ts'
import { META } from './answers.ts'

/** A message of which only the headers are known. */
export interface Arrival {
  address: string
  /** There when the headers hold a valid key: the call is counted. */
  entry?: Entry
  /** What it is to be answered unless the message shows a key or a token: its address has no call left. */
  refusal: AppError | null
  /** Why the key in the headers was not even looked for. */
  keyRefusal?: AppError
}

/**
 * Counts a message against the account whose key came in Authorization, else against its address. An address that is far
 * over its limit is refused here, and the message is not read. Throws AppError `rate_limited`.
 */
export async function arrive({ address, bearer }: { address: string; bearer?: string }, api: Api): Promise<Arrival> {
  const { caller, refusal: keyRefusal } = await identify(bearer, address, api)
  if (caller) {
    await api.limits.spendAccount(caller, 'calls')
    return { address, entry: { caller, budget: 'calls' }, refusal: null }
  }
  const { refusal, flooding } = await api.limits.count(address)
  if (refusal && flooding) throw refusal
  return { address, refusal, ...(keyRefusal && { keyRefusal }) }
}

/**
 * Counts a message against the account or the request that it shows the key or the token of, and gives its address back
 * what was counted before. Throws AppError `rate_limited`.
 */
export async function settle(arrival: Arrival | undefined, message: unknown, api: Api): Promise<Entry> {
  if (!arrival) throw new Error('a message did not come through the door')
  if (arrival.entry) return arrival.entry
  const { key, token } = shownIn(message)
  const { caller, refusal = arrival.keyRefusal } = await identify(key, arrival.address, api)
  const requestId = caller ? null : requestOf(token, api)
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

/** The key of an account and the recovery token, where a message has them; nothing else of it is looked at. */
function shownIn(message: unknown): { key?: string; token?: string } {
  const { method, params } = membersOf(message)
  const { arguments: args, _meta, taskId } = membersOf(params)
  const key = method === 'tools/call' ? membersOf(args).service_key : undefined
  const token = method === 'tools/call' ? membersOf(_meta)[META.token] : taskId
  return { ...(typeof key === 'string' && { key }), ...(typeof token === 'string' && { token }) }
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
