// Spans: the interface between the service and OpenTelemetry. Rooms mark their work with `inSpan`; exporter.ts is the only
// file that imports the SDK, and is loaded only if traces are exported. Otherwise there is no span, and `inSpan` only calls
// its work.
//
// A span contains nothing that a caller sent, and no message of an error: no URL with its path, header, claim or key.
import { AsyncLocalStorage } from 'node:async_hooks'

/** By names of OpenTelemetry's semantic conventions, or under `countersign.`. Undefined members are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

export interface SpanOptions {
  /** Default `internal`. */
  kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  attributes?: Attributes
}

/** A span in the form of W3C Trace Context, for another process or from one. */
export interface SpanParent {
  /** Null where nothing was traced. */
  readonly traceparent?: string | null | undefined
  /** Data of other vendors; ignored without a traceparent. */
  readonly tracestate?: string | null | undefined
}

/** A part of a trace that is under way. */
export interface Span extends SpanParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  readonly traceparent: string
  readonly tracestate: string | null
  set(attributes: Attributes): void
  /** Begins a part of this span. */
  begin(name: string, options: SpanOptions): Span
  /** @param errorType a code that says why it failed; absent for one that did not */
  end(errorType?: string): void
}

/** Begins the spans that have no parent in this process. */
export interface Tracing extends AsyncDisposable {
  /**
   * Null where nothing is traced.
   * @param parent the span in another process that caused this one. A malformed `traceparent` begins a new trace. Malformed
   * parts of a `tracestate` are left out, and all of it if it is longer than the 512 characters of the standard
   */
  begin(name: string, options: SpanOptions, parent?: SpanParent): Span | null
}

export const NO_TRACING: Tracing = { begin: () => null, [Symbol.asyncDispose]: async () => {} }

const present = new AsyncLocalStorage<Span>()

/** Does the work as a part of the present span. Without a present span it only does the work. */
export function inSpan<T>(name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  const parent = present.getStore()
  return parent ? untilDone(parent.begin(name, options), work) : work()
}

export interface TraceOptions extends SpanOptions {
  /** As in `Tracing.begin`. */
  parent?: SpanParent
}

/** Does the work in a span without a parent in this process. */
export function inTrace<T>(tracing: Tracing, name: string, options: TraceOptions, work: () => Promise<T>): Promise<T> {
  const span = tracing.begin(name, options, options.parent)
  return span ? untilDone(span, work) : work()
}

/** Name and options of the span of a job of the queue, for `inTrace`. */
export function processing(
  job: string,
  { attributes, ...options }: TraceOptions = {},
): [name: string, options: TraceOptions] {
  return [
    `process ${job}`,
    { kind: 'consumer', ...options, attributes: { ...messaging('process', job), ...attributes } },
  ]
}

/** Name and options of the span that stores a job, for `inSpan`. */
export function sending(job: string): [name: string, options: SpanOptions] {
  return [`send ${job}`, { kind: 'producer', attributes: messaging('send', job) }]
}

function messaging(operation: 'send' | 'process', job: string): Attributes {
  return {
    'messaging.system': 'graphile_worker',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': job,
  }
}

/** Runs `work`; the work, and everything it starts, is a part of this span. The caller ends the span. */
export function within<T>(span: Span, work: () => T): T {
  return present.run(span, work)
}

/** Adds attributes to the present span. */
export function annotate(attributes: Attributes): void {
  present.getStore()?.set(attributes)
}

/** The present span, to be stored for another process; its members are null without one. */
export function presentSpan(): { traceparent: string | null; tracestate: string | null } {
  const { traceparent = null, tracestate = null } = present.getStore() ?? {}
  return { traceparent, tracestate }
}

/** For log lines. */
export function presentTraceId(): string | undefined {
  return present.getStore()?.traceId
}

async function untilDone<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    const done = await present.run(span, work)
    span.end()
    return done
  } catch (error) {
    span.end(errorTypeOf(error))
    throw error
  }
}

/** The code of the error, or its name. Its message may hold what must not be exported. */
function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const code = 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^[\w.-]{1,64}$/.test(code) ? code : error.name
}
