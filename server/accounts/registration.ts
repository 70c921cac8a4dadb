// Registration of accounts: reserved handles, the account with its first key, and the limit for each address and UTC day.
// There is no e-mail and no password, so an account cannot be recovered when all its keys are lost.
import { createHmac, type KeyObject, randomUUID } from 'node:crypto'
import { z } from 'zod'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { addressKey, networkKey } from './address-key.ts'
import { insertApiKey } from './api-keys.ts'
import { shareOf } from './shared-budget.ts'
import { CALLER_LIMITS, refuseToday } from './tiers.ts'

/** The service's own receipts carry these names in `requested_by`. An account with such a name could pass for the service. */
export const RESERVED_HANDLES: readonly string[] = [
  'source-verification',
  'source-capture',
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
 * Counts one registration, of its address, of its network and of all callers, in the transaction that makes the account: a
 * registration that fails does not count. Addresses are not stored, only keyed hashes of them, which are deleted when the day is over.
 * Throws AppError `daily_limit`.
 * @param secret keys the hashes
 */
export async function countRegistration(tx: Tx, secret: KeyObject, address: string): Promise<void> {
  const { registrations_per_day, registrations_per_network_per_day, registrations_in_all_per_day } = CALLER_LIMITS
  const hash = (name: string) => createHmac('sha256', secret).update(name).digest()
  const ofAddress = await countToday(tx, hash(addressKey(address)))
  if (ofAddress > registrations_per_day)
    throw refuseToday(`registrations: ${registrations_per_day} a day (UTC) from one address.`)
  const ofNetwork = await countToday(tx, hash(`network ${networkKey(address)}`))
  if (ofNetwork > registrations_per_network_per_day)
    throw refuseToday(`registrations: ${registrations_per_network_per_day} a day (UTC) from one network.`)
  // Last, because everyone's row is locked until the transaction ends.
  const ofAll = await countToday(tx, hash('all'))
  if (ofAll > shareOf(registrations_in_all_per_day, ofNetwork))
    throw refuseToday(`registrations: ${registrations_in_all_per_day} a day (UTC) by all callers.`)
}

/** The count of today with this call. */
function countToday(tx: Tx, hash: Buffer): Promise<number> {
  return tx.oneFirst(sql.type(z.object({ registrations: z.number() }))`
    insert into registration_days (day, address_hash, registrations)
    values ((now() at time zone 'utc')::date, ${sql.binary(hash)}, 1)
    on conflict (day, address_hash) do update set registrations = registration_days.registrations + 1
    returning registrations`)
}
