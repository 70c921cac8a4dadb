// The facilitator and the nodes of chains, with their outages in the log: once when one is away, then at growing intervals, and once
// when it is back. A call about a payment that fails counts against that payment; whether the facilitator or the node is away is
// decided by a question of ours. So no payment can make one count as away.
//
// Only codes are logged: a message may quote a payment, or the URL of a node with its key.
import { SettleError, VerifyError } from '@x402/core/types'
import { causeCode } from '../../errors.ts'
import { type Logger, type Metrics, openOutage } from '../../telemetry.ts'
import type { PaymentNetwork } from '../chains/payment-network.ts'
import { type FacilitatorCalls, isAboutPayment, reasonOfNoAnswer } from './facilitator-answers.ts'

/** Counts what failed at payments although our own question was answered. */
export type CallFailures = Pick<Metrics, 'paymentCallFailures'>

/** The same calls. @param provider the name of the facilitator */
export function watchFacilitator<Calls extends FacilitatorCalls & { getSupported(): Promise<unknown> }>(
  calls: Calls,
  provider: string,
  log: Logger,
  metrics?: CallFailures,
): Pick<Calls, 'verify' | 'settle' | 'getSupported'> {
  const watch = watcherOf({ log, metrics }, `facilitator ${provider}`, {
    ask: () => calls.getSupported(),
    reasonOf: (error) => (isAnswer(error) ? null : reasonOfNoAnswer(error)),
  })
  return {
    verify: watch.aboutPayment(calls.verify),
    settle: watch.aboutPayment(calls.settle),
    getSupported: watch.ours(calls.getSupported),
  }
}

/** A payment that the facilitator refused is an answer. */
function isAnswer(error: unknown): boolean {
  return error instanceof SettleError || (error instanceof VerifyError && isAboutPayment(error.statusCode))
}

/** The same network, whose node is watched in what payments wait for. */
export function watchNode(network: PaymentNetwork, log: Logger, metrics?: CallFailures): PaymentNetwork {
  const question = { ask: () => network.height(), reasonOf: reasonOfSilence }
  const watch = watcherOf({ log, metrics }, `node of ${network.id}`, question)
  return {
    ...network,
    balanceOf: watch.aboutPayment(network.balanceOf),
    height: watch.ours(network.height),
    findSettlement: watch.aboutPayment(network.findSettlement),
  }
}

/** Why the node gave no answer; null for one that answered with an error of JSON-RPC, whose codes are below 0. */
export function reasonOfSilence(error: unknown): string | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (codesOf(cause).some((code) => typeof code === 'number' && code < 0)) return null
  }
  return causeCode(error)
}

/** The code of an error, and the one that a library for Solana adds. */
function codesOf(error: Error): unknown[] {
  const context = 'context' in error ? error.context : undefined
  return [
    'code' in error ? error.code : undefined,
    typeof context === 'object' && context !== null && '__code' in context ? context.__code : undefined,
  ]
}

interface Question {
  /** Asks what no caller has a part in. */
  ask(): Promise<unknown>
  /** Null for an error that is an answer. */
  reasonOf(error: unknown): string | null
}

interface Reports {
  log: Logger
  metrics: CallFailures | undefined
}

type Call<Given extends unknown[], Answer> = (...given: Given) => Promise<Answer>

/** Reports how calls end: `ours` at once, `aboutPayment` after our own question if they failed. */
function watcherOf({ log, metrics }: Reports, dependency: string, { ask, reasonOf }: Question) {
  const outage = openOutage(log, dependency)
  // Prometheus sees no increase in a sample that first appears with 1.
  metrics?.paymentCallFailures.inc({ dependency }, 0)
  let isAsking = false
  let askedAt = Number.NEGATIVE_INFINITY

  /** @param failure why a call about a payment failed */
  async function askOurs(failure: string) {
    if (isAsking || performance.now() - askedAt < LEAST_MS) return
    isAsking = true
    const reason = await ask().then(() => null, reasonOf)
    if (reason === null) {
      outage.worked()
      log.warn({ event: 'payment_call_failed', dependency, reason: failure })
      metrics?.paymentCallFailures.inc({ dependency })
    } else outage.failed(reason)
    isAsking = false
    askedAt = performance.now()
  }

  function watching(failed: (reason: string) => void) {
    return <Given extends unknown[], Answer>(call: Call<Given, Answer>): Call<Given, Answer> =>
      async (...given) => {
        try {
          const answer = await call(...given)
          outage.worked()
          return answer
        } catch (error) {
          const reason = reasonOf(error)
          if (reason === null) outage.worked()
          else failed(reason)
          throw error
        }
      }
  }

  return { ours: watching(outage.failed), aboutPayment: watching((reason) => void askOurs(reason)) }
}

/** Between two of our questions, so that failing payments do not cost us one each. */
const LEAST_MS = 1000
