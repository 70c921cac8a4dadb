// Observations shared between claims. Several claims on one page at the same time fetch it once, also in different
// workers; later claims use an observation that is recent enough. An entry is trusted only with a valid MAC of this service:
// entries that were truncated, exchanged or written by another program are ignored, and the page is fetched.
import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type Observation, observation as observationShape } from '../../server/interface/observation.ts'
import type { Logger } from '../../server/telemetry.ts'
import { type CaptureDigests, captureDigests } from './capture.ts'
import { OBSERVATION_PROCEDURE } from './procedure.ts'

/** Stores of entries: observation-store-postgres.ts, observation-store-redis.ts. Keys are SHA-256 in hex. */
export interface ObservationStore {
  /** Stores for at least `seconds` and ends the fetcher's turn. */
  put(key: string, value: Buffer, fetcher: string, seconds: number): Promise<void>
  /** Finds an entry that is fresh, or else takes the turn to fetch. */
  begin(key: string, fetcher: string, terms: TurnTerms): Promise<Begun>
  /** Gives the turn up without an entry. */
  end(key: string, fetcher: string): Promise<void>
  /** Ends the turns of a worker that died. */
  release(fetchers: IdRange): Promise<void>
}

export interface TurnTerms {
  /** The turn lasts so long at most. */
  seconds: number
  /** Greatest age of an entry that is returned instead of a turn; 0: always ask for the turn. */
  freshSeconds: number
}

/**
 * With `isTurn`, `value` is the current entry: another fetcher may have stored one, and ended its turn, just before.
 * Without `isTurn` it is a fresh entry, or null while another fetcher has the turn. The caller checks age and MAC of every
 * value.
 */
export interface Begun {
  isTurn: boolean
  value: Buffer | null
}

/** Ids of one worker: all from `from` to `to`. */
export interface IdRange {
  from: string
  to: string
}

/** An observation, and what was kept of its page for evidence. */
export type Observed = Observation & { capture?: CaptureDigests | undefined }

/** The same taken apart; `hit`: it was made for another before. */
export interface Found {
  observation: Observation
  capture: CaptureDigests | undefined
  hit: boolean
}

export interface ObservationCache {
  /**
   * A cached observation at most `maxAgeSeconds` old, or a new one by `fetch`. Throws what `fetch` throws; if a store
   * fails, pages are only not shared. With 0 the page is always fetched.
   */
  observe(url: string, maxAgeSeconds: number, fetch: () => Promise<Observed>, signal: AbortSignal): Promise<Found>
  /** Ends the turns of a worker that died. Never rejects. */
  release(fetchers: IdRange): Promise<void>
}

/** The oldest any caller may accept. */
export const KEEP_SECONDS = 300
/**
 * A killed fetcher delays others for at most so long. After this time a second fetch may begin while a slow one still
 * runs.
 */
const TURN_SECONDS = 15
const POLL_MS = 150
/** After this time a claim fetches the page itself, because it must not wait for one failing fetcher after another. */
const MAX_WAIT_MS = 10_000
const MAC_BYTES = 32

/** @param secret seals the entries; @param now milliseconds since the epoch */
export function buildObservationCache(
  store: ObservationStore,
  options: { secret: Buffer; log: Logger; now?: () => number; makeId?: () => string },
): ObservationCache {
  const now = options.now ?? Date.now
  const makeId = options.makeId ?? randomUUID
  const tolerant = <T>(work: Promise<T>, otherwise: T) =>
    work.catch((error) => {
      options.log.warn({ event: 'observation_store_failed', err: error })
      return otherwise
    })

  function openIfYoung(key: string, value: Buffer | null, maxAgeSeconds: number): Observed | null {
    const observation = value && openEntry(options.secret, key, value)
    return observation && now() - Date.parse(observation.checked_at) <= maxAgeSeconds * 1000 ? observation : null
  }

  async function fetchInTurn(key: string, fetcher: string, fetch: () => Promise<Observed>) {
    try {
      const observation = await fetch()
      await tolerant(store.put(key, sealEntry(options.secret, key, observation), fetcher, KEEP_SECONDS), undefined)
      return observation
    } catch (error) {
      await tolerant(store.end(key, fetcher), undefined)
      throw error
    }
  }

  return {
    release: (fetchers) => tolerant(store.release(fetchers), undefined),
    async observe(url, maxAgeSeconds, fetch, signal) {
      if (maxAgeSeconds === 0) return found(await fetch(), false)
      const key = keyOf(url)
      const fetcher = makeId()
      const deadline = now() + MAX_WAIT_MS
      let freshSeconds = maxAgeSeconds
      while (true) {
        // A claim must be able to fetch even if the store fails.
        const begun = store.begin(key, fetcher, { seconds: TURN_SECONDS, freshSeconds })
        const { isTurn, value } = await tolerant(begun, { isTurn: true, value: null })
        const cached = openIfYoung(key, value, maxAgeSeconds)
        if (cached) {
          if (isTurn) await tolerant(store.end(key, fetcher), undefined)
          return found(cached, true)
        }
        if (isTurn || now() > deadline) return found(await fetchInTurn(key, fetcher, fetch), false)
        // The entry is too old by this clock, or has no valid MAC.
        if (value && freshSeconds > 0) freshSeconds = 0
        else await pause(POLL_MS, undefined, { signal })
      }
    },
  }
}

function found({ capture, ...observation }: Observed, hit: boolean): Found {
  return { observation, capture, hit }
}

/** Two URLs that differ in the fragment only are one page. */
function keyOf(url: string): string {
  const canonical = new URL(url)
  canonical.hash = ''
  return createHash('sha256').update(`${OBSERVATION_PROCEDURE}\n${canonical.href}`).digest('hex')
}

const entryShape = observationShape.extend({ capture: captureDigests.optional() })

/** MAC ‖ JSON. The key is part of what is sealed, so an entry cannot be served for another page. */
function sealEntry(secret: Buffer, key: string, observation: Observed): Buffer {
  const json = Buffer.from(JSON.stringify(observation))
  return Buffer.concat([macOf(secret, key, json), json])
}

function openEntry(secret: Buffer, key: string, entry: Buffer): Observed | null {
  const json = entry.subarray(MAC_BYTES)
  const mac = entry.subarray(0, MAC_BYTES)
  if (mac.length !== MAC_BYTES || !timingSafeEqual(mac, macOf(secret, key, json))) return null
  const parsed = entryShape.safeParse(JSON.parse(json.toString('utf8')))
  return parsed.success ? parsed.data : null
}

function macOf(secret: Buffer, key: string, json: Buffer): Buffer {
  return createHmac('sha256', secret).update(key).update(json).digest()
}
