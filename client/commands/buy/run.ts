// Runs the command `buy`: one purchase with a question before it, progress during it, and a verdict in words after it.
import { visible } from '../../arguments.ts'
import { formatUsd } from '../../batch/money.ts'
import { claimsOf, FURTHER_CLAIM } from '../../batch/order.ts'
import type { Bought, Ending, Question } from '../../batch/purchase.ts'
import { citableResults } from '../../citation.ts'
import { questionOf, tellMode } from '../batch/report.ts'
import type { ExitStatus } from '../command.ts'
import { confirm } from '../confirm.ts'
import { fetchEvidence, isWithoutEvidence } from '../evidence.ts'
import { checkReplaceable, diskFault, isOfDisk, replaceFile } from '../files.ts'
import { firstError, json, jsonLine, note, print } from '../output.ts'
import { type Offer, Purse, type PurseOptions } from '../purchasing.ts'
import { INTERRUPTED, stopAtSignals } from '../signals.ts'
import { readWhole } from '../toolkit.ts'
import { type Proof, unproved } from '../trust.ts'
import { explained, isUsage } from './buying.ts'
import { wordsOf } from './words.ts'

export interface BuyOptions extends PurseOptions {
  context?: string
  expect?: string
  'max-age'?: string
  out?: string
  evidence?: string
  again?: boolean
  yes?: boolean
  json?: boolean
}

/** Returns the exit status. Throws a UsageError. */
export function runBuy(url: string, claims: readonly string[], options: BuyOptions): Promise<ExitStatus> {
  return explained(() => run(url, claims, options))
}

async function run(source_url: string, claims: readonly string[], options: BuyOptions): Promise<ExitStatus> {
  const { expect = 'supports' } = options
  const question = askedBy(source_url, claims, options)
  const purse = await Purse.open(options)
  await checkReplaceable(options.out, options.evidence)
  using waiting = openWaiting()
  let status: ExitStatus = 0
  let isShown = false
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
      status = show(ending, proof, { ...options, expect, isInterrupted: waiting.signal.aborted })
      if (ending.kind !== 'completed') return
      isShown = true
      tellRecovery(purse.service, ending)
      await deliver(ending, purse.service, options)
    },
  )
  await buying.catch(async (thrown: unknown) => {
    const error = firstError(thrown)
    waiting.end()
    if (error instanceof LateEvidenceError) status = tell(options.json, 'evidence_pending', error.message, 6)
    // That a result does not verify weighs more than that it is not stored.
    else if (isShown)
      status = tell(options.json, 'not_delivered', undelivered(error, options.journal), status === 5 ? 5 : 6)
    else if (isUsage(error)) throw error
    else {
      const isOpen = await purse.hasOpenPayment(question).catch(() => true)
      status = showFault(error, isOpen, options)
    }
  })
  return status
}

/** The result was paid for and shown, but could not be written. The purchase does not count as shown, so --again buys nothing anew. */
class UndeliveredError extends Error {
  override name = 'UndeliveredError'
}

/** Writes what was bought to the files of the options: each of them, even if another one cannot be written. */
async function deliver(ending: Bought, service: string, { out, evidence, json: asJson }: BuyOptions): Promise<void> {
  let fault: unknown
  const attempt = (work: Promise<void>) =>
    work.catch((error: unknown) => {
      fault ??= error
    })
  if (out !== undefined) await attempt(keep('--out', out, ending.bytes))
  // A result that does not verify may name anything as its id.
  if (evidence !== undefined && ending.isVerified && !ending.fault)
    await attempt(saveEvidence(evidence, service, ending, asJson))
  if (fault) throw fault
}

/** Throws an UndeliveredError. */
async function keep(option: '--out' | '--evidence', file: string, bytes: Uint8Array): Promise<void> {
  await replaceFile(file, bytes).catch((cause: Error) => {
    const words = `The purchase is paid. ${cause.message}. The same command with another ${option} gets it again, and pays nothing.`
    throw new UndeliveredError(words, { cause })
  })
}

/** The result is shown, and is not in a file where it should be. */
function undelivered(error: unknown, folder: string): string {
  if (error instanceof UndeliveredError) return error.message
  return `The purchase is paid, and could not be kept. ${sentenceOf(error, folder)} The same command gets it again, and pays nothing.`
}

/** What went wrong, as a sentence; where a disk is at fault, of this folder, in which the payments are kept. */
function sentenceOf(error: unknown, folder: string): string {
  if (isOfDisk(error)) return diskFault(error, folder)
  const message = error instanceof Error ? error.message : String(error)
  return /[.!?]$/.test(message) ? message : `${message}.`
}

/** The package could not be fetched, and may be later. The purchase does not count as shown, so --again buys nothing anew. */
class LateEvidenceError extends Error {
  override name = 'LateEvidenceError'
}

/** Says on standard error how the result is fetched again: standard output is the result's. The token itself is never shown. */
function tellRecovery(service: string, { result, recovery }: Bought): void {
  // The id is the service's: another text must not be offered for pasting into a shell.
  if (!recovery || !UUID.test(result.request_id)) return
  note(
    `To fetch it again: ${['countersign', 'recover', service, result.request_id, '--token', recovery.file].map(quoted).join(' ')}\n`,
  )
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A word of a shell. */
function quoted(word: string): string {
  return /^[\w./:-]+$/.test(word) ? word : `'${visible(word).replaceAll("'", `'\\''`)}'`
}

/** Writes the package to the file, or says that there is none. Throws a LateEvidenceError or an UndeliveredError. */
async function saveEvidence(
  file: string,
  service: string,
  { result, recovery }: Bought,
  asJson?: boolean,
): Promise<void> {
  if (!recovery) {
    tell(asJson, 'no_evidence', 'The service gave no recovery token, so no evidence can be fetched.')
    return
  }
  const bytes = await fetchEvidence(service, result, recovery.token).catch((error: unknown) => {
    if (isWithoutEvidence(error)) return null
    throw new LateEvidenceError(
      `The evidence could not be fetched: ${(error as Error).message} The same command tries again, and pays nothing.`,
      { cause: error },
    )
  })
  if (!bytes) {
    const words = 'The service has no evidence of this result: it keeps none of what it reads, or no longer.'
    tell(asJson, 'no_evidence', `${words} ${file} is not written.`)
    return
  }
  await keep('--evidence', file, bytes)
  note(`Evidence: ${bytes.length.toLocaleString('en')} bytes in ${visible(file)}; countersign replay redoes it.\n`)
}

/** An unexpected error must not have the exit status of a verdict. */
function showFault(error: unknown, isOpen: boolean, { journal, json: asJson }: BuyOptions): ExitStatus {
  const words = sentenceOf(error, journal)
  return isOpen
    ? tell(asJson, 'failed', `${words} The same command goes on, and pays nothing twice.`, 6)
    : tell(asJson, 'failed', `${words} No payment is under way.`, 4)
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
function show(ending: Ending, proof: Proof | null, options: ShowOptions): ExitStatus {
  if (ending.kind === 'completed') {
    const { result, costUsd } = ending
    const found = proof ?? unproved('it was not examined')
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

function tell(asJson: boolean | undefined, code: string, message: string, status: ExitStatus = 1): ExitStatus {
  if (asJson) note(jsonLine({ error: { code, message } }))
  else note(`${visible(code)}: ${visible(message)}\n`)
  return status
}
