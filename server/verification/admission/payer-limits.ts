// The limit of each payer: how many requests it may have in flight. A settlement raises it; work that ended uncharged lowers
// it. The statements that end a request write it too, so after any crash it agrees with the ledger.
import { PUBLIC_LIMITS } from '../../accounts/tiers.ts'
import { sql } from '../../db/pool.ts'

const { first_in_flight_per_payer, most_in_flight_per_payer: MOST, least_in_flight_per_payer: LEAST } = PUBLIC_LIMITS

export type Fragment = ReturnType<typeof sql.fragment>

/** The payer of a row of `verification_requests`. */
const payerOf = sql.fragment`payment #>> '{identity,payer}'`

/** A configuration without a limit keeps the rows too, so that a limit that is configured later has a history. */
const firstOf = (maxInFlightPerPayer: number) => maxInFlightPerPayer || first_in_flight_per_payer

/**
 * For a `with`: every row of `settled` raises its payer's limit by one. All processes write payers in the same order, so
 * that no two wait for each other.
 * @param settled name of a relation with a column `payment`
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER
 */
export function raisePayerLimits(settled: Fragment, maxInFlightPerPayer: number): Fragment {
  return sql.fragment`
    insert into payers as p (payer, settled, max_in_flight)
    select ${payerOf}, count(*), least(${MOST}, ${firstOf(maxInFlightPerPayer)} + count(*))
    from ${settled} group by 1 order by 1
    on conflict (payer) do update
    set settled = p.settled + excluded.settled, changed_at = now(),
        max_in_flight = least(${MOST}, p.max_in_flight + excluded.settled)`
}

/** For a `with`: the row of `ended`, if there is one, lowers its payer's limit by one. Parameters as above. */
export function lowerPayerLimit(ended: Fragment, maxInFlightPerPayer: number): Fragment {
  const first = firstOf(maxInFlightPerPayer)
  return sql.fragment`
    insert into payers as p (payer, max_in_flight)
    select ${payerOf}, ${Math.max(Math.min(first, LEAST), first - 1)}::int4 from ${ended}
    on conflict (payer) do update
    set max_in_flight = greatest(least(p.max_in_flight, ${LEAST}), p.max_in_flight - 1), changed_at = now()`
}
