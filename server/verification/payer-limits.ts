// The standing of payers: how much each may have in flight. It grows with what was settled and shrinks with work that ended
// uncharged. The statements that end a request write it, so it says what the ledger says, whatever crashes.
import { PUBLIC_LIMITS } from '../accounts/tiers.ts'
import { sql } from '../db/pool.ts'

const { first_in_flight_per_payer, most_in_flight_per_payer: MOST, least_in_flight_per_payer: LEAST } = PUBLIC_LIMITS

type Fragment = ReturnType<typeof sql.fragment>

/** The payer of a row of `verification_requests`. */
export const payerOf = sql.fragment`payment #>> '{identity,payer}'`

/** Where no limit is in force, standing is kept all the same, for the day on which one is. */
const firstOf = (maxInFlightPerPayer: number) => maxInFlightPerPayer || first_in_flight_per_payer

/**
 * For a `with`: every row of `settled` adds one to its payer's limit. Payers are written in one order by all processes, so
 * that no two wait for each other.
 * @param settled name of a relation with a column `payment`
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER
 */
export function raisePayers(settled: Fragment, maxInFlightPerPayer: number): Fragment {
  return sql.fragment`
    insert into payers as p (payer, settled, max_in_flight)
    select ${payerOf}, count(*), least(${MOST}, ${firstOf(maxInFlightPerPayer)} + count(*))
    from ${settled} group by 1 order by 1
    on conflict (payer) do update
    set settled = p.settled + excluded.settled, changed_at = now(),
        max_in_flight = least(${MOST}, p.max_in_flight + excluded.settled)`
}

/** For a `with`: the row of `ended`, where there is one, takes one from its payer's limit. Parameters as above. */
export function lowerPayer(ended: Fragment, maxInFlightPerPayer: number): Fragment {
  const first = firstOf(maxInFlightPerPayer)
  return sql.fragment`
    insert into payers as p (payer, max_in_flight)
    select ${payerOf}, ${Math.max(Math.min(first, LEAST), first - 1)}::int4 from ${ended}
    on conflict (payer) do update
    set max_in_flight = greatest(least(p.max_in_flight, ${LEAST}), p.max_in_flight - 1), changed_at = now()`
}
