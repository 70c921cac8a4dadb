// A stand-in for a facilitator and its chain. Every charge is a row in the database of the test, so a second charge of an
// authorization is detected across processes. A second table counts the calls that cost something.
import pg from 'pg'
import { openOfflineFacilitator } from '../server/payments/facilitators/offline-facilitator.ts'
import type { Facilitator, OfferedPayment, PaymentIdentity } from '../server/payments/x402.ts'

export interface Ledger extends AsyncDisposable {
  /** Charges a payment. False when it was charged before: then nothing happens. */
  charge(payment: PaymentIdentity): Promise<boolean>
  isCharged(payment: PaymentIdentity): Promise<boolean>
  /** `kind` is `settle`, with a nonce, or `assess`, with a claim. */
  note(kind: string, subject: string): Promise<void>
  count(kind: string, subject: string): Promise<number>
  charges(): Promise<{ payer: string; nonce: string }[]>
}

export async function openLedger(databaseUrl: string): Promise<Ledger> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  pool.on('error', () => {})
  // Without the lock, two processes that create a table at the same time may collide, also with "if not exists".
  await pool.query(`
    begin;
    select pg_advisory_xact_lock(8402901);
    create table if not exists test_charges (network text, asset text, payer text, nonce text,
                                             primary key (network, asset, payer, nonce));
    create table if not exists test_calls (kind text, subject text);
    commit`)
  const values = ({ network, asset, payer, nonce }: PaymentIdentity) => [network, asset, payer, nonce]
  return {
    async charge(payment) {
      const { rowCount } = await pool.query(
        'insert into test_charges values ($1, $2, $3, $4) on conflict do nothing',
        values(payment),
      )
      return rowCount === 1
    },
    async isCharged(payment) {
      const { rowCount } = await pool.query(
        'select 1 from test_charges where (network, asset, payer, nonce) = ($1, $2, $3, $4)',
        values(payment),
      )
      return rowCount === 1
    },
    async note(kind, subject) {
      await pool.query('insert into test_calls values ($1, $2)', [kind, subject])
    },
    async count(kind, subject) {
      const counted = 'select count(*)::int from test_calls where (kind, subject) = ($1, $2)'
      const { rows } = await pool.query(counted, [kind, subject])
      return rows[0].count
    },
    async charges() {
      return (await pool.query('select payer, nonce from test_charges order by payer, nonce')).rows
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

/** The effect of one call, and the answer that the caller gets. */
export type Deed =
  /** Pays, or answers the true state. */
  | 'answers'
  | 'throws'
  | 'throws, but charged'
  | 'does not know'
  | 'does not know, but charged'
  /** The authorization is void from then on. Only after this answer may the payer be asked for another one. */
  | 'is unpaid'

export interface LedgerFacilitator extends Facilitator {
  /** Attempts to settle a void authorization, which must never happen. */
  violations: string[]
}

/**
 * Verifies payments like the offline facilitator and settles them in the ledger. A second charge of an authorization has no effect
 * and gets the first answer, as a chain does with a nonce.
 * @param script the outcome of each call to settle or resolve a payment; undefined: the call succeeds
 */
export function openLedgerFacilitator(
  ledger: Ledger,
  script: (payment: PaymentIdentity) => Deed | undefined = () => undefined,
): LedgerFacilitator {
  const offline = openOfflineFacilitator()
  const voided = new Set<string>()
  const violations: string[] = []
  const unknown = { kind: 'unknown', reason: 'no_answer_in_time', retryAfterSeconds: 5 } as const
  const unpaid = { kind: 'unpaid', reason: 'authorization_expired' } as const

  /** The answers that settle and resolve have in common. A charged payment is never answered as unpaid. */
  async function act({ bound: { identity } }: OfferedPayment) {
    const deed = script(identity) ?? 'answers'
    if (deed.endsWith('charged') && !voided.has(identity.nonce)) await ledger.charge(identity)
    if (deed.startsWith('throws')) throw new Error('the connection to the facilitator broke')
    if (deed.startsWith('does not know')) return unknown
    if (deed === 'is unpaid' && !(await ledger.isCharged(identity))) voided.add(identity.nonce)
    return voided.has(identity.nonce) ? unpaid : null
  }

  return {
    ...offline,
    violations,
    async settle(offer, intent) {
      const { identity } = offer.bound
      await ledger.note('settle', identity.nonce)
      if (voided.has(identity.nonce)) violations.push(`${identity.nonce} was to be settled though it was void`)
      const answer = await act(offer)
      if (answer) return answer
      await ledger.charge(identity)
      return offline.settle(offer, intent)
    },
    async resolve(offer, intent) {
      const answer = await act(offer)
      if (answer) return answer
      return (await ledger.isCharged(offer.bound.identity)) ? offline.settle(offer, intent) : { kind: 'open' }
    },
  }
}
