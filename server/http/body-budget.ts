// One budget of a process for the octets of all request bodies that are not whole yet. Callers with many addresses keep within every
// limit of an address, so only a sum over all of them bounds the memory that bodies take.
import type { Logger } from '../telemetry.ts'

/** A third of what a process may use beside its heap, its cached results and its code. */
const MAX_UNFINISHED_BYTES = 33_554_432
/**
 * A body that holds no more is never given up: nearly every purchase is smaller. As many as there may be connections fit into the budget,
 * so there is always a larger one where it is exceeded.
 */
const SMALL_BYTES = 8192
const LOG_EVERY_MS = 60_000

/** A body that is being received. */
export interface Unfinished {
  /** Counts more octets of it. */
  grow(octets: number): void
  /** It is whole, or given up. */
  end(): void
}

export interface BodyBudget {
  /** @param giveUp is called at most once, also within `grow`; the body is then counted no more */
  begin(holder: string, giveUp: () => void): Unfinished
}

interface Body {
  readonly holder: string
  readonly giveUp: () => void
  octets: number
}

/**
 * Beyond the budget a large body is given up: of the caller whose large bodies are most octets the largest, and of equal ones the
 * newest.
 */
export function openBodyBudget(
  log: Pick<Logger, 'warn'>,
  limits: { maxUnfinishedBytes?: number; now?: () => number } = {},
): BodyBudget {
  const { maxUnfinishedBytes = MAX_UNFINISHED_BYTES, now = () => performance.now() } = limits
  /** From the oldest to the newest. */
  const bodies = new Set<Body>()
  let octets = 0
  let givenUp = 0
  let loggedAt = Number.NEGATIVE_INFINITY

  function forget(body: Body) {
    if (bodies.delete(body)) octets -= body.octets
  }

  function makeRoom() {
    const body = mostDispensable(bodies)
    if (!body) return false
    forget(body)
    givenUp++
    body.giveUp()
    return true
  }

  function report() {
    if (givenUp === 0 || now() - loggedAt < LOG_EVERY_MS) return
    loggedAt = now()
    log.warn({ event: 'bodies_full', bytes: maxUnfinishedBytes, given_up: givenUp })
    givenUp = 0
  }

  return {
    begin(holder, giveUp) {
      const body: Body = { holder, giveUp, octets: 0 }
      bodies.add(body)
      return {
        grow(more) {
          if (!bodies.has(body)) return
          body.octets += more
          octets += more
          while (octets > maxUnfinishedBytes && makeRoom());
          report()
        },
        end: () => forget(body),
      }
    },
  }
}

/** Undefined where none is large. */
function mostDispensable(bodies: ReadonlySet<Body>): Body | undefined {
  const large = [...bodies].filter(({ octets }) => octets > SMALL_BYTES)
  const sums = new Map<string, number>()
  for (const { holder, octets } of large) sums.set(holder, (sums.get(holder) ?? 0) + octets)
  const most = Math.max(...sums.values())
  return large
    .filter(({ holder }) => sums.get(holder) === most)
    .reduce<Body | undefined>((found, body) => (found && found.octets > body.octets ? found : body), undefined)
}
