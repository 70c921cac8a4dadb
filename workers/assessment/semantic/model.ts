// One question, one answer, whatever protocol the model's server speaks; no tools, no URL, and no streaming, because a partial
// answer is useless. Attempts are counted here and not in an SDK, because that would occupy a worker for as long as a server
// asks; a request that has to wait long goes back to the queue.
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../../server/errors.ts'
import { type Logger, type Metrics, openOutage } from '../../../server/telemetry.ts'
import { buildSemaphore } from '../../../server/threads/semaphore.ts'
import { annotate, inSpan, type SpanOptions } from '../../../server/tracing/spans.ts'
import type { AssessmentTask } from '../assessor.ts'
import { heard, readAnswer, UnusableAnswerError } from './answer.ts'
import { AssessorBusyError, buildCircuit, type Circuit, type CircuitOptions, type Trouble } from './circuit.ts'
import {
  classify,
  inWords,
  isRejection,
  messageOf,
  type Outcome,
  outcomeOf,
  ProviderError,
  refusalIn,
  type ServerSettings,
  withoutKey,
} from './failures.ts'
import { linesOf } from './lines.ts'
import { claimPart, pagePart, type Question, SYSTEM } from './prompt.ts'

export interface Counts {
  input: number
  output: number
  cacheWrite: number
  cacheRead: number
}

export interface Usage extends Counts {
  /** Null when no prices are known. */
  usd: number | null
}

/**
 * USD for a million tokens. Tokens written to the cache cost a quarter more than uncached tokens, tokens read from it a tenth.
 */
export interface Prices {
  input: number
  output: number
}

/** What a server said. */
export interface Said {
  written: string
  /** `declined`: the model refuses; anything else but `whole`: the answer was cut off, and why. */
  ending: string
  usage: Counts
}

/** How one kind of server is asked. */
export interface Protocol {
  /** By the conventions for generative models. */
  readonly provider: 'anthropic' | 'openai'
  readonly settings: ServerSettings
  /** Parameters that a server may refuse, in the order in which they are left out. */
  readonly optional: readonly string[]
  /** Asks without the parameters in `without`. Throws what the SDK throws: errors with `status` and `headers`, or without. */
  ask(question: Question, without: ReadonlySet<string>, signal: AbortSignal): Promise<Said>
}

export interface Model {
  readonly id: string
  readonly circuit: Circuit
  /**
   * Sends one question. Throws AssessorBusyError when the server does not answer now, AppError `assessment_failed` when it
   * never will, UnusableAnswerError when its answer is cut off or empty, and the signal's reason when that aborts.
   */
  ask(question: Question, options: AskOptions): Promise<{ written: string; usage: Usage }>
}

export interface AskOptions extends Pick<AssessmentTask, 'lane'> {
  signal: AbortSignal
  /** Milliseconds since the epoch by which the answer is needed. */
  until: number
  /** Names the text of the page. */
  text: string
}

export interface ModelOptions {
  apiKey: string
  /** Unset: the provider's own. */
  baseUrl?: string
  model: string
  /** The longest answer, thinking included. */
  maxTokens: number
  /** For one attempt, from sending to the last byte. */
  timeoutMs: number
  /** Most questions at the same time. */
  concurrency: number
  prices: Prices | null
  metrics: Metrics
  log: Logger
  /** Tests replace these. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>
  circuit?: Pick<CircuitOptions, 'now' | 'schedule'>
}

/** A model behind a protocol. It tries our question at once. Nothing is read from the environment. */
export function openModel(protocol: Protocol, options: ModelOptions): Model {
  const { log } = options
  const tooSlow = () => new ProviderError('timeout', undefined, null)
  const semaphore = buildSemaphore(options.concurrency, { tooSlow, slowMs: options.timeoutMs / 20 })
  const outage = openOutage(log, `model ${options.model}`)
  const pause = options.pause ?? ((ms, signal) => sleep(ms, undefined, { signal }))
  const without = new Set<string>()
  const ask = (question: Question, signal: AbortSignal, until: number) =>
    inSpan(`chat ${options.model}`, describeCall(protocol, options), () =>
      askOnce({ protocol, options, without }, question, signal, until),
    )

  /** Our question. A server that refuses a parameter gets it without one after another. */
  async function tryOut(): Promise<Trouble | null> {
    for (;;) {
      try {
        const [limit, until] = [AbortSignal.timeout(LONGEST_TRIAL_MS), Date.now() + LONGEST_TRIAL_MS]
        const { written } = await semaphore.timed(() => ask(TRIAL, limit, until))
        const { verdict } = heard(readAnswer(written), written, TRIAL_WINDOW, TRIAL_MARK.masked)
        if (verdict !== 'supports') log.warn({ event: 'model_misread_trial', verdict })
        outage.worked()
        return null
      } catch (error) {
        const refused = protocol.optional.filter((name) => !without.has(name))
        const named = refused.find((name) => messageOf(error).includes(name)) ?? refused[0]
        if (isRejection(error) && named !== undefined) {
          without.add(named)
          log.info({ event: 'model_parameter_left_out', parameter: named })
          continue
        }
        without.clear()
        const problem = withoutKey(inWords(error, protocol.settings), options.apiKey)
        outage.failed(problem)
        return { problem, retryAfterMs: error instanceof ProviderError ? error.retryAfterMs : undefined }
      }
    }
  }

  const circuit = buildCircuit({ ask: tryOut, ...options.circuit })
  return {
    id: options.model,
    circuit,
    async ask(question, { signal, until, text, lane }) {
      await circuit.proved()
      for (let attempt = 1; ; attempt++) {
        const leave = circuit.enter(text)
        try {
          const reply = await semaphore.pass((end) => ask(question, end, until), signal, lane, leave.isSlow)
          leave.succeeded()
          return reply
        } catch (error) {
          if (!(error instanceof ProviderError)) {
            if (error instanceof AppError || error instanceof UnusableAnswerError) leave.failed({})
            throw error
          }
          const timedOut = error.outcome === 'timeout'
          leave.failed({ timedOut })
          const waitMs = error.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (attempt - 1) * (1 + Math.random() / 2)
          const isOver = attempt === ATTEMPTS || timedOut || error.outcome === 'denied' || waitMs > MAX_PAUSE_MS
          if (isOver || Date.now() + waitMs + LEAST_TIME_MS > until)
            throw new AssessorBusyError(error.message, Math.max(waitMs, timedOut ? HELD_MS : 0) / 1000, {
              cause: error,
            })
          await pause(waitMs, signal)
        }
      }
    },
  }
}

interface Call {
  protocol: Protocol
  options: ModelOptions
  without: ReadonlySet<string>
}

async function askOnce({ protocol, options, without }: Call, question: Question, signal: AbortSignal, until: number) {
  const { metrics, timeoutMs, log } = options
  const left = until - Date.now()
  if (left < LEAST_TIME_MS) throw new AssessorBusyError('there is no time left to ask', 1)
  const limit = AbortSignal.timeout(Math.min(timeoutMs, left))
  const end = metrics.modelSeconds.startTimer()
  let outcome: Outcome = 'ok'
  try {
    const said = await protocol.ask(question, without, AbortSignal.any([signal, limit]))
    const usage = priced(said.usage, options.prices)
    countUsage(metrics, usage)
    annotate({ 'gen_ai.usage.input_tokens': usage.input, 'gen_ai.usage.output_tokens': usage.output })
    return { written: whole(said, log), usage }
  } catch (error) {
    if (!(signal.reason instanceof ProviderError)) signal.throwIfAborted()
    const failure = signal.reason ?? (limit.aborted ? new ProviderError('timeout', undefined, error) : classify(error))
    outcome = outcomeOf(failure)
    if (outcome === 'rejected' || outcome === 'denied')
      log.error({ event: 'model_refused_call', outcome, ...refusalIn(error) })
    throw failure
  } finally {
    end()
    annotate({ 'countersign.model.outcome': outcome })
    metrics.modelCalls.inc({ outcome })
  }
}

/** By the conventions for generative models. Neither question nor answer is in a span. */
function describeCall({ provider }: Protocol, { model, maxTokens, baseUrl }: ModelOptions): SpanOptions {
  const server = baseUrl && { 'server.address': new URL(baseUrl).hostname }
  return {
    kind: 'client',
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': provider,
      'gen_ai.request.model': model,
      'gen_ai.request.max_tokens': maxTokens,
      ...server,
    },
  }
}

function whole({ written, ending }: Said, log: Logger): string {
  if (ending === 'declined') {
    log.warn({ event: 'model_declined' })
    throw new AppError('assessment_failed', 'The model declined to assess this text. Nothing was charged.', {
      retryable: false,
    })
  }
  if (ending !== 'whole') throw new UnusableAnswerError(`the answer was cut off: ${ending}`, written)
  if (written === '') throw new UnusableAnswerError('the answer holds no text', '')
  return written
}

function priced(counts: Counts, prices: Prices | null): Usage {
  const { input, output, cacheWrite, cacheRead } = counts
  const usd = prices && (prices.input * (input + 1.25 * cacheWrite + 0.1 * cacheRead) + prices.output * output) / 1e6
  return { ...counts, usd }
}

/** Servers may omit counts, or give nonsense. */
export const countOf = (value: unknown): number => (typeof value === 'number' && value >= 0 ? value : 0)

function countUsage(metrics: Metrics, usage: Usage) {
  metrics.modelTokens.inc({ kind: 'input' }, usage.input)
  metrics.modelTokens.inc({ kind: 'output' }, usage.output)
  metrics.modelTokens.inc({ kind: 'cache_write' }, usage.cacheWrite)
  metrics.modelTokens.inc({ kind: 'cache_read' }, usage.cacheRead)
  if (usage.usd !== null) metrics.modelUsd.inc(usage.usd)
}

const TRIAL_TEXT = 'Lighthouses of the coast\nThe lighthouse of Kelby is 21 metres high.'
const TRIAL_LINES = linesOf(TRIAL_TEXT)
const TRIAL_WINDOW = { first: 0, last: TRIAL_LINES.length - 1 }
const TRIAL_MARK = { nonce: '5eed5eed5eed5eed', masked: new Set<number>() }

/**
 * The fixed question by which a model is tried: at the start, and whenever strangers' questions fail. It is as small as a
 * question can be, and has everything that a question has.
 */
export const TRIAL: Question = {
  system: SYSTEM,
  page: pagePart({ text: TRIAL_TEXT, lines: TRIAL_LINES, ...TRIAL_MARK, retrieved: '2026-01-01' }, TRIAL_WINDOW, ''),
  claim: claimPart('The lighthouse of Kelby is 21 metres high.', TRIAL_MARK.nonce),
}

const ATTEMPTS = 3
const FIRST_PAUSE_MS = 500
/** A request that would have to wait longer goes back to the queue. */
const MAX_PAUSE_MS = 5000
/** The first time for which a text that timed out gets no turn; see circuit.ts. */
const HELD_MS = 15_000
/** An attempt with less time than this would only cost money. */
const LEAST_TIME_MS = 1000
const LONGEST_TRIAL_MS = 30_000
