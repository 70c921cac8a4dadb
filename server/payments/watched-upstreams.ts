// The facilitator and the nodes of chains, with their outages in the log: once when one is away, then at growing intervals, and once
// when it is back. Only codes are logged: a message may quote a payment, or the URL of a node with its key.
import { SettleError, VerifyError } from '@x402/core/types'
import { causeCode } from '../errors.ts'
import { type Logger, type Outage, openOutage } from '../telemetry.ts'
import { type FacilitatorCalls, reasonOfNoAnswer } from './facilitator-answers.ts'
import type { PaymentNetwork } from './payment-network.ts'

/** The same calls. @param provider the name of the facilitator */
export function watchFacilitator<Calls extends FacilitatorCalls & { getSupported(): Promise<unknown> }>(
  calls: Calls,
  provider: string,
  log: Logger,
): Pick<Calls, 'verify' | 'settle' | 'getSupported'> {
  const outage = openOutage(log, `facilitator ${provider}`)
  const watch = watcherOf(outage, (error) => (isRefusal(error) ? null : reasonOfNoAnswer(error)))
  return { verify: watch(calls.verify), settle: watch(calls.settle), getSupported: watch(calls.getSupported) }
}

/** A payment that the facilitator refused is an answer. */
function isRefusal(error: unknown): boolean {
  return error instanceof SettleError || (error instanceof VerifyError && error.statusCode === 400)
}

/** The same network, whose node is watched in what payments wait for. */
export function watchNode(network: PaymentNetwork, log: Logger): PaymentNetwork {
  const watch = watcherOf(openOutage(log, `node of ${network.id}`), reasonOfSilence)
  return {
    ...network,
    balanceOf: watch(network.balanceOf),
    height: watch(network.height),
    findSettlement: watch(network.findSettlement),
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

/** Reports each outcome of a function. @param reasonOf null for an error that is an answer */
function watcherOf(outage: Outage, reasonOf: (error: unknown) => string | null) {
  return <Given extends unknown[], Answer>(ask: (...given: Given) => Promise<Answer>) =>
    async (...given: Given): Promise<Answer> => {
      try {
        const answer = await ask(...given)
        outage.worked()
        return answer
      } catch (error) {
        const reason = reasonOf(error)
        if (reason === null) outage.worked()
        else outage.failed(reason)
        throw error
      }
    }
}
