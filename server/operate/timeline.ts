// One request as a timeline: when it was made, each state that it entered, the process that moved it, and how long each
// state took.
import type { State } from '../verification/request.ts'
import type { RequestDetail } from './requests.ts'

export interface Moment {
  at: Date
  state: State
  /** The process, as HOST:PID; null where it is not known. */
  by: string | null
  /** Seconds since the moment before; null for the first. */
  seconds: number | null
}

/** Oldest first. The last moment is the current state, also for a request without a history. */
export function timelineOf({ created_at, changed_at, state, history }: RequestDetail): Moment[] {
  const moments: Omit<Moment, 'seconds'>[] = [
    { at: created_at, state: 'quoted', by: null },
    ...(history ?? []).map(({ at, ...rest }) => ({ at: new Date(at), ...rest })),
  ]
  if (moments.at(-1)?.state !== state) moments.push({ at: changed_at, state, by: null })
  return moments.map((moment, n) => {
    const before = moments[n - 1]
    return { ...moment, seconds: before ? Math.max(0, (moment.at.getTime() - before.at.getTime()) / 1000) : null }
  })
}
