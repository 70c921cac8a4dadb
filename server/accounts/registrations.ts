// How many accounts are made from one address on one UTC day. The address itself is not stored, only a
// keyed hash of it, which is deleted when the day is over.
import { createHmac, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { sql, type Tx } from '../db/pool.ts'
import { addressKey } from './rate-limit.ts'
import { CALLER_LIMITS, refuseToday } from './tiers.ts'

/**
 * Counts one registration in the transaction that makes the account, so that one which comes to nothing does not count.
 * Throws AppError `daily_limit`. @param secret keys the hash
 */
export async function countRegistration(tx: Tx, secret: KeyObject, address: string): Promise<void> {
  const most = CALLER_LIMITS.registrations_per_day
  const addressHash = createHmac('sha256', secret).update(addressKey(address)).digest()
  const counted = await tx.maybeOneFirst(sql.type(z.object({ registrations: z.number() }))`
    insert into registration_days (day, address_hash, registrations)
    values ((now() at time zone 'utc')::date, ${sql.binary(addressHash)}, 1)
    on conflict (day, address_hash) do update set registrations = registration_days.registrations + 1
      where registration_days.registrations < ${most}
    returning registrations`)
  if (counted === null) throw refuseToday(`registrations: ${most} a day (UTC) from one address.`)
}
