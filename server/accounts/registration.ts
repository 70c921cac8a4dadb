// Registration of accounts: reserved handles, the account with its first key, and the limit for each address and UTC day.
// There is no e-mail and no password, so an account cannot be recovered when all its keys are lost.
import { createHmac, type KeyObject, randomUUID } from 'node:crypto'
import { z } from 'zod'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { addressKey } from './address-key.ts'
import { insertApiKey } from './api-keys.ts'
import { CALLER_LIMITS, refuseToday } from './tiers.ts'

/** The service's own receipts carry these names in `requested_by`. An account with such a name could pass for the service. */
export const RESERVED_HANDLES: readonly string[] = [
  'source-verification',
  'countersign',
  'service',
  'lease',
  'watchdog',
  'citation-watch',
  'key-rotation',
]

/** Throws AppError `handle_taken` for a reserved handle. */
export function refuseReserved(handle: string): void {
  if (RESERVED_HANDLES.includes(handle))
    throw new AppError('handle_taken', `The handle ${handle} is reserved: receipts of the service carry it.`)
}

/** Makes an account and its first key, which is shown once and stored nowhere. Throws AppError `handle_taken`. */
export async function insertAccount(tx: Tx, handle: string): Promise<{ accountId: string; apiKey: string }> {
  const accountId = randomUUID()
  const made = await tx.query(sql.type(nothing)`
    insert into accounts (id, handle) values (${accountId}, ${handle}) on conflict (handle) do nothing`)
  if (made.rowCount === 0) throw new AppError('handle_taken', `The handle ${handle} is taken.`)
  const { apiKey } = await insertApiKey(tx, { accountId, kind: 'full', label: 'registration' })
  return { accountId, apiKey }
}

/**
 * Counts one registration, in the transaction that makes the account: a registration that fails does not count. The address
 * is not stored, only a keyed hash of it, which is deleted when the day is over. Throws AppError `daily_limit`.
 * @param secret keys the hash
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
