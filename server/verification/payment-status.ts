// The status of a payment, for its payer: found by the recovery token of the request, or by the authorization itself, which
// only its payer and this service have seen.
import { z } from 'zod'
import { sql, type Tx, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { SCHEMA_VERSION } from '../interface/result.ts'
import { type Call, defineExchange, defineOperation, Reply } from '../operation.ts'
import { provePayer } from '../payments/known-payments.ts'
import { findEntry, type LedgerEntry, listEntries } from '../payments/ledger.ts'
import { type PaymentIdentity, samePayment } from '../payments/x402.ts'
import { findById } from './lookup.ts'
import { isRecoveryToken } from './recovery-token.ts'
import { type RequestView, requestView, viewColumns } from './request.ts'

const STATUSES = ['verified', 'settling', 'settled', 'delivered', 'unpaid', 'failed'] as const
type PaymentStatus = (typeof STATUSES)[number]

const MESSAGES: Record<PaymentStatus, string> = {
  verified: 'The authorization is accepted and the work has begun. Nothing is charged before the work is done.',
  settling: 'The payment is being settled. It is not certain yet whether it was charged; do not make a new payment.',
  settled: 'The payment is charged, and the result is about to be delivered.',
  delivered: 'The payment is charged and the result was delivered.',
  unpaid: 'The payment was not charged, and it is proved that it never will be.',
  failed: 'The request failed before anything was settled. The payment was not charged.',
}

/** Null while it is not certain. */
const CHARGED: Record<PaymentStatus, boolean | null> = {
  verified: false,
  settling: null,
  settled: true,
  delivered: true,
  unpaid: false,
  failed: false,
}

const paymentAnswer = z.strictObject({
  fate: z.enum(STATUSES),
  charged: z.boolean().nullable().describe('Null while it is not certain.'),
  message: z.string(),
  network: z.string(),
  asset: z.string(),
  payer: z.string(),
  nonce: z.string().describe('EIP-3009 nonce, or the hash of the Solana message.'),
  pay_to: z.string(),
  amount_atomic: z.string(),
  transaction: z.string().nullable(),
  valid_before: z.iso.datetime().describe('The latest time at which the authorization can be charged.'),
  changed_at: z.iso.datetime(),
})
type PaymentAnswer = z.output<typeof paymentAnswer>

const payments = z.strictObject({
  schema_version: z.literal(SCHEMA_VERSION),
  request_id: z.uuid(),
  payments: z
    .array(paymentAnswer)
    .describe('Newest first: the first is the current payment, the others were not charged.'),
})

export const getPayment = defineOperation({
  name: 'get_payment',
  summary: 'Get the payment status of a request',
  description: 'Needs the recovery token of the request as bearer token.',
  method: 'GET',
  path: '/api/agent/v1/payments/{request_id}',
  family: 'verification',
  access: 'recovery',
  kind: 'transaction',
  input: z.object({ request_id: z.string() }),
  output: payments,
  run: findStatusByRequest,
})

export const findPayment = defineExchange({
  name: 'find_payment',
  summary: 'Get the status of a payment authorization',
  description:
    'Send the authorization as PAYMENT-SIGNATURE, exactly as it was made. Its signature proves that it is yours; ' +
    'this call settles nothing.',
  method: 'GET',
  path: '/api/agent/v1/payments',
  family: 'verification',
  access: 'proof',
  kind: 'exchange',
  input: z.object({}),
  output: payments,
  run: findStatusByAuthorization,
})

async function findStatusByRequest(input: { request_id: string }, { api, credentials, tx }: Call & { tx: Tx }) {
  const id = input.request_id.toLowerCase()
  const mayRead = z.uuid().safeParse(id).success && isRecoveryToken(api.secrets.recovery, id, credentials.bearer ?? '')
  const row = mayRead ? await findById(tx, id) : null
  const entries = row ? await listEntries(tx, id) : []
  if (!row?.payment) throw new AppError('not_found', 'There is no such payment, or the recovery token is not its own.')
  return new Reply(describe(row, entries), NOT_CACHED)
}

/** Checks the signature before the database is read, and outside a transaction: the check may need a call to a chain. */
async function findStatusByAuthorization(_input: object, { api, credentials }: Call) {
  const unknown = () =>
    new AppError('not_found', 'This service knows no payment with the authorization in PAYMENT-SIGNATURE.')
  if (credentials.payment === undefined) throw unknown()
  const identity = await provePayer(api, credentials.payment, credentials.address).catch((error) => {
    throw error instanceof AppError && error.code === 'payment_invalid' ? unknown() : error
  })
  const read = async (tx: Tx) => {
    const row = await findBound(tx, identity)
    const entry = await findEntry(tx, identity)
    const requestId = row?.id ?? entry?.request_id
    const found = row ?? (requestId ? await findById(tx, requestId) : null)
    if (!found) throw unknown()
    const { payments, ...rest } = describe(found, await listEntries(tx, found.id))
    return { ...rest, payments: payments.filter((payment) => samePayment(payment, identity)) }
  }
  return new Reply(await transact(api.db, read, { readOnly: true }), NOT_CACHED)
}

const NOT_CACHED = { headers: { 'cache-control': 'no-store' } }

/** The request that an authorization is bound to. */
function findBound(tx: Tx, { network, asset, payer, nonce }: PaymentIdentity): Promise<RequestView | null> {
  return tx.maybeOne(sql.type(requestView)`
    select ${viewColumns} from verification_requests where id = (
      select request_id from payment_claims
      where network = ${network} and asset = ${asset} and payer = ${payer} and nonce = ${nonce})`)
}

/** Payments with a certain outcome come from the ledger; a payment under way comes from the request. */
function describe(row: RequestView, entries: readonly LedgerEntry[]): z.output<typeof payments> {
  const closed = entries.map((entry) => closedPayment(entry, row)).reverse()
  const open = openPayment(row)
  return { schema_version: SCHEMA_VERSION, request_id: row.id, payments: open ? [open, ...closed] : closed }
}

function closedPayment(entry: LedgerEntry, { state }: RequestView): PaymentAnswer {
  const delivered = entry.outcome === 'settled' && state !== 'settled'
  return {
    ...describeStatus(delivered ? 'delivered' : entry.outcome),
    network: entry.network,
    asset: entry.asset,
    payer: entry.payer,
    nonce: entry.nonce,
    pay_to: entry.pay_to,
    amount_atomic: entry.amount_atomic,
    transaction: entry.transaction,
    valid_before: new Date(entry.valid_before * 1000).toISOString(),
    changed_at: entry.entered_at.toISOString(),
  }
}

const OPEN: Partial<Record<RequestView['state'], PaymentStatus>> = {
  accepted: 'verified',
  observed: 'verified',
  assessed: 'verified',
  settling: 'settling',
}

function openPayment({ state, payment, changed_at }: RequestView): PaymentAnswer | null {
  const status = OPEN[state]
  if (!status || !payment) return null
  const { payTo, amount } = payment.requirements
  return {
    ...describeStatus(status),
    ...payment.identity,
    pay_to: payTo,
    amount_atomic: amount,
    transaction: null,
    valid_before: new Date(payment.valid_before * 1000).toISOString(),
    changed_at: changed_at.toISOString(),
  }
}

function describeStatus(status: PaymentStatus) {
  return { fate: status, charged: CHARGED[status], message: MESSAGES[status] }
}
