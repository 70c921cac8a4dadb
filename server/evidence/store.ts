// The stored captures: one row for each observation that was captured, compressed and encrypted.
//
//   kept ──► signed (manifest and serial)
//
// A row is inserted before its observation is used. It is signed in the transaction that completes the first request made of the
// observation, and deleted with the last result that refers to it. A crash between the insert and the request's next commit leaves a row
// that no request refers to; pruning deletes it. A purchase never fails for want of a capture: if none can be kept, it goes on without.
import { type KeyObject, randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { CaptureDigests, CapturedHop } from '../../workers/retrieval/capture.ts'
import { openBatcher } from '../db/batch.ts'
import { packed } from '../db/packed.ts'
import { column, type Database, nothing, relaxed, sql, type Tx } from '../db/pool.ts'
import { openBytes, sealBytes } from '../payments/seal.ts'
import { type Participant, Refused } from '../receipts/chain.ts'
import type { Logger, Metrics } from '../telemetry.ts'
import { packCapture } from './packing.ts'

export interface Captures extends AsyncDisposable {
  /** Stores the hops of one visit; null where they are not kept. Never rejects. */
  keep(hops: readonly CapturedHop[]): Promise<CaptureDigests | null>
}

export interface CapturesOptions {
  db: Database
  log: Logger
  metrics: Pick<Metrics, 'captures'>
  /** 32 bytes; the rows are encrypted with it. */
  key: KeyObject
  /** Octets that all rows together may have. */
  maxBytes: number
}

/** Milliseconds for which a read total is used; what other processes store meanwhile may exceed the bound. */
const SUM_MS = 5000
/** Milliseconds between two lines of the log about captures that were not kept. */
const QUIET_MS = 60_000
/** Captures of one statement, all of which are in memory until it was sent. */
const MAX_BATCH = 8

export function openCaptures({ db, log, metrics, key, maxBytes }: CapturesOptions): Captures {
  const inserts = openBatcher((rows: Row[]) => insertAll(db, rows), { batch: MAX_BATCH, queue: 4096 })
  const sum = openSum(db)
  let quietUntil = 0
  const tell = (event: string, about: object) => {
    if (performance.now() < quietUntil) return
    quietUntil = performance.now() + QUIET_MS
    log.warn({ event, ...about })
  }
  return {
    async keep(hops) {
      try {
        const { bytes, digests } = await packCapture(hops)
        const id = randomUUID()
        const sealed = sealBytes(key, id, bytes)
        if ((await sum.read()) + sealed.length > maxBytes) {
          metrics.captures.inc({ outcome: 'no_room' })
          tell('captures_full', { max_bytes: maxBytes })
          return null
        }
        sum.add(sealed.length)
        await inserts.add({ id, sealed })
        metrics.captures.inc({ outcome: 'kept' })
        return { id, ...digests }
      } catch (error) {
        metrics.captures.inc({ outcome: 'failed' })
        tell('capture_failed', { err: error })
        return null
      }
    },
    [Symbol.asyncDispose]: () => inserts[Symbol.asyncDispose](),
  }
}

/** The octets of all rows: read from time to time, and in between what this process adds. */
function openSum(db: Database) {
  let known: Promise<number> | null = null
  let readAt = 0
  let added = 0
  return {
    async read(): Promise<number> {
      if (!known || performance.now() - readAt > SUM_MS) {
        readAt = performance.now()
        added = 0
        known = measureCaptures(db).then(({ bytes }) => bytes)
        known.catch(() => (known = null))
      }
      return (await known) + added
    },
    add(bytes: number) {
      added += bytes
    },
  }
}

interface Row {
  id: string
  sealed: Buffer
}

/** Does not wait for the disk: the request's own commit, which follows, makes everything before it durable. */
async function insertAll(db: Database, rows: Row[]): Promise<undefined[]> {
  const sealed = packed(rows.map((row) => row.sealed))
  await db.query(sql.prepared('keep_captures', nothing)`
    with ${relaxed}
    insert into captures (id, sealed, bytes)
    select id::uuid, substr(${sealed.bytes}, start, length), length
    from relaxed, unnest(${column(rows, 'text', ({ id }) => id)}, ${sealed.starts}, ${sealed.lengths}) as t (id, start, length)`)
  return rows.map(() => undefined)
}

/** A manifest that is to be signed. */
export interface Manifest {
  captureId: string
  /** The bytes whose digest the receipt attests. */
  bytes: Buffer
}

/** `signed`: the capture has its receipt already. `gone`: it is not kept any more. */
export type ManifestRefusal = 'signed' | 'gone'

/** The rows of captures in the chain's transactions: each gets one manifest and one receipt. */
export const manifests: Participant<Manifest, ManifestRefusal> = { check: lockUnsigned, apply: storeManifests }

async function lockUnsigned(tx: Tx, items: Manifest[]): Promise<(null | Refused<ManifestRefusal>)[]> {
  const locked = await tx.any(sql.prepared('lock_captures', z.object({ id: z.string(), signed: z.boolean() }))`
    select id::text, serial is not null signed from captures
    where id = any(${column(items, 'text', ({ captureId }) => captureId)}::uuid[])
    order by id for update`)
  const open = new Map(locked.map(({ id, signed }) => [id, !signed]))
  return items.map(({ captureId }) => {
    const isOpen = open.get(captureId)
    if (isOpen === undefined) return new Refused<ManifestRefusal>('gone')
    // Of two requests in one batch that share a capture, the first has it signed.
    open.set(captureId, false)
    return isOpen ? null : new Refused<ManifestRefusal>('signed')
  })
}

async function storeManifests(tx: Tx, entries: { item: Manifest; attestation: { serial: number } }[]): Promise<void> {
  const bytes = packed(entries.map(({ item }) => item.bytes))
  await tx.query(sql.prepared('sign_captures', nothing)`
    update captures c set manifest = substr(${bytes.bytes}, t.start, t.length), serial = t.serial
    from unnest(${column(entries, 'text', ({ item }) => item.captureId)}, ${bytes.starts}, ${bytes.lengths},
                ${column(entries, 'int8', ({ attestation }) => attestation.serial)}) as t (id, start, length, serial)
    where c.id = t.id::uuid`)
}

export interface SignedCapture {
  id: string
  /** As packCapture made it. */
  packed: Buffer
  manifest: Buffer
  /** Of the manifest's receipt. */
  serial: number
}

const signedRow = z.object({
  sealed: z.instanceof(Buffer),
  manifest: z.instanceof(Buffer).nullable(),
  serial: z.int().nullable(),
})

/**
 * A capture with its manifest; null where it is gone, past its time by the clock, or not signed. Throws for bytes that another key sealed,
 * or that were changed.
 * @param options `retentionSeconds`: null: as long as its results
 */
export async function findCapture(
  db: Database,
  key: KeyObject,
  id: string,
  { retentionSeconds }: { retentionSeconds: number | null },
): Promise<SignedCapture | null> {
  const row = await db.maybeOne(sql.type(signedRow)`
    select sealed, manifest, serial from captures
    where id = ${id} and coalesce(created_at > now() - ${retentionSeconds}::float8 * interval '1 second', true)`)
  if (!row?.manifest || row.serial === null) return null
  return { id, packed: openBytes(key, id, row.sealed), manifest: row.manifest, serial: row.serial }
}

/** Rows and octets of all captures, as of the last commit that changed them. */
export function measureCaptures(db: Database): Promise<{ rows: number; bytes: number }> {
  return db.one(sql.prepared('measure_captures', z.object({ rows: z.number(), bytes: z.number() }))`
    select rows, bytes from capture_totals`)
}
