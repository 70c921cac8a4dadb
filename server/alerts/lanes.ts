// Lanes: due alerts wait for the delivery loop in the lane of their receiver, by how its last attempt went.
import { sql } from '../db/pool.ts'

/**
 * `proved`: the last attempt was delivered in time. `slow`: the last attempt failed or took long. `untried`: no attempt was
 * made at this host.
 */
export const LANES = ['proved', 'untried', 'slow'] as const
export type Lane = (typeof LANES)[number]

/** The lane of a row `w` of webhooks. */
export const laneOf = sql.fragment`case when w.slow then 'slow' when w.tried then 'proved' else 'untried' end`
