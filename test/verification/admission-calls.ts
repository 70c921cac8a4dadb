// Makes admissions without HTTP, and opens databases to admit them on.
import { createHash, randomUUID } from 'node:crypto'
import pg from 'pg'
import { type Database, openDatabase, transact } from '../../server/db/pool.ts'
import { evmTerms } from '../../server/payments/x402.ts'
import { type Admission, type Admitted, admitBatch } from '../../server/verification/admission/admission.ts'
import { openTestDatabase } from '../database.ts'

/** MAX_IN_FLIGHT_PER_PAYER. */
export const NO_LIMIT = 0

export async function openProcesses(count: number) {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const tables = new pg.Pool({ connectionString: url, max: 2 })
  tables.on('error', () => {})
  opened.defer(() => tables.end())
  const open = async () => {
    const db = await openDatabase(url, { maxConnections: 2 })
    opened.defer(() => db.end())
    return db
  }
  const dbs = await Promise.all(Array.from({ length: count }, open))
  const closing = opened.move()
  return { tables, dbs, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

export interface CallOptions {
  known?: boolean
  claim?: string
  payer?: string
  /** A number in place of an address. */
  address?: number
  domain?: string
  /** See `LimitedCall`; null: the payer's balance limits nothing. */
  cover?: number | null | undefined
}

/** An admission for a key, with or without a payment. Key and nonce may be any text. */
export function call(key: string, nonce?: string, options: CallOptions = {}): Admission {
  const { known = false, claim = 'It is so.', payer = '0xpayer', address = 1, domain = 'site.test' } = options
  const cover = 'cover' in options ? options.cover : null
  const identity = { network: 'eip155:84532', asset: '0xasset', payer, nonce: nonce ?? '' }
  const bound = { identity, valid_before: 4_000_000_000, requirements: evmTerms('eip155:84532', '0xpayee') }
  return {
    id: randomUUID(),
    known,
    keyHash: createHash('sha256').update(key).digest(),
    bodyHash: createHash('sha256').update(claim).digest('hex'),
    body: { source_url: 'https://site.test/', claim },
    quoteTtlSeconds: 900,
    addressKey: createHash('sha256').update(`address ${address}`).digest().subarray(0, 16),
    domain,
    ...(nonce && {
      payment: {
        bound,
        sealFor: (id: string) => Buffer.from(`sealed for ${id}`),
        ...(cover !== undefined && { cover }),
      },
    }),
  }
}

export const admit = (db: Database, ...items: Admission[]) => admitUnder(NO_LIMIT, db, items)

/** @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER */
export function admitUnder(maxInFlightPerPayer: number, db: Database, items: Admission[]): Promise<Admitted[]> {
  return transact(db, (tx) => admitBatch(tx, items, maxInFlightPerPayer))
}

/** The answer to each caller, in a few words. */
export function summary(answers: Admitted[]): string[] {
  return answers.map((answer) =>
    answer.kind === 'row' ? `${answer.row.state}${answer.accepted ? ', accepted' : ''}` : answer.kind,
  )
}
