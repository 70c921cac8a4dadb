// Decides when a model's server gets no questions. What a stranger's text causes (a time-out, an error, an answer that cannot be
// read) counts against that text; whether the server is at fault is decided by a fixed question of ours. So no page can stop the
// sale, and the questions of a text that timed out take no place from others.

/** The provider cannot do the work now. The caller postpones it and retries after `retryAfterSeconds`. */
export class AssessorBusyError extends Error {
  override name = 'AssessorBusyError'
  readonly retryAfterSeconds: number
  constructor(reason: string, retryAfterSeconds: number, options?: ErrorOptions) {
    super(reason, options)
    this.retryAfterSeconds = Math.max(1, Math.ceil(retryAfterSeconds))
  }
}

/** Permission for one question about a text, slow if its last one timed out. The caller reports its outcome by one of these. */
export interface Leave {
  isSlow: boolean
  succeeded(): void
  failed(how: { timedOut?: boolean }): void
}

export interface Circuit {
  /** Resolves when our question was answered for the first time, well or not. */
  proved(): Promise<void>
  /**
   * Throws AssessorBusyError while the server gets no questions, or none about this text: one that timed out gets no further
   * turn before another text was answered, ours included, which is asked ever more rarely.
   * @param text names the text of a page
   */
  enter(text: string): Leave
  /** Until when it is open, in milliseconds since the epoch; null when questions go through. */
  readonly opensAt: number | null
  /** What is wrong with the server, in words for its operator. */
  readonly problem: string | null
}

export interface CircuitOptions {
  /** Asks our question. Answers what is wrong, or null. Never rejects. */
  ask(): Promise<Trouble | null>
  /** Milliseconds since the epoch. */
  now?: () => number
  schedule?: (work: () => void, ms: number) => void
}

export interface Trouble {
  /** In words for the operator, without a secret or a stranger's text. */
  problem: string
  /** The provider's own Retry-After, in milliseconds from now. */
  retryAfterMs?: number
}

/** Asks our question at once, and again after failures of strangers' questions. */
export function buildCircuit({ ask, now = Date.now, schedule = later }: CircuitOptions): Circuit {
  const held = new Map<string, Held>()
  let trouble: Trouble | null = null
  let openUntil = 0
  let openings = 0
  let isProved = false
  let answeredAt = Number.NEGATIVE_INFINITY
  let askedAt = Number.NEGATIVE_INFINITY
  let asking: Promise<void> | null = null
  let isDue = false

  const probe = () => {
    asking ??= run().finally(() => {
      asking = null
    })
    return asking
  }
  const run = async () => {
    askedAt = now()
    isDue = false
    trouble = await ask()
    isProved = true
    if (!trouble) {
      openings = openUntil = 0
      answeredAt = now()
      return
    }
    const ms = Math.min(Math.max(trouble.retryAfterMs ?? 0, FIRST_MS * 2 ** Math.min(openings++, 10)), LONGEST_MS)
    openUntil = now() + ms
    schedule(() => void probe(), ms)
  }
  const isHeld = (text: string) => {
    const one = held.get(text)
    return one !== undefined && !one.isFree && !(now() >= one.until && answeredAt > one.at) ? one : null
  }
  const proving = probe()

  return {
    proved: () => proving,
    enter(text) {
      if (trouble)
        throw new AssessorBusyError(
          `no question now: ${trouble.problem}`,
          Math.max(RETRY_SECONDS, (openUntil - now()) / 1000),
        )
      const one = isHeld(text)
      if (one) throw new AssessorBusyError('the last question about this text timed out', (one.until - now()) / 1000)
      return {
        isSlow: held.has(text),
        succeeded() {
          held.delete(text)
          for (const other of held.values()) other.isFree = true
        },
        failed({ timedOut = false }) {
          if (timedOut) {
            const times = (held.get(text)?.times ?? 0) + 1
            const ms = Math.min(FIRST_MS * 2 ** (times - 1), LONGEST_MS)
            const one: Held = { times, at: now(), until: now() + ms, isFree: false }
            held.delete(text)
            held.set(text, one)
            for (const oldest of held.keys()) if (held.size > MOST_HELD) held.delete(oldest)
            schedule(() => isHeld(text) === one && void probe(), ms)
          }
          const waitMs = timedOut ? 0 : LEAST_MS - (now() - askedAt)
          if (trouble || isDue) return
          if (waitMs <= 0) return void probe()
          isDue = true
          schedule(() => void probe(), waitMs)
        },
      }
    },
    get opensAt() {
      if (!isProved) return now() + 1000 * RETRY_SECONDS
      return trouble ? Math.max(openUntil, now() + 1000 * RETRY_SECONDS) : null
    },
    get problem() {
      return isProved ? (trouble?.problem ?? null) : 'it has not answered its first question yet'
    },
  }
}

/** A text whose question timed out. */
interface Held {
  times: number
  at: number
  until: number
  /** Another text was answered since. */
  isFree: boolean
}

function later(work: () => void, ms: number) {
  setTimeout(work, ms).unref()
}

const FIRST_MS = 15_000
const LONGEST_MS = 300_000
/** Between two of our questions, so that failures of strangers' questions do not cost us one each. */
const LEAST_MS = 1000
const RETRY_SECONDS = 2
const MOST_HELD = 1000
