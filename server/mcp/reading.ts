// Has what callers of /mcp/check send read in a thread, within limits that are fair among their addresses.
import { addressKey } from '../accounts/address-key.ts'
import { ADDRESS_LIMITS } from '../accounts/tiers.ts'
import { AppError } from '../errors.ts'
import type { Call } from '../operation.ts'
import { isExhausted, ThreadError } from '../threads/pool.ts'
import type { Read } from './check-thread.ts'

const THREAD = new URL('./check-thread.ts', import.meta.url)

/** Milliseconds in a thread, and of waiting for one. */
export const READING_LIMITS = { runningMs: 10_000, waitingMs: 20_000 } as const

/** Readings under way, by address. */
const underWay = new Map<string, number>()

/**
 * What the function `name` of check-thread.ts reads from an argument. Throws AppError: `invalid_request` for a text that cannot be
 * read, or takes too long; `rate_limited` and `capacity_exceeded`.
 * @param member the argument of the tool, for messages
 */
export async function readInThread<T>(
  name: 'readReport' | 'checkResult',
  argument: unknown,
  member: string,
  { api, credentials, options }: Pick<Call, 'api' | 'credentials' | 'options'>,
): Promise<T> {
  const address = addressKey(credentials.address)
  const before = underWay.get(address) ?? 0
  const most = ADDRESS_LIMITS.readings_in_flight
  if (before >= most) throw soon('rate_limited', `readings_in_flight: an address has ${most}.`)
  underWay.set(address, before + 1)
  try {
    // No page is read. One domain for all would make all lanes equal.
    const lane = { payer: address, domain: address, isFree: false }
    const limits = { ...READING_LIMITS, lane, signal: options.signal }
    const read = await api.readers.run<Read<T>>(THREAD, name, argument, limits)
    if ('value' in read) return read.value
    throw new AppError('invalid_request', `${member}: ${read.fault}`)
  } catch (error) {
    if (isExhausted(error))
      throw new AppError('invalid_request', `${member}: takes too long to read.`, { cause: error })
    if (!(error instanceof ThreadError)) throw error
    if (options.signal.aborted) throw new AppError('cancelled', 'The caller disconnected.', { cause: error })
    throw soon('capacity_exceeded', 'More is waiting to be read than can be taken on.', error)
  } finally {
    const left = (underWay.get(address) ?? 1) - 1
    if (left > 0) underWay.set(address, left)
    else underWay.delete(address)
  }
}

const soon = (code: 'rate_limited' | 'capacity_exceeded', message: string, cause?: unknown) =>
  new AppError(code, message, { headers: { 'retry-after': '2' }, cause })
