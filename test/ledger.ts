// The far side of payments, which remembers: every charge is a row of the test's database, so that a second one for the
// same authorization is impossible to miss, whichever process asks for it. Beside it, a count of calls that cost something.
import pg from 'pg'
import { openOfflineFacilitator } from '../server/payments/offline-facilitator.ts'
import type { Facilitator, OfferedPayment, PaymentIdentity } from '../server/payments/x402.ts'

export interface Ledger extends AsyncDisposable {
  /** Moves the money. Done once already: nothing moves, and the answer is false. */
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
  // Two processes that make a table at once may collide, "if not exists" or not.
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

/** What the far side does with one call, and what it lets its caller know of that. */
export type Deed =
  /** Pays, or says what is so. */
  | 'answers'
  | 'throws'
  | 'throws, but charged'
  | 'does not know'
  | 'does not know, but charged'
  /** The authorization is void from then on: the one answer after which another may be asked for. */
  | 'is unpaid'

export interface LedgerFacilitator extends Facilitator {
  /** What no caller may do: have a void authorization settled. */
  violations: string[]
}

/**
 * Checks payments like the offline facilitator and settles them in the ledger. Charging the same authorization again
 * moves nothing and is answered like the first time, as a chain does with a nonce.
 * @param script what becomes of each call for a payment, be it to settle or to look; from its end on, all is well.
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

  /** The answer that does not depend on what was asked. A chain cannot call unpaid what is paid. */
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
