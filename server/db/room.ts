// Whether Postgres has what it needs to store anything, as told by the calls themselves: a database whose disk is full answers, and
// takes no writes. Reads go on, so a call that succeeds proves nothing by itself; a time without such an error does.
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
 * @param onChange called at each error that says that there is no room, and once when there is room again
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
