// Times of the database as RFC 3339 text in UTC. The unit is the precision of the text; later digits are cut off.
import { sql } from './pool.ts'

type Fragment = ReturnType<typeof sql.fragment>

/** @param time a timestamptz, like the `time` of the functions below */
export const utcSeconds = (time: Fragment) =>
  sql.fragment`to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`

export const utcMilliseconds = (time: Fragment) =>
  sql.fragment`to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** The precision of the column: the text can be compared with it again, and sorts by time. */
export const utcMicroseconds = (time: Fragment) =>
  sql.fragment`to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
