// The calls of buyers and accounts: through any web process, repeated after every temporary failure, until there is a final
// answer.
import { setTimeout as pause } from 'node:timers/promises'
import { Countersign, CountersignError, type CountersignOptions } from '../../client/client.ts'
import type { Random } from '../eval/random.ts'

export interface Errand<T> {
  /** What the service acknowledged; undefined if it refused, or if the time was over. */
  value: T | undefined
  /** The code of its refusal, or of the last error. */
  code: string | undefined
  /** The final answer was a refusal that a repeat will not change. */
  isRefused: boolean
  /** Calls whose effect is not known. */
  unknown: number
  seconds: number
}

export interface Clients {
  any(): Countersign
}

/** A client for each web, so that a call may go to any of them. */
export function openClients(
  origins: string[],
  random: Random,
  options: Omit<CountersignOptions, 'baseUrl'> = {},
): Clients {
  const clients = origins.map((baseUrl) => new Countersign({ baseUrl, ...options }))
  return { any: () => clients[random(clients.length)]! }
}

/** The time at which the callers must have finished; at first there is none. */
export interface Closing {
  /** The callers begin no new call. */
  over: AbortSignal
  /** By performance.now(). */
  lastOrders: number
}

const PAUSE_MS = 300

/**
 * @param call gets a client; what it throws decides whether it is called again
 * @param isEnough whether an error with this code is a final answer for this caller
 */
export async function insist<T>(
  clients: Clients,
  closing: Closing,
  call: (client: Countersign) => Promise<T>,
  isEnough: (code: string) => boolean = () => false,
): Promise<Errand<T>> {
  const began = performance.now()
  const errand: Errand<T> = { value: undefined, code: undefined, isRefused: false, unknown: 0, seconds: 0 }
  const end = () => Object.assign(errand, { seconds: (performance.now() - began) / 1000 })
  for (;;) {
    try {
      errand.value = await call(clients.any())
      return end()
    } catch (error) {
      if (!(error instanceof CountersignError)) throw error
      errand.code = error.code
      errand.isRefused = isEnough(error.code) || (!error.retryable && !UNSURE.has(error.code))
      if (errand.isRefused) return end()
      // A refusal with a status below 500 had no effect.
      if (error.status === null || error.status >= 500) errand.unknown++
      if (performance.now() > closing.lastOrders) return end()
      await pause(PAUSE_MS)
    }
  }
}

/** Not retryable by themselves, but not final either. */
const UNSURE: ReadonlySet<string> = new Set(['unexpected_response'])
