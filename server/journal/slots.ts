// The record of journal slots: named byte strings of an account. The service returns the bytes that it was given and never
// interprets them.
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { lockAccount } from '../accounts/account.ts'
import { ownName } from '../accounts/own-names.ts'
import { type Batcher, openReads } from '../db/batch.ts'
import { column, type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { utcMilliseconds } from '../db/time.ts'
import { AppError } from '../errors.ts'
import { MAX_SLOT_BYTES } from '../interface/limits.ts'

export const slotName = ownName.describe('Name of the slot.')

export const slotRow = z.strictObject({
  slot: z.string(),
  bytes: z.int().min(0).max(MAX_SLOT_BYTES),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  updated_at: z.string(),
})
export type Slot = z.output<typeof slotRow>

const slotColumns = sql.fragment`slot, octet_length(content) bytes, encode(sha256, 'hex') sha256,
  ${utcMilliseconds(sql.fragment`updated_at`)} updated_at`

export function etagOf({ sha256 }: Pick<Slot, 'sha256'>): string {
  return `"${sha256}"`
}

export type StoredSlot = Slot & { content: Buffer }

/** Reads of slots; null where there is none. Reads that arrive while a query runs share the next one. */
export type SlotReads = Batcher<SlotName, StoredSlot | null>

export interface SlotName {
  accountId: string
  slot: string
}

/** Slots in one query: 2 MiB when all of them are full. */
const MAX_READS = 32

/** The cache of a process: most bytes, and milliseconds for which a slot is kept after its last read. */
const KEPT = { maxSize: 16 * 1024 * 1024, ttl: 60_000 }

type Kept = Pick<StoredSlot, 'sha256' | 'content'>

/**
 * Each read queries the digest of the slot. Its bytes are cached, and are read again only if the digest has changed.
 */
export function openSlotReads(db: Database): SlotReads {
  const kept = new LRUCache<string, Kept>({
    ...KEPT,
    updateAgeOnGet: true,
    sizeCalculation: ({ content }) => content.length + 200,
  })
  return openReads((names: SlotName[]) => findSlots(db, names, kept), MAX_READS)
}

/** `content` is null if the slot has the given digest. */
const foundRow = slotRow.extend({ n: z.int(), content: z.instanceof(Buffer).nullable() })

async function findSlots(db: Database, names: SlotName[], kept: LRUCache<string, Kept>) {
  const asked = names.map((name) => ({ ...name, known: kept.get(keyOf(name)) }))
  const rows = await db.any(sql.prepared('find_slots', foundRow)`
    select t.n, ${slotColumns}, case when s.sha256 = decode(t.known, 'hex') then null else s.content end content
    from unnest(${column(asked, 'uuid', (name) => name.accountId)}, ${column(asked, 'text', (name) => name.slot)},
                ${column(asked, 'text', (name) => name.known?.sha256 ?? null)})
         with ordinality as t (account, name, known, n)
    join journal_slots s on s.account_id = t.account and s.slot = t.name`)
  const found = new Map(rows.map(({ n, ...row }) => [n, row]))
  return asked.map(({ known, ...name }, index): StoredSlot | null => {
    const row = found.get(index + 1)
    if (!row) {
      kept.delete(keyOf(name))
      return null
    }
    const content = row.content ?? known?.content
    if (!content) throw new Error('a slot came without its bytes')
    if (row.content) kept.set(keyOf(name), { sha256: row.sha256, content })
    return { ...row, content }
  })
}

const keyOf = ({ accountId, slot }: SlotName) => `${accountId} ${slot}`

/** Throws AppError `not_found`. */
export async function readSlot(reads: SlotReads, accountId: string, slot: string): Promise<StoredSlot> {
  return (await reads.add({ accountId, slot })) ?? missing()
}

function missing(): never {
  throw new AppError('not_found', 'This account has no such slot.')
}

export function listSlots(tx: Tx, accountId: string) {
  return tx.any(sql.type(slotRow)`
    select ${slotColumns} from journal_slots where account_id = ${accountId} order by slot collate "C"`)
}

/**
 * Makes or replaces a slot.
 * @param permit throws if the write is not meant for the current state, which is null for a slot that does not exist
 * @param refuse makes the error if the slot is new and the account already has `limit` slots
 */
export async function writeSlot(
  tx: Tx,
  { accountId, slot, content, limit }: { accountId: string; slot: string; content: Buffer; limit: number },
  { permit, refuse }: { permit: (present: Slot | null) => void; refuse: () => AppError },
): Promise<{ made: boolean; slot: Slot }> {
  const present = (await lockSlot(tx, accountId, slot)) ?? (await lockAbsence(tx, accountId, slot))
  permit(present)
  if (!present && (await measureSlots(tx, accountId)).slots >= limit) throw refuse()
  const sha256 = createHash('sha256').update(content).digest()
  const written = await tx.one(sql.prepared('write_slot', slotRow)`
    insert into journal_slots (account_id, slot, content, sha256)
    values (${accountId}, ${slot}, ${sql.binary(content)}, ${sql.binary(sha256)})
    on conflict (account_id, slot) do update
      set content = excluded.content, sha256 = excluded.sha256, updated_at = excluded.updated_at
    returning ${slotColumns}`)
  return { made: !present, slot: written }
}

/** @param permit as in writeSlot. Throws AppError `not_found`. */
export async function deleteSlot(tx: Tx, accountId: string, slot: string, permit: (present: Slot) => void) {
  permit((await lockSlot(tx, accountId, slot)) ?? missing())
  await tx.query(sql.type(nothing)`delete from journal_slots where account_id = ${accountId} and slot = ${slot}`)
}

function lockSlot(tx: Tx, accountId: string, slot: string): Promise<Slot | null> {
  return tx.maybeOne(sql.prepared('lock_slot', slotRow)`
    select ${slotColumns} from journal_slots where account_id = ${accountId} and slot = ${slot} for update`)
}

/** Checks again under the account's lock, because its last holder may have made this slot. */
async function lockAbsence(tx: Tx, accountId: string, slot: string): Promise<Slot | null> {
  await lockAccount(tx, accountId)
  return lockSlot(tx, accountId, slot)
}

/** The number of the account's slots, and their total size in bytes. */
export function measureSlots(tx: Tx, accountId: string): Promise<{ slots: number; bytes: number }> {
  return tx.one(sql.type(z.object({ slots: z.number(), bytes: z.number() }))`
    select count(*) slots, coalesce(sum(octet_length(content)), 0)::int8 bytes
    from journal_slots where account_id = ${accountId}`)
}
