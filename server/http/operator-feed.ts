// Server-sent events of the operator's dashboard. An event says that something changed; the page then loads its content
// again. For all pages together, a process reads the status at most once in two seconds.
import { setTimeout as pause } from 'node:timers/promises'
import { singleFlight } from '../db/single-flight.ts'
import type { Status } from '../operate/status.ts'

const STEP_MS = 2000
/** Shorter than the time after which routers close a silent connection. */
const KEEP_ALIVE_MS = 15_000
/** Of one process. */
const MAX_LISTENERS = 32

export interface Feed {
  /** Null if too many pages listen already. Ends when the signal aborts. */
  listen(signal: AbortSignal): AsyncGenerator<string> | null
}

export function openFeed(readStatus: () => Promise<Status>): Feed {
  const sign = singleFlight(async () => signOf(await readStatus()), STEP_MS)
  let listeners = 0

  async function* listen(signal: AbortSignal): AsyncGenerator<string> {
    try {
      let known = await sign().catch(() => null)
      // At once, so that the browser knows that it is connected.
      yield 'retry: 3000\n\n'
      for (let silentMs = 0; !signal.aborted; ) {
        await pause(STEP_MS, undefined, { signal }).catch(() => {})
        if (signal.aborted) return
        // While the database is away, nothing new can be shown.
        const now = await sign().catch(() => known)
        silentMs += STEP_MS
        if (now !== known) yield 'event: changed\ndata: {}\n\n'
        else if (silentMs >= KEEP_ALIVE_MS) yield ': still here\n\n'
        else continue
        known = now
        silentMs = 0
      }
    } finally {
      listeners--
    }
  }

  return {
    listen(signal) {
      if (listeners >= MAX_LISTENERS) return null
      listeners++
      return listen(signal)
    },
  }
}

/**
 * The part of the status whose change causes an event. Elapsed seconds, and calls made by reading the page, do not
 * count.
 */
function signOf({
  at: _,
  processes,
  watchdogs,
  prune_lag_seconds: __,
  recent: ___,
  warnings,
  ...rest
}: Status): string {
  const steady = processes.map(({ silent_seconds: _, ...one }) => one)
  const raised = warnings.map(({ name }) => name)
  return JSON.stringify({ ...rest, processes: steady, watchdogs: watchdogs.by_state, warnings: raised })
}
