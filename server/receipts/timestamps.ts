// Reads the stored replies of time-stamp authorities for callers.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'

const stored = z.object({ tree_size: z.number(), note: z.string(), reply: z.instanceof(Buffer) })
export type StoredTimestamp = z.output<typeof stored>

const newest = stored.extend({ authority: z.string(), generated_at: z.date() })
export type NewestTimestamp = z.output<typeof newest>

/** Replies of one answer. */
export const TIMESTAMP_PAGE = 100

/** The newest reply about the largest tree, or null. */
export function findNewestTimestamp(db: Database): Promise<NewestTimestamp | null> {
  return db.maybeOne(sql.prepared('find_newest_timestamp', newest)`
    select tree_size, note, reply, authority, generated_at from timestamps order by tree_size desc, generated_at desc limit 1`)
}

/** The kept replies about trees of at least this size, smallest first; at most TIMESTAMP_PAGE. */
export function findTimestamps(db: Database, from: number): Promise<readonly StoredTimestamp[]> {
  return db.any(sql.prepared('find_timestamps', stored)`
    select tree_size, note, reply from timestamps where tree_size >= ${from}
    order by tree_size, generated_at limit ${TIMESTAMP_PAGE}`)
}

/** The kept replies about the smallest such tree that has this receipt; empty where there is none. */
export function findTimestampsOver(db: Database, serial: number): Promise<readonly StoredTimestamp[]> {
  return db.any(sql.prepared('find_timestamps_over', stored)`
    select tree_size, note, reply from timestamps
    where tree_size = (select min(tree_size) from timestamps where tree_size >= ${serial})
    order by generated_at limit ${MOST_OF_TREE}`)
}

/** One reply for each authority; no operator asks so many. */
const MOST_OF_TREE = 50
