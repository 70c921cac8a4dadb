// Bounds the bytes of page bodies that one worker holds for all of its fetches. A slow fetch holds few bytes and may
// wait long. A fetch that gets no memory stops reading, and TCP slows its sender down. A source that sends much and
// then stalls would keep its memory from the others, so the largest stalled fetch is aborted.
import { AppError } from '../../server/errors.ts'

/** The memory of one fetch. Disposing returns all of it. */
export interface HeldMemory extends Disposable {
  /** Waits until so many bytes more may be held. Rejects with the reason of `signal`. */
  take(bytes: number): Promise<void>
  /** Aborts with the signal that it was opened with, or when the fetch is ended to free memory for others. */
  readonly signal: AbortSignal
}

export interface BodyMemory {
  open(signal: AbortSignal): HeldMemory
  /** Bytes held by all fetches. */
  readonly held: number
}

/**
 * A fetch of this age in milliseconds may be ended when memory is short. A page of the largest size normally takes a
 * tenth of it.
 */
const PROTECTED_MS = 5000
const CHECK_MS = 500

interface Holder {
  bytes: number
  since: number
  end: AbortController
}

interface Waiting {
  holder: Holder
  bytes: number
  go: () => void
}

/**
 * The oldest holder always gets memory, so that half-finished fetches cannot all wait for each other: the bound may be
 * exceeded by one body.
 * @param maxBytes of all bodies together; `now` in milliseconds
 */
export function buildBodyMemory(maxBytes: number, now: () => number = Date.now): BodyMemory {
  const holders = new Set<Holder>()
  const waiting: Waiting[] = []
  let held = 0
  let timer: NodeJS.Timeout | undefined

  const grant = (holder: Holder, bytes: number) => {
    held += bytes
    holder.bytes += bytes
    holders.add(holder)
  }
  const mayTake = (holder: Holder, bytes: number) => held + bytes <= maxBytes || [...holders][0] === holder
  const serve = () => {
    for (let index = 0; index < waiting.length; ) {
      const next = waiting[index] as Waiting
      if (mayTake(next.holder, next.bytes)) {
        waiting.splice(index, 1)
        grant(next.holder, next.bytes)
        next.go()
      } else index++
    }
    if (waiting.length === 0) clearInterval(timer)
  }
  const endOne = () => {
    const blocked = new Set(waiting.map(({ holder }) => holder))
    const stalled = [...holders].filter((one) => !blocked.has(one) && now() - one.since > PROTECTED_MS)
    const [largest] = stalled.sort((a, b) => b.bytes - a.bytes)
    largest?.end.abort(new AppError('source_timeout', 'The source sends too slowly for the size of its page.'))
  }

  return {
    open(given) {
      const holder: Holder = { bytes: 0, since: now(), end: new AbortController() }
      const signal = AbortSignal.any([given, holder.end.signal])
      return {
        signal,
        async take(bytes) {
          signal.throwIfAborted()
          if (waiting.length === 0 && mayTake(holder, bytes)) return grant(holder, bytes)
          await new Promise<void>((resolve, reject) => {
            const leave = () => {
              const index = waiting.indexOf(entry)
              if (index >= 0) waiting.splice(index, 1)
              reject(signal.reason)
            }
            const go = () => {
              signal.removeEventListener('abort', leave)
              resolve()
            }
            const entry: Waiting = { holder, bytes, go }
            signal.addEventListener('abort', leave, { once: true })
            if (waiting.push(entry) === 1) timer = setInterval(endOne, CHECK_MS).unref()
            endOne()
            serve()
          })
        },
        [Symbol.dispose]() {
          held -= holder.bytes
          holder.bytes = 0
          holders.delete(holder)
          serve()
        },
      }
    },
    get held() {
      return held
    },
  }
}
