// Detects from the outcome of calls whether Postgres has space to store anything: a database with a full disk answers and
// refuses writes. Reads still succeed, so a successful call proves nothing; a period without such an error does. No time-out shows it,
// because the refusal comes at once.
import { isOutOfRoom } from '../errors.ts'

/** Every process writes its presence more often than this. */
const QUIET_MS = 15_000

export type RoomChange = { away: true; reason: unknown } | { away: false }

export interface RoomWatch {
  /** A call failed. */
  failed(error: unknown): void
  /** A call succeeded. */
  worked(): void
}

/**
 * @param onChange called at each error which says that there is no space, and once when there is space again
 * @param now milliseconds of a monotonic clock
 */
export function openRoomWatch(
  onChange: (change: RoomChange) => void,
  now: () => number = () => performance.now(),
): RoomWatch {
  let lackedAt: number | null = null
  return {
    failed(error) {
      if (!isOutOfRoom(error)) return
      lackedAt = now()
      onChange({ away: true, reason: error })
    },
    worked() {
      if (lackedAt === null || now() - lackedAt < QUIET_MS) return
      lackedAt = null
      onChange({ away: false })
    },
  }
}
