// One request as a timeline: when it was asked for, each state it came to and the process that brought it there, and how long
// each took.
import type { RequestDetail } from './requests.ts'

export interface Moment {
  at: Date
  state: string
  /** The process, as HOST:PID; null where it is not known. */
  by: string | null
  /** Seconds since the moment before; null for the first. */
  seconds: number | null
}

/** Oldest first. The last moment is the present state, also of a request that has no history. */
export function timelineOf({ created_at, changed_at, state, history }: RequestDetail): Moment[] {
  const moments = [
    { at: created_at, state: 'quoted', by: null },
    ...(history ?? []).map(({ at, ...rest }) => ({ at: new Date(at), ...rest })),
  ]
  if (moments.at(-1)?.state !== state) moments.push({ at: changed_at, state, by: null })
  return moments.map((moment, n) => {
    const before = moments[n - 1]
    return { ...moment, seconds: before ? Math.max(0, (moment.at.getTime() - before.at.getTime()) / 1000) : null }
  })
}
