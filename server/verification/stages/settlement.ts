// The stage of a verification in which money may move: from the assessed request to the entry in the ledger.
import { transact } from '../../db/pool.ts'
import { askTraced } from '../../payments/facilitators/facilitator-span.ts'
import { openPayload } from '../../payments/seal.ts'
import type { OfferedPayment, PaymentPayload, SettlementIntent, SettlementOutcome } from '../../payments/x402.ts'
import { annotate } from '../../tracing/spans.ts'
import { releasePayment, type WorkingRequest } from '../request.ts'
import { assertServable } from './completion.ts'
import { inSeconds, snooze } from './snooze.ts'
import type { StageTools } from './stage-tools.ts'
import { advance, enter } from './steps.ts'

/**
 * Seconds until work on a settling or settled request begins again after its attempts are used up. The service never
 * gives up such a request.
 */
export const PERSIST_SECONDS = 60

/** Stores the intent before the facilitator is called: from this commit on the authorization may be used by others. */
export async function prepareSettlement(request: WorkingRequest, tools: StageTools): Promise<WorkingRequest> {
  assertServable(request, tools.log)
  const intent = await tools.facilitator.prepare(openOffer(request, tools))
  return advance(tools.steps, request, 'settling', { intent })
}

/**
 * Settles the payment and answers the outcome. A settlement that an earlier attempt has `begun` may have been made already, so the chain
 * is asked first; the facilitator is asked again, with the same authorization, only if the settlement was not made and still can be.
 */
export async function askForOutcome(
  request: WorkingRequest,
  tools: StageTools,
  { begun }: { begun: boolean },
): Promise<SettlementOutcome> {
  const { intent } = request
  if (!intent) throw new Error(`request ${request.id} is settling without intent`)
  const { facilitator } = tools
  const offer = openOffer(request, tools)
  const found = begun
    ? await askTraced(facilitator, 'resolve', offer, () => facilitator.resolve(offer, intent))
    : { kind: 'open' as const }
  const outcome =
    found.kind === 'open'
      ? await askTraced(facilitator, 'settle', offer, () => facilitator.settle(offer, intent))
      : found
  annotate({ 'countersign.settlement.outcome': outcome.kind })
  tools.metrics.settlements.inc({ outcome: outcome.kind })
  return outcome
}

/**
 * Enters a settlement that was made; it is committed with the completed result (see completion.ts). After a crash between the
 * facilitator's answer and that commit, the next attempt asks the chain and finds the same. Answers null while the outcome is open, and
 * the request then waits in the queue; and when nothing was charged, and the request is then offered for payment again.
 */
export async function enterOutcome(
  request: WorkingRequest,
  tools: StageTools,
  outcome: SettlementOutcome,
  { begun }: { begun: boolean },
): Promise<WorkingRequest | null> {
  if (outcome.kind === 'paid') {
    const { payment, response, proof, logIndex } = outcome
    return enter(request, 'settled', { settlement: { payment, response, proof, log_index: logIndex } })
  }
  if (outcome.kind === 'unknown') await checkLater(request, tools, outcome.retryAfterSeconds, outcome.intent)
  else await release(request, tools, outcome.reason)
  // An open outcome is logged once for each request, however often the chain is asked.
  const level = begun && outcome.kind === 'unknown' ? 'debug' : 'warn'
  tools.log[level]({ event: 'settlement', outcome: outcome.kind, reason: outcome.reason, request_id: request.id })
  return null
}

/**
 * For a settlement whose transaction has paid for another request. The request is neither completed nor offered for payment
 * again: it stays in `settling`, on the operator's list, until the chain shows what happened.
 */
export async function awaitProof(request: WorkingRequest, tools: StageTools): Promise<void> {
  const { intent, settlement } = request
  const { network, transaction } = settlement?.payment ?? {}
  tools.log.error({
    event: 'transaction_taken',
    request_id: request.id,
    network,
    transaction,
    proof: settlement?.proof,
  })
  const denied = intent && { ...intent, denied_at: intent.denied_at ?? Math.floor(Date.now() / 1000) }
  await checkLater(request, tools, PERSIST_SECONDS, denied)
}

async function checkLater(
  request: WorkingRequest,
  tools: StageTools,
  seconds: number,
  intent?: SettlementIntent | null,
) {
  await snooze(request, tools, { seconds, waiting: { for: 'settlement', until: inSeconds(seconds) }, intent })
}

/** The payloads that were opened, by their sealed bytes: each is needed for the intent and again for the settlement. */
const opened = new WeakMap<Buffer, PaymentPayload>()

function openOffer(request: WorkingRequest, { secrets }: Pick<StageTools, 'secrets'>): OfferedPayment {
  const { id, payment_sealed: sealed, payment: bound } = request
  if (!sealed) throw new Error(`request ${id} holds no payment`)
  const payload = opened.get(sealed) ?? openPayload(secrets.payload, id, sealed)
  opened.set(sealed, payload)
  return { payload, bound }
}

async function release(request: WorkingRequest, tools: StageTools, reason: string) {
  const { quoteTtlSeconds, maxInFlightPerPayer } = tools.config
  await transact(tools.db, (tx) => releasePayment(tx, request, { reason, quoteTtlSeconds, maxInFlightPerPayer }))
  tools.metrics.moves.inc({ state: 'unpaid' })
  await tools.changeEvents.add(request.id)
}
