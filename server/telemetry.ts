// Logs: lines of JSON without secrets, and one line for a dependency that is away. metrics.ts has the metrics.
import { AsyncLocalStorage } from 'node:async_hooks'
import { createRequire } from 'node:module'
import { type Logger, type LoggerOptions, pino } from 'pino'
import { isOutOfRoom, UnavailableError } from './errors.ts'
import { annotate, presentTraceId } from './tracing/spans.ts'

export { type Metrics, openMetrics } from './metrics.ts'
export type { Logger }

/**
 * Fields that are redacted in every log line. This is a second defence: no event logs a secret in the first place. The names are
 * those of HTTP headers, tool arguments, `_meta` and objects of this service.
 */
const SECRET_FIELDS = new Set([
  'authorization',
  'payment-signature',
  'x-payment',
  'idempotency-key',
  'x-service-recovery-token',
  'service_key',
  'api_key',
  'recovery_token',
  'webhook_secret',
  'signature',
  'payload',
  'payment_sealed',
  'x402/payment',
  'service/idempotency-key',
  'service/recovery-token',
  'taskId',
])
const CENSOR = '[redacted]'

export type LogFormat = 'json' | 'pretty'

/**
 * Opens the log, on stdout or `stream`. Secret fields are redacted at the top level and at the two levels below. Lines that are
 * written by work on a request have its `request_id` (see `aboutRequest`), and those of traced work its `trace_id`.
 * @param stream takes lines of JSON
 * @param format of stdout; by default `pretty` on a terminal, else `json`
 */
export function openLog(level: string, stream?: { write(line: string): void }, format?: LogFormat): Logger {
  const options = {
    level,
    base: undefined,
    formatters: { level: (level: string) => ({ level }), log: redactLine },
    serializers: SERIALIZERS,
    mixin: aboutLine,
    hooks: { logMethod: demoteOutages },
  }
  if (stream) return redactBindings(pino(options, stream))
  const isPretty = format ? format === 'pretty' : process.stdout.isTTY === true
  const pretty = isPretty ? openPretty() : undefined
  return redactBindings(pretty ? pino(options, pretty) : pino(options))
}

/** No formatter sees the bindings of a child, which are in each of its lines, so they are redacted when the child is made. */
function redactBindings(log: Logger): Logger {
  const { child } = log
  return Object.defineProperty(log, 'child', {
    value(this: Logger, bindings: Members, options?: object) {
      return Reflect.apply(child, this, [redactLine(bindings), options])
    },
  })
}

const SERIALIZERS = { err: describeError, error: describeError }

type Members = Record<string, unknown>

/** Levels of objects and lists below the line itself. */
const REDACTED_LEVELS = 2

/**
 * The line, or a copy in which secret fields have no value. pino's own `redact` reads each of its paths anew for each value of a line,
 * which costs more than all the rest of the line.
 */
function redactLine(line: Members): Members {
  if (!holdsSecret(line, REDACTED_LEVELS)) return line
  const redacted = copyWithoutSecrets(line, REDACTED_LEVELS)
  // What is written of these is what their serializers say.
  for (const key of Object.keys(SERIALIZERS)) if (key in line) redacted[key] = line[key]
  return redacted
}

/** @param levels below this value that are looked at */
function holdsSecret(value: unknown, levels: number): boolean {
  if (!isObject(value)) return false
  for (const key in value) {
    if (SECRET_FIELDS.has(key)) return true
    if (levels > 0 && holdsSecret(value[key], levels - 1)) return true
  }
  return false
}

/** The value itself if it holds no secret field, else a copy in which those have no value. */
function redact(value: unknown, levels: number): unknown {
  return isObject(value) && holdsSecret(value, levels) ? copyWithoutSecrets(value, levels) : value
}

/** A copy of an object or list in which secret fields have no value. */
function copyWithoutSecrets(value: Members, levels: number): Members {
  const copy = Array.isArray(value) ? [] : Object.create(Object.getPrototypeOf(value))
  for (const [key, member] of Object.entries(value)) {
    const isSecret = SECRET_FIELDS.has(key) && member !== undefined
    copy[key] = isSecret ? CENSOR : levels > 0 ? redact(member, levels - 1) : member
  }
  return copy
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)
}

/** Readable lines: time, level, event, then the other fields. Undefined if the optional package is not installed. */
function openPretty() {
  try {
    const load = createRequire(import.meta.url)
    // The cast is a part of the package's types. They are not imported, because an installation may lack the package.
    const { build } = load('pino-pretty') as { build(options: object): { write(line: string): void } }
    return build({
      colorize: process.stdout.isTTY === true,
      translateTime: 'SYS:HH:MM:ss.l',
      messageFormat: ({ event, msg }: { event?: string; msg?: string }) => [event, msg].filter(Boolean).join(' '),
      ignore: 'event',
      singleLine: true,
      sync: true,
    })
  } catch {
    return undefined
  }
}

/** The request that the log lines of a call or a job are about. */
const subject = new AsyncLocalStorage<{ request_id?: string }>()

/**
 * Runs work whose log lines are about a request.
 * @param requestId undefined if it is not known yet; `aboutRequest` sets it later
 */
export function withSubject<T>(requestId: string | undefined, work: () => T): T {
  return subject.run(requestId === undefined ? {} : { request_id: requestId }, work)
}

/** From here on, the lines of this call, and its span, are about the request. Does nothing outside of `withSubject`. */
export function aboutRequest(requestId: string): void {
  const about = subject.getStore()
  if (about) about.request_id = requestId
  annotate({ 'countersign.request_id': requestId })
}

function aboutLine() {
  const trace_id = presentTraceId()
  return { ...subject.getStore(), ...(trace_id && { trace_id }) }
}

/**
 * While the database is away or has no space, every loop and every call fails. The outage logs this once, so events with
 * such an error have level debug. Only the event of a process that ends because of it keeps its level.
 */
const demoteOutages: LoggerOptions['hooks'] & object extends { logMethod?: infer Method } ? Method : never = function (
  args,
  method,
  level,
) {
  const fields: unknown = args[0]
  const isOutage = typeof fields === 'object' && fields !== null && 'err' in fields && isOfOutage(fields.err)
  const { debug = 20, fatal = 60 } = this.levels.values
  if (isOutage && level > debug && level < fatal) this.debug(...args)
  else method.apply(this, args)
}

function isOfOutage(error: unknown): boolean {
  if (error instanceof UnavailableError) return error.code === 'provider_unavailable'
  return isOutOfRoom(error) || (error instanceof Error && isOutOfRoom(error.cause))
}

/**
 * Milliseconds after which a continuing outage is logged again: the first pause, which doubles each time, and the
 * longest pause.
 */
const REMINDERS_MS = [10_000, 600_000] as const

export interface Outage {
  /** The dependency did not answer. Logged at the first time, then at growing intervals. */
  failed(error: unknown): void
  /** The dependency answered. Logged if it was away. */
  worked(): void
}

/**
 * Logs when a dependency is away and when it is back: `dependency_away`, `dependency_still_away`, `dependency_back`.
 * @param dependency for example `database`
 * @param now milliseconds of a monotonic clock
 */
export function openOutage(log: Logger, dependency: string, now: () => number = () => performance.now()): Outage {
  let since: number | null = null
  let failures = 0
  let remindAt = 0
  const seconds = () => Math.round((now() - (since ?? now())) / 1000)
  return {
    failed(error) {
      failures++
      if (since === null) {
        since = now()
        remindAt = since + REMINDERS_MS[0]
        log.error({ event: 'dependency_away', dependency, reason: describeReason(error) })
      } else if (now() >= remindAt) {
        remindAt = now() + Math.min(now() - since, REMINDERS_MS[1])
        log.error({ event: 'dependency_still_away', dependency, seconds: seconds(), failures })
      }
    },
    worked() {
      if (since === null) return
      log.info({ event: 'dependency_back', dependency, seconds: seconds(), failures })
      since = null
      failures = 0
    },
  }
}

/** One line: code and message of the innermost cause, without a stack. */
function describeReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return describeReason(error.cause)
  // Node tries several addresses, and the message of its aggregate error is empty.
  if (error instanceof AggregateError && error.errors.length > 0) return describeReason(error.errors[0])
  return error.message || error.name
}

/** Name, message, code and stack of an error and its causes. Other members, which libraries add, may hold secrets. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack } = error
  const code = 'code' in error ? error.code : undefined
  return {
    name,
    message,
    ...(typeof code === 'string' ? { code } : {}),
    stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  }
}
