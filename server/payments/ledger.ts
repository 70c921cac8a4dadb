// The ledger: every payment with a certain outcome, and the list of those whose outcome is open. The steps of a request write
// the entries (see verification/request.ts); this file reads them, records the chain's verdict, exports them, and prunes
// those that charged nothing.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { type PaymentIdentity, settlementProofs } from './x402.ts'

const ledgerEntry = z.object({
  entry: z.number(),
  entered_at: z.date(),
  request_id: z.uuid(),
  outcome: z.enum(['settled', 'unpaid', 'failed']),
  reason: z.string().nullable(),
  network: z.string(),
  asset: z.string(),
  payer: z.string(),
  nonce: z.string(),
  pay_to: z.string(),
  amount_atomic: z.string(),
  /** Unix seconds. */
  valid_before: z.number(),
  provider: z.string().nullable(),
  mode: z.enum(['offline', 'testnet', 'mainnet']).nullable(),
  transaction: z.string().nullable(),
  /** The proof of the settlement; null if no money moved. `unrecorded`: the entry is older than this column. */
  proof: z.enum([...settlementProofs, 'unrecorded']).nullable(),
  log_index: z.number().nullable(),
  reconciled_at: z.date().nullable(),
  chain_says: z.enum(['agrees', 'differs']).nullable(),
})
export type LedgerEntry = z.output<typeof ledgerEntry>

const columns = sql.fragment`entry, entered_at, request_id, outcome, reason, network, asset, payer, nonce, pay_to,
  amount_atomic::text, valid_before, provider, mode, transaction, proof, log_index, reconciled_at, chain_says`

/** All payments of a request, oldest first. */
export function listEntries(tx: Tx, requestId: string): Promise<readonly LedgerEntry[]> {
  return tx.any(sql.type(ledgerEntry)`
    select ${columns} from payment_ledger where request_id = ${requestId} order by entry`)
}

/** The latest entry of this authorization, which may have several: one that was not charged can be used again. */
export function findEntry(tx: Tx, { network, asset, payer, nonce }: PaymentIdentity): Promise<LedgerEntry | null> {
  return tx.maybeOne(sql.type(ledgerEntry)`
    select ${columns} from payment_ledger
    where payer = ${payer} and nonce = ${nonce} and network = ${network} and asset = ${asset}
    order by entry desc limit 1`)
}

/** Whether the authorization of an entry that charged nothing was settled for another request. */
export function isSettledElsewhere(
  db: Database,
  { network, asset, payer, nonce, request_id }: LedgerEntry,
): Promise<boolean> {
  return db.exists(sql.type(z.object({ settled: z.number() }))`
    select 1 settled from payment_ledger
    where payer = ${payer} and nonce = ${nonce} and network = ${network} and asset = ${asset}
      and outcome = 'settled' and request_id <> ${request_id}`)
}

const PAGE = 1000

/** Every entry in order, read in pages. @param after the number of the last entry to skip */
export async function* readLedger(db: Database, after = 0): AsyncGenerator<LedgerEntry> {
  for (let last = after; ; ) {
    const page = await db.any(sql.type(ledgerEntry)`
      select ${columns} from payment_ledger where entry > ${last} order by entry limit ${PAGE}`)
    yield* page
    if (page.length < PAGE) return
    last = page.at(-1)?.entry ?? last
  }
}

/**
 * Records whether the chain agrees with an entry. A settlement that the chain shows gets the proof `chain`. If another entry
 * has the same log, the verdict is `differs`. For an entry that was pruned meanwhile nothing is recorded.
 * @param logIndex where the chain shows the settlement
 */
export async function recordVerdict(
  db: Database,
  entry: number,
  says: 'agrees' | 'differs',
  logIndex: number | null,
): Promise<'agrees' | 'differs'> {
  const proved = says === 'agrees' && logIndex !== null
  const written = await db.query(sql.type(nothing)`
    update payment_ledger l
    set reconciled_at = now(), chain_says = ${says},
        proof = case when ${proved} and l.transaction is not null then 'chain' else l.proof end,
        log_index = case when ${proved} and l.transaction is not null then ${logIndex} else l.log_index end
    where entry = ${entry} and not (${proved} and exists (
      select 1 from payment_ledger other
      where other.network = l.network and other.transaction = l.transaction and other.log_index = ${logIndex}
        and other.entry <> l.entry))`)
  return written.rowCount === 1 || !proved ? says : recordVerdict(db, entry, 'differs', null)
}

const unresolved = z.object({
  request_id: z.uuid(),
  state: z.enum(['settling', 'settled']),
  open_seconds: z.number(),
  network: z.string(),
  payer: z.string(),
  nonce: z.string(),
  valid_before: z.number(),
  transaction: z.string().nullable(),
})
export type Unresolved = z.output<typeof unresolved>

/** Payments that may have been charged, and charged ones whose result is not complete; oldest first. */
export function findUnresolved(db: Database): Promise<readonly Unresolved[]> {
  return db.any(sql.type(unresolved)`
    select id request_id, state,
           greatest(0, floor(extract(epoch from now()) - (settlement_intent ->> 'at')::float8))::int open_seconds,
           payment #>> '{identity,network}' network, payment #>> '{identity,payer}' payer,
           payment #>> '{identity,nonce}' nonce, (payment ->> 'valid_before')::float8 valid_before,
           coalesce(settlement #>> '{payment,transaction}', settlement_intent ->> 'transaction') transaction
    from verification_requests where state in ('settling', 'settled') order by (settlement_intent ->> 'at')::float8`)
}

/**
 * Days for which an entry that charged nothing is kept, together with its request. Until then reconciliation can compare it
 * with the chain. The trigger `payment_ledger_kept` has the same number.
 */
export const UNCHARGED_DAYS = 30
/** Days after the end of an authorization's validity: far more than the clocks of chain, payer and service differ. */
const UNUSABLE_DAYS = 1

/** The condition of the trigger, which refuses the deletion of every other entry. */
const uncharged = sql.fragment`outcome in ('unpaid', 'failed') and chain_says is distinct from 'differs'`
const overdue = sql.fragment`least(
  extract(epoch from now() - entered_at) - ${UNCHARGED_DAYS * 86_400},
  extract(epoch from now()) - valid_before - ${UNUSABLE_DAYS * 86_400})`

/**
 * Deletes entries that charged nothing, after their time and after their authorization became invalid. An entry that the
 * chain contradicts is kept. Returns the number of deleted entries.
 * @param limit rows at most
 */
export async function pruneLedger(db: Database, limit: number): Promise<number> {
  const pruned = await db.query(sql.type(nothing)`
    delete from payment_ledger
    where entry in (
      select entry from payment_ledger
      where ${uncharged} and entered_at < now() - ${UNCHARGED_DAYS} * interval '1 day' and ${overdue} > 0
      order by entered_at limit ${limit} for update skip locked)`)
  return pruned.rowCount
}

/** Seconds by which the entry that is longest due for pruning is overdue; 0 when none is due. */
export function measureLedgerLag(db: Database): Promise<number> {
  return db.oneFirst(sql.type(z.object({ lag: z.number() }))`
    select coalesce((
      select ${overdue} from payment_ledger
      where ${uncharged} and entered_at < now() - ${UNCHARGED_DAYS} * interval '1 day' and ${overdue} > 0
      order by entered_at limit 1), 0)::float8 lag`)
}

const HEADINGS = ledgerEntry.keyof().options

/** The whole ledger as lines of CSV (RFC 4180), headings first. */
export async function* exportLedger(db: Database): AsyncGenerator<string> {
  yield HEADINGS.join(',')
  for await (const entry of readLedger(db)) yield HEADINGS.map((name) => cell(entry[name])).join(',')
}

function cell(value: string | number | Date | null): string {
  const text = value instanceof Date ? value.toISOString() : String(value ?? '')
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
