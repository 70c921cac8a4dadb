// Has what callers of /mcp/check send read in a thread, within limits that are fair among their addresses.
import { addressKey, networkKey } from '../accounts/address-key.ts'
import { ADDRESS_LIMITS } from '../accounts/tiers.ts'
import { AppError } from '../errors.ts'
import type { Call } from '../operation.ts'
import { isExhausted, ThreadError } from '../threads/pool.ts'
import type { Read } from './check-thread.ts'

const THREAD = new URL('./check-thread.ts', import.meta.url)

/** Milliseconds in a thread, and of waiting for one. */
export const READING_LIMITS = { runningMs: 10_000, waitingMs: 20_000 } as const

/** Readings under way, by address and by network. */
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
  const [address, network] = [addressKey(credentials.address), `network ${networkKey(credentials.address)}`]
  const { readings_in_flight, readings_in_flight_per_network } = ADDRESS_LIMITS
  requireRoom(address, readings_in_flight, 'readings_in_flight: an address')
  requireRoom(network, readings_in_flight_per_network, 'readings_in_flight_per_network: a network')
  for (const key of [address, network]) underWay.set(key, (underWay.get(key) ?? 0) + 1)
  try {
    // No page is read, so the network stands in the place of a domain.
    const lane = { payer: address, domain: network, isFree: false }
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
    for (const key of [address, network]) {
      const left = (underWay.get(key) ?? 1) - 1
      if (left > 0) underWay.set(key, left)
      else underWay.delete(key)
    }
  }
}

function requireRoom(key: string, most: number, whose: string) {
  if ((underWay.get(key) ?? 0) >= most) throw soon('rate_limited', `${whose} has ${most}.`)
}

const soon = (code: 'rate_limited' | 'capacity_exceeded', message: string, cause?: unknown) =>
  new AppError(code, message, { headers: { 'retry-after': '2' }, cause })
