// The stage of a verification in which money may move: from the work that is done to the entry in the ledger.

import type { Work } from '../../workers/context.ts'
import { transact } from '../db/pool.ts'
import { openPayload } from '../payments/seal.ts'
import type { OfferedPayment, SettlementIntent, SettlementOutcome } from '../payments/x402.ts'
import { proveServable } from './completion.ts'
import { releasePayment, type WorkingRequest } from './request.ts'
import { inSeconds, snooze } from './snooze.ts'
import { advance, TransactionTakenError } from './steps.ts'

/** Seconds until a settled or settling request is taken up again after its attempts ran out. It is never given up. */
export const PERSIST_SECONDS = 60

/** Committed before the facilitator is called: from here on the authorization may be out of our hands. */
export async function intend(request: WorkingRequest, work: Work): Promise<WorkingRequest> {
  proveServable(request, work.log)
  const intent = await work.facilitator.prepare(openOffer(request, work))
  return advance(work.steps, request, 'settling', { intent })
}

/**
 * A settlement that was `begun` by an attempt before this one may have been made already, so it is looked for first; it is
 * asked for again, with the same authorization, only where it was not made and still can be.
 * A crash after the facilitator answered and before the commit: the next attempt looks, and finds the same.
 * Answers null when the outcome is open; the request then waits in the queue.
 */
export async function settle(request: WorkingRequest, work: Work, { begun }: { begun: boolean }) {
  if (!request.intent) throw new Error(`request ${request.id} is settling without intent`)
  const offer = openOffer(request, work)
  const found = begun ? await work.facilitator.resolve(offer, request.intent) : { kind: 'open' as const }
  const outcome = found.kind === 'open' ? await work.facilitator.settle(offer, request.intent) : found
  work.metrics.settlements.inc({ outcome: outcome.kind })
  if (outcome.kind === 'paid') return book(request, work, outcome)
  if (outcome.kind === 'unknown') await lookLater(request, work, outcome.retryAfterSeconds, outcome.intent)
  else await release(request, work, outcome.reason)
  work.log.warn({ event: 'settlement', outcome: outcome.kind, reason: outcome.reason, request_id: request.id })
  return null
}

/**
 * Answers null when the transaction has paid for another request. The request is then neither completed
 * nor offered for payment again: it stays in `settling`, on the operator's list, until the chain shows what became of it.
 */
async function book(request: WorkingRequest, work: Work, paid: Extract<SettlementOutcome, { kind: 'paid' }>) {
  const { payment, response, proof, logIndex } = paid
  const settlement = { payment, response: { ...response }, proof, log_index: logIndex }
  try {
    return { ...(await advance(work.steps, request, 'settled', { settlement })), payment_sealed: null }
  } catch (error) {
    if (!(error instanceof TransactionTakenError)) throw error
    const { network, transaction } = payment
    work.log.error({ event: 'transaction_taken', request_id: request.id, network, transaction, proof })
    const { intent } = request
    const denied = intent && { ...intent, denied_at: intent.denied_at ?? Math.floor(Date.now() / 1000) }
    await lookLater(request, work, PERSIST_SECONDS, denied)
    return null
  }
}

async function lookLater(request: WorkingRequest, work: Work, seconds: number, intent?: SettlementIntent | null) {
  await snooze(request, work, { seconds, waiting: { for: 'settlement', until: inSeconds(seconds) }, intent })
}

function openOffer(request: WorkingRequest, work: Work): OfferedPayment {
  if (!request.payment_sealed) throw new Error(`request ${request.id} holds no payment`)
  return { payload: openPayload(work.secrets.payload, request.id, request.payment_sealed), bound: request.payment }
}

async function release(request: WorkingRequest, work: Work, reason: string) {
  const { quoteTtlSeconds, maxInFlightPerPayer } = work.config
  await transact(work.db, (tx) => releasePayment(tx, request, { reason, quoteTtlSeconds, maxInFlightPerPayer }))
  work.metrics.moves.inc({ state: 'unpaid' })
  await work.changeEvents.add(request.id)
}
