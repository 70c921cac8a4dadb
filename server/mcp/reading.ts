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
  const { threads, ofAddress, ofNetwork } = api.parsing
  const [address, network] = [addressKey(credentials.address), networkKey(credentials.address)]
  using place = ofAddress.take(address)
  if (!place) throw soon('rate_limited', `readings_in_flight: an address has ${ADDRESS_LIMITS.readings_in_flight}.`)
  using shared = ofNetwork.take(network)
  const most = ADDRESS_LIMITS.readings_in_flight_per_network
  if (!shared) throw soon('rate_limited', `readings_in_flight_per_network: a network has ${most}.`)
  try {
    // No page is read, so the network stands in the place of a domain.
    const lane = { payer: address, domain: network, isFree: false }
    const limits = { ...READING_LIMITS, lane, signal: options.signal }
    const read = await threads.run<Read<T>>(THREAD, name, argument, limits)
    if ('value' in read) return read.value
    throw new AppError('invalid_request', `${member}: ${read.fault}`)
  } catch (error) {
    if (isExhausted(error))
      throw new AppError('invalid_request', `${member}: takes too long to read.`, { cause: error })
    if (!(error instanceof ThreadError)) throw error
    if (options.signal.aborted) throw new AppError('cancelled', 'The caller disconnected.', { cause: error })
    throw soon('capacity_exceeded', 'More is waiting to be read than can be taken on.', error)
  }
}

const soon = (code: 'rate_limited' | 'capacity_exceeded', message: string, cause?: unknown) =>
  new AppError(code, message, { headers: { 'retry-after': '2' }, cause })
