// Inserts rows of verification_requests in every state, without the code of the service.
import { randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import { openDatabase } from '../../server/db/pool.ts'
import { evmTerms } from '../../server/payments/x402.ts'
import type { State } from '../../server/verification/request.ts'
import { openTestDatabase } from '../database.ts'

/** The columns that depend on the state. */
export type Column =
  | 'body'
  | 'payment'
  | 'payment_sealed'
  | 'observation'
  | 'assessment'
  | 'settlement_intent'
  | 'settlement'
  | 'error'
  | 'result'

/** The columns that each state has filled. */
export const held: Record<State, Column[]> = {
  quoted: ['body'],
  accepted: ['body', 'payment', 'payment_sealed'],
  observed: ['body', 'payment', 'payment_sealed', 'observation'],
  assessed: ['body', 'payment', 'payment_sealed', 'observation', 'assessment'],
  settling: ['body', 'payment', 'payment_sealed', 'observation', 'assessment', 'settlement_intent'],
  settled: ['body', 'payment', 'observation', 'assessment', 'settlement_intent', 'settlement'],
  completed: ['body', 'payment', 'settlement_intent', 'settlement', 'result'],
  unpaid: ['body', 'payment', 'observation', 'assessment', 'settlement_intent'],
  failed: ['body', 'payment', 'error'],
  expired: [],
}

const payment = {
  identity: { network: 'eip155:84532', asset: '0xasset', payer: '0xpayer', nonce: '0xnonce' },
  valid_before: 4_000_000_000,
  requirements: evmTerms('eip155:84532', '0xpayee'),
}

const contents: Record<Column, unknown> = {
  body: { source_url: 'https://site.test/', claim: 'It is so.' },
  payment,
  payment_sealed: Buffer.from('sealed'),
  observation: {},
  assessment: {},
  settlement_intent: { at: 1, block: null, transaction: null },
  settlement: {},
  error: { code: 'execution_failed', message: 'No.', retryable: true },
  result: Buffer.from('{}'),
}

export interface EntryOptions {
  outcome?: 'settled' | 'unpaid' | 'failed'
  /** Seconds ago. */
  entered?: number
  /** Seconds ago that the authorization ran out. */
  expired?: number
  chainSays?: 'agrees' | 'differs'
}

/** Inserts an entry of the ledger; a settled one is of offline mode. */
export async function insertEntry(tables: pg.Pool | pg.Client, requestId: string, options: EntryOptions = {}) {
  const { outcome = 'failed', entered = 0, expired = entered, chainSays = null } = options
  const settled = outcome === 'settled'
  await tables.query(
    `insert into payment_ledger (request_id, entered_at, valid_before, outcome, reason, provider, mode, reconciled_at,
                                 chain_says, network, asset, payer, nonce, pay_to, amount_atomic)
     values ($1, now() - $2 * interval '1 second', extract(epoch from now())::bigint - $3, $4, $5, $6, $7,
             case when $8::text is not null then now() end, $8, 'eip155:84532', '0xasset', '0xpayer', '0xnonce', '0xpayee', 30000)`,
    [
      requestId,
      entered,
      expired,
      outcome,
      settled ? null : 'fetch_failed',
      settled ? 'offline' : null,
      settled ? 'offline' : null,
      chainSays,
    ],
  )
}

export interface RowOptions {
  /** Columns to fill instead of those of the state. */
  columns?: Column[]
  /** Seconds before now. */
  changed?: number
  /** Seconds after now. */
  quote?: number
  attempt?: string
}

/** Inserts a row in this state; answers its id. */
export async function insertRow(tables: pg.Pool | pg.Client, state: State, options: RowOptions = {}): Promise<string> {
  const { columns = held[state], changed = 0, quote = 900, attempt = null } = options
  const id = randomUUID()
  const values = columns.map((column) => {
    const content = contents[column]
    return Buffer.isBuffer(content) ? content : JSON.stringify(content)
  })
  const names = ['id', 'key_hash', 'body_hash', 'state', 'attempt', ...columns]
  const places = names.map((_, index) => `$${index + 3}`)
  await tables.query(
    `insert into verification_requests (changed_at, quote_expires_at, ${names.join(', ')})
     values (now() - $1 * interval '1 second', now() + $2 * interval '1 second', ${places.join(', ')})`,
    [changed, quote, id, randomBytes(32), randomBytes(32), state, attempt, ...values],
  )
  return id
}

/** A database of its own, as the service opens it and as plain tables. */
export async function openTables() {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const tables = new pg.Pool({ connectionString: url, max: 2 })
  // Ignores errors of connections that are still closing when the database is dropped.
  tables.on('error', () => {})
  opened.defer(() => tables.end())
  const db = await openDatabase(url, { maxConnections: 4 })
  opened.defer(() => db.end())
  const closing = opened.move()
  return { tables, db, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}
