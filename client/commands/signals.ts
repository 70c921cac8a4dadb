// What SIGINT and SIGTERM do to a command that buys: it ends within five seconds with exit status 130, and the same command goes on
// later.
import { note } from './output.ts'

/** The last one hears. */
const listeners: (() => void)[] = []
/** When a command that was asked to stop had ended what was under way; what is left of it is to say what it did. */
let stoppedAt: number | null = null

const hear = () => {
  if (stoppedAt !== null && performance.now() - stoppedAt < GRACE_MS) return
  const listen = listeners.at(-1) ?? endNow
  listen()
}

const endNow = () => process.exit(INTERRUPTED)

/** Calls `listen` at each signal, until it is disposed; then the one before it again. */
function listenForSignals(listen: () => void): Disposable {
  if (!process.listeners('SIGINT').includes(hear)) process.on('SIGINT', hear).on('SIGTERM', hear)
  listeners.push(listen)
  return {
    [Symbol.dispose]() {
      listeners.splice(listeners.indexOf(listen), 1)
      // A process that has no listener is ended by a signal at once, in the middle of what it says.
      if (listeners.length === 0 && stoppedAt === null) process.off('SIGINT', hear).off('SIGTERM', hear)
    },
  }
}

/** While nothing is under way that must be ended with care, a signal ends the process. */
export function endAtSignals(): Disposable {
  return listenForSignals(endNow)
}

/** After the first signal nothing new begins; a later one, or the end of some seconds, aborts what is under way. */
export function stopAtSignals(words: () => string): { finish: AbortSignal; abort: AbortSignal } & Disposable {
  const finish = new AbortController()
  const abort = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let begun = 0
  stoppedAt = null
  const listening = listenForSignals(() => {
    if (finish.signal.aborted) {
      if (performance.now() - begun > REPEAT_MS) abort.abort()
      return
    }
    note(`\n${words()}\n`)
    begun = performance.now()
    timer = setTimeout(() => abort.abort(), GRACE_MS)
    finish.abort()
  })
  return {
    finish: finish.signal,
    abort: abort.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      if (finish.signal.aborted) stoppedAt = performance.now()
      listening[Symbol.dispose]()
    },
  }
}

/**
 * Milliseconds in which a further signal repeats the first: a terminal signals each program of a group, and npm and npx send theirs to
 * their child once more.
 */
const REPEAT_MS = 1000
/** Less than the five seconds after which programs are killed by those that started them. */
const GRACE_MS = 3000
/** 128 and the number of SIGINT, as shells have it. */
export const INTERRUPTED = 130
