// The identity of a worker process. The ids of what it holds (attempts, visits to origins, turns to fetch a page) begin
// with its prefix, so a worker that rescues it can find them.
import { randomUUID } from 'node:crypto'

/** Characters of a UUID that name the worker: the first 60 random bits. */
const LENGTH = 18

export interface WorkerId {
  /** The common beginning of its ids. */
  readonly prefix: string
  /** A new UUID, which begins with the prefix. */
  make(): string
}

export function makeWorkerId(): WorkerId {
  const prefix = randomUUID().slice(0, LENGTH)
  return { prefix, make: () => prefix + randomUUID().slice(LENGTH) }
}

/** The lowest and the highest id of a worker. */
export function idsOf(prefix: string): { from: string; to: string } {
  return { from: `${prefix}-0000-000000000000`, to: `${prefix}-ffff-ffffffffffff` }
}
