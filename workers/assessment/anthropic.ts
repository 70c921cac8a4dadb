// The client of the Messages API, of Anthropic and of self-hosted servers. One question, one answer; no tools, no URL, and
// no streaming, because a partial answer is useless. The retries of the SDK are off, because they would occupy a worker for
// as long as a server asks; here a request that has to wait long goes back to the queue.

import { setTimeout as sleep } from 'node:timers/promises'
import Anthropic, { APIConnectionTimeoutError, APIError, APIUserAbortError } from '@anthropic-ai/sdk'
import { AppError, causeCode } from '../../server/errors.ts'
import { type Logger, type Metrics, type Outage, openOutage } from '../../server/telemetry.ts'
import { annotate, inSpan, type SpanOptions } from '../../server/tracing/spans.ts'
import { answerSchema, UnusableAnswerError } from './answer.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { AssessorBusyError, type Circuit, type Failure, type Leave, MAX_PAUSE_MS } from './circuit.ts'
import type { Question } from './prompt.ts'
import { buildSemaphore } from './semaphore.ts'

export interface Usage {
  input: number
  output: number
  cacheWrite: number
  cacheRead: number
  /** Null when no prices are known. */
  usd: number | null
}

/**
 * USD for a million tokens. Tokens written to the cache cost a quarter more than uncached tokens, tokens read from it a
 * tenth.
 */
export interface Prices {
  input: number
  output: number
}

export interface Model {
  readonly id: string
  /**
   * Sends one question. Throws AssessorBusyError when the server does not answer now, AppError `assessment_failed` when it
   * never will, UnusableAnswerError when its answer is cut off or empty, and the signal's reason when that aborts.
   * @param until milliseconds since the epoch by which the answer is needed
   */
  ask(question: Question, options: { signal: AbortSignal; until: number }): Promise<{ written: string; usage: Usage }>
}

export interface ModelOptions {
  apiKey: string
  /** Unset: Anthropic. */
  baseUrl?: string
  model: string
  /** The longest answer, thinking included. */
  maxTokens: number
  /** For one attempt, from sending to the last byte. */
  timeoutMs: number
  /** Most questions at the same time. */
  concurrency: number
  circuit: Circuit
  prices: Prices | null
  metrics: Metrics
  log: Logger
  /** Waits between attempts; tests replace it. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Asks an Anthropic-compatible server. Nothing is read from the environment. */
export function anthropicModel(options: ModelOptions): Model {
  const client = buildClient(options)
  const semaphore = buildSemaphore(options.concurrency)
  const outage = openOutage(options.log, `model ${options.model}`)
  const pause = options.pause ?? ((ms, signal) => sleep(ms, undefined, { signal }))

  return {
    id: options.model,
    async ask(question, { signal, until }) {
      for (let attempt = 1; ; attempt++) {
        const leave = options.circuit.enter()
        try {
          const reply = await semaphore.pass(
            () =>
              inSpan(`chat ${options.model}`, describeCall(options), () =>
                askOnce(client, options, question, signal, until),
              ),
            signal,
          )
          leave.succeeded()
          outage.worked()
          return reply
        } catch (error) {
          const failure = settle(error, leave)
          report(failure, options.circuit, outage)
          if (!failure) throw error
          const waitMs = failure.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (attempt - 1) * (1 + Math.random() / 2)
          const isOver = attempt === ATTEMPTS || failure.lasting || waitMs > MAX_PAUSE_MS
          if (isOver || Date.now() + waitMs + LEAST_TIME_MS > until)
            throw new AssessorBusyError(failure.message, waitFor(options.circuit, waitMs), { cause: error })
          await pause(waitMs, signal)
        }
      }
    },
  }
}

function waitFor({ opensAt }: Circuit, waitMs: number): number {
  return Math.max(waitMs, opensAt === null ? 0 : opensAt - Date.now()) / 1000
}

/**
 * Reports the provider's failures to the circuit. Any other outcome shows that the provider answers, or says nothing about
 * it.
 */
function settle(error: unknown, leave: Leave): ProviderError | null {
  if (error instanceof ProviderError) {
    leave.failed(error)
    return error
  }
  if (error instanceof AppError || error instanceof UnusableAnswerError) leave.succeeded()
  else leave.abandoned()
  return null
}

/**
 * A single failure is not an outage; an outage begins when the circuit opens. A message may quote the question, so only
 * codes are logged.
 */
function report(failure: ProviderError | null, { opensAt }: Circuit, outage: Outage) {
  if (failure && opensAt !== null) outage.failed(`${failure.outcome} (${causeCode(failure.cause)})`)
}

function buildClient({ apiKey, baseUrl, timeoutMs }: ModelOptions): Anthropic {
  return new Anthropic({
    apiKey,
    authToken: null,
    webhookKey: null,
    baseURL: baseUrl ?? 'https://api.anthropic.com',
    // The SDK sends the key as bearer token; some servers expect it in `x-api-key`.
    defaultHeaders: baseUrl ? { 'x-api-key': apiKey } : {},
    maxRetries: 0,
    timeout: timeoutMs,
    logLevel: 'off',
    openTelemetry: false,
    // A redirect would take the key and the question to a host that the operator has not named.
    fetchOptions: { redirect: 'error' },
    fetch: boundedFetch(LONGEST_REPLY_BYTES),
  })
}

async function askOnce(
  client: Anthropic,
  options: ModelOptions,
  question: Question,
  signal: AbortSignal,
  until: number,
) {
  const { metrics, timeoutMs } = options
  const left = until - Date.now()
  if (left < LEAST_TIME_MS) throw new AssessorBusyError('there is no time left to ask', 1)
  const limit = AbortSignal.timeout(Math.min(timeoutMs, left))
  const end = metrics.modelSeconds.startTimer()
  let outcome: Outcome = 'ok'
  try {
    const message = await client.messages.create(requestOf(question, options), {
      signal: AbortSignal.any([signal, limit]),
    })
    const usage = usageOf(message, options.prices)
    countUsage(metrics, usage)
    annotate({ 'gen_ai.usage.input_tokens': usage.input, 'gen_ai.usage.output_tokens': usage.output })
    return { written: writtenIn(message, options), usage }
  } catch (error) {
    signal.throwIfAborted()
    const classified = limit.aborted ? new ProviderError('timeout', {}, error) : classify(error)
    outcome = outcomeOf(classified)
    if (outcome === 'rejected' || outcome === 'denied')
      options.log.error({ event: 'model_refused_call', outcome, ...refusalIn(error) })
    throw classified
  } finally {
    end()
    annotate({ 'countersign.model.outcome': outcome })
    metrics.modelCalls.inc({ outcome })
  }
}

/** By the conventions for generative models. Neither question nor answer is in a span. */
function describeCall({ model, maxTokens, baseUrl }: ModelOptions): SpanOptions {
  const server = baseUrl && { 'server.address': new URL(baseUrl).hostname }
  return {
    kind: 'client',
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.request.model': model,
      'gen_ai.request.max_tokens': maxTokens,
      ...server,
    },
  }
}

function requestOf({ system, page, claim }: Question, { model, maxTokens }: ModelOptions) {
  return {
    model,
    max_tokens: maxTokens,
    system,
    output_config: { format: { type: 'json_schema', schema: answerSchema } },
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: page },
          { type: 'text', text: claim },
        ],
      },
    ],
  } satisfies Anthropic.MessageCreateParamsNonStreaming
}

/** The text of a complete answer. Thinking and anything else that is not text is ignored. */
function writtenIn({ content, stop_reason }: Anthropic.Message, { log }: ModelOptions): string {
  if (stop_reason === 'refusal') {
    log.warn({ event: 'model_declined' })
    throw new AppError('assessment_failed', 'The model declined to assess this text. Nothing was charged.', {
      retryable: false,
    })
  }
  if (stop_reason === 'max_tokens' || stop_reason === 'model_context_window_exceeded')
    throw new UnusableAnswerError(`the answer was cut off: ${stop_reason}`)
  const blocks = Array.isArray(content) ? content : []
  const written = blocks.flatMap((block) =>
    block.type === 'text' && typeof block.text === 'string' ? [block.text] : [],
  )
  if (written.length === 0) throw new UnusableAnswerError('the answer holds no text')
  return written.join('')
}

/** Servers other than Anthropic's may omit counts. */
function usageOf({ usage }: Anthropic.Message, prices: Prices | null): Usage {
  const count = (value: unknown) => (typeof value === 'number' && value >= 0 ? value : 0)
  const [input, output] = [count(usage?.input_tokens), count(usage?.output_tokens)]
  const cacheWrite = count(usage?.cache_creation_input_tokens)
  const cacheRead = count(usage?.cache_read_input_tokens)
  const usd = prices && (prices.input * (input + 1.25 * cacheWrite + 0.1 * cacheRead) + prices.output * output) / 1e6
  return { input, output, cacheWrite, cacheRead, usd }
}

function countUsage(metrics: Metrics, usage: Usage) {
  metrics.modelTokens.inc({ kind: 'input' }, usage.input)
  metrics.modelTokens.inc({ kind: 'output' }, usage.output)
  metrics.modelTokens.inc({ kind: 'cache_write' }, usage.cacheWrite)
  metrics.modelTokens.inc({ kind: 'cache_read' }, usage.cacheRead)
  if (usage.usd !== null) metrics.modelUsd.inc(usage.usd)
}

/** The server failed, and may answer later. */
class ProviderError extends Error implements Failure {
  override name = 'ProviderError'
  readonly outcome: Outcome
  readonly retryAfterMs?: number
  readonly lasting?: boolean
  constructor(outcome: Outcome, { retryAfterMs, lasting }: Failure, cause: unknown) {
    super(`the model's server: ${outcome.replaceAll('_', ' ')}`, { cause })
    this.outcome = outcome
    this.retryAfterMs = retryAfterMs
    this.lasting = lasting
  }
}

type Outcome =
  | 'ok'
  | 'unusable'
  | 'declined'
  | 'timeout'
  | 'unreachable'
  | 'rate_limited'
  | 'overloaded'
  | 'denied'
  | 'rejected'

function outcomeOf(error: unknown): Outcome {
  if (error instanceof ProviderError) return error.outcome
  if (error instanceof UnusableAnswerError) return 'unusable'
  return error instanceof AppError && error.cause === undefined ? 'declined' : 'rejected'
}

/** The SDK's errors, and what the platform throws when a reply breaks off or is no JSON. */
function classify(error: unknown): unknown {
  if (error instanceof AppError || error instanceof UnusableAnswerError || error instanceof AssessorBusyError)
    return error
  if (error instanceof APIConnectionTimeoutError || error instanceof APIUserAbortError)
    return new ProviderError('timeout', {}, error)
  if (!(error instanceof APIError) || error.status === undefined) return new ProviderError('unreachable', {}, error)
  const retryAfterMs = retryAfter(error.headers)
  if (error.status === 429) return new ProviderError('rate_limited', { retryAfterMs }, error)
  if (error.status >= 500 || error.status === 408 || error.status === 409)
    return new ProviderError('overloaded', { retryAfterMs }, error)
  if (LASTING.has(error.status)) return new ProviderError('denied', { lasting: true }, error)
  return new AppError('assessment_failed', 'The model cannot be asked about this text. Nothing was charged.', {
    cause: error,
    retryable: false,
  })
}

/**
 * The parts of a refusal that may be logged: its message, and every field that is not a plain name, may quote the
 * question.
 */
function refusalIn(error: unknown) {
  if (!(error instanceof APIError)) return {}
  const name = (value: unknown) => (typeof value === 'string' && PLAIN_NAME.test(value) ? value : null)
  return { status: error.status, type: name(error.type), provider_request_id: name(error.requestID) }
}

/** Seconds, or a date; milliseconds in Anthropic's own header. Undefined when there is none that can be read. */
function retryAfter(headers: Headers | undefined): number | undefined {
  const ms = Number(headers?.get('retry-after-ms') ?? Number.NaN)
  if (ms >= 0) return ms
  const given = headers?.get('retry-after')?.trim()
  if (!given) return undefined
  if (/^\d+(?:\.\d+)?$/.test(given)) return Number(given) * 1000
  const at = Date.parse(given)
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}

/** A missing or wrong key, no money, no permission, an unknown model. */
const LASTING: ReadonlySet<number> = new Set([401, 402, 403, 404])
const PLAIN_NAME = /^[\w-]{1,64}$/
const ATTEMPTS = 3
const FIRST_PAUSE_MS = 500
/** An attempt with less time than this would only cost money. */
const LEAST_TIME_MS = 1000
const LONGEST_REPLY_BYTES = 4 * 1024 * 1024
