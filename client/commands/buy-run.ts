// Runs the command `buy`: one purchase with a question before it, progress during it, and a verdict in words after it.
import { rename, writeFile } from 'node:fs/promises'
import { visible } from '../arguments.ts'
import { formatUsd } from '../batch/money.ts'
import { claimsOf, FURTHER_CLAIM } from '../batch/order.ts'
import type { Ending, Question } from '../batch/purchase.ts'
import { citableResults } from '../citation.ts'
import { questionOf, tellMode } from './batch-report.ts'
import { wordsOf } from './buy-words.ts'
import { explained, isUsage } from './buying.ts'
import { confirm } from './confirm.ts'
import { readable } from './files.ts'
import { json, note, print } from './output.ts'
import { type Offer, Purse, type PurseOptions } from './purchasing.ts'
import { INTERRUPTED, stopAtSignals } from './signals.ts'
import { readWhole } from './toolkit.ts'
import { type Proof, unproved } from './trust.ts'

export interface BuyOptions extends PurseOptions {
  context?: string
  expect?: string
  'max-age'?: string
  out?: string
  again?: boolean
  yes?: boolean
  json?: boolean
}

/** Returns the exit status. Throws a UsageError. */
export function runBuy(url: string, claims: readonly string[], options: BuyOptions): Promise<number> {
  return explained(() => run(url, claims, options))
}

async function run(source_url: string, claims: readonly string[], options: BuyOptions): Promise<number> {
  const { expect = 'supports' } = options
  const question = askedBy(source_url, claims, options)
  const purse = await Purse.open(options)
  using waiting = openWaiting()
  let status = 0
  const buying = purse.buy(
    question,
    {
      again: options.again ?? false,
      signal: waiting.signal,
      onWait: waiting.begin,
      confirm: (offer) => ask(offer, claimsOf(question).length, options.yes),
    },
    async (ending, proof) => {
      waiting.end()
      status = await show(ending, proof, { ...options, expect, isInterrupted: waiting.signal.aborted })
    },
  )
  await buying.catch(async (error: unknown) => {
    if (isUsage(error)) throw error
    waiting.end()
    status = showFault(error, await purse.hasOpenPayment(question).catch(() => true), options.json)
  })
  return status
}

/** An error that nobody expected must not have the exit status of a verdict. */
function showFault(error: unknown, isOpen: boolean, asJson: boolean | undefined): number {
  const message = error instanceof Error ? error.message : String(error)
  return isOpen
    ? tell(asJson, 'failed', `${message} The same command goes on, and pays nothing twice.`, 6)
    : tell(asJson, 'failed', `${message} No payment is under way.`, 4)
}

/** One claim without a context is a question for verify-source, everything else one for verify-claims. */
function askedBy(
  source_url: string,
  claims: readonly string[],
  { context, 'max-age': age }: Pick<BuyOptions, 'context' | 'max-age'>,
): Question {
  const [claim = ''] = claims
  const common = {
    source_url,
    ...(age !== undefined && { max_age_seconds: readWhole('--max-age', age, 0, 300) }),
  }
  if (claims.length === 1 && context === undefined) return { ...common, claim }
  return { ...common, claims, ...(context !== undefined && { context }) }
}

function ask({ terms, capabilities, from }: Offer, claims: number, yes: boolean | undefined): Promise<boolean> {
  const price = BigInt(terms.amount)
  const [first, further] = [formatUsd(BigInt(capabilities.price.amount_atomic)), formatUsd(FURTHER_CLAIM)]
  note(
    claims === 1
      ? `One verification for ${formatUsd(price)} USDC, `
      : `${claims} claims in one purchase for ${formatUsd(price)} USDC (${first}, and ${further} for each further claim), `,
  )
  note(`paid to ${visible(terms.payTo)} on ${visible(terms.network)}, from ${from}.\n`)
  tellMode(capabilities)
  return confirm(questionOf(claims, price, capabilities), yes)
}

/** Says on standard error how long the result is waited for, and listens for signals meanwhile. */
function openWaiting() {
  const leave = new AbortController()
  const isTerminal = process.stderr.isTTY
  let timer: NodeJS.Timeout | undefined
  let stopping: ReturnType<typeof stopAtSignals> | undefined
  const end = () => {
    clearInterval(timer)
    if (timer && isTerminal) note('\r\x1b[K')
    timer = undefined
    stopping?.[Symbol.dispose]()
    stopping = undefined
  }
  return {
    signal: leave.signal,
    begin() {
      end()
      const started = performance.now()
      const say = () =>
        note(`${isTerminal ? '\r\x1b[K' : ''}Waiting for the result: ${seconds(started)} s${isTerminal ? '' : '\n'}`)
      say()
      timer = setInterval(say, isTerminal ? 1000 : 10_000)
      stopping = stopAtSignals(() => 'The purchase gets three seconds to end; Ctrl-C again leaves it at once.')
      stopping.abort.addEventListener('abort', () => leave.abort(stopping?.abort.reason), { once: true })
    },
    end,
    [Symbol.dispose]: end,
  }
}

const seconds = (started: number) => Math.round((performance.now() - started) / 1000)

interface ShowOptions extends BuyOptions {
  expect: string
  isInterrupted: boolean
}

/** Prints how the purchase ended. Returns the exit status. */
async function show(ending: Ending, proof: Proof | null, options: ShowOptions): Promise<number> {
  if (ending.kind === 'completed') {
    const { result, bytes, costUsd } = ending
    const found = proof ?? unproved('it was not examined')
    if (options.out !== undefined) await replace(options.out, bytes)
    const receipt_serial = result.receipt?.attestation?.serial ?? null
    if (options.json && found.isReadable) print(json({ result, verified: found.ok, cost_usd: costUsd, receipt_serial }))
    else if (options.json) print(json({ result: null, verified: false, cost_usd: costUsd, receipt_serial: null }))
    else print(wordsOf(ending, found))
    if (!found.ok) {
      if (options.json) tell(true, 'not_verified', `The result does not verify: ${found.words}`)
      return 5
    }
    return citableResults(result).every(({ claim_support }) => claim_support === options.expect) ? 0 : 1
  }
  const asJson = options.json
  switch (ending.kind) {
    case 'declined':
      return 2
    case 'over_budget':
      return tell(asJson, 'over_budget', `${ending.message} Nothing was bought.`, 3)
    case 'other_terms':
      return tell(asJson, 'other_terms', `${ending.message} Nothing was signed, and nothing is charged.`, 4)
    case 'failed': {
      const { code, message, status } = ending.error
      const words = /charged/i.test(message) ? message : `${message} Nothing was charged.`
      return tell(asJson, code, words, status === 400 ? 2 : 4)
    }
    case 'lost':
      return tell(asJson, 'no_result', `${ending.message} The payment may have been charged. --again buys anew.`, 5)
    case 'pending': {
      const status = options.isInterrupted ? INTERRUPTED : 6
      return tell(asJson, 'pending', `${ending.message} The same command goes on, and pays nothing twice.`, status)
    }
  }
}

function tell(asJson: boolean | undefined, code: string, message: string, status = 1): number {
  if (asJson) note(`${JSON.stringify({ error: { code, message } })}\n`)
  else note(`${visible(code)}: ${visible(message)}\n`)
  return status
}

/** Replaces the file completely, or not at all. */
async function replace(path: string, bytes: Uint8Array): Promise<void> {
  const next = `${path}.${process.pid}.new`
  await readable(path, async () => {
    await writeFile(next, bytes, { mode: 0o600 })
    await rename(next, path)
  })
}
