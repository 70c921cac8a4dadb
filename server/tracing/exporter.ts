// Exports spans by OTLP over HTTP, with OpenTelemetry's SDK. Loaded only where OTEL_EXPORTER_OTLP_ENDPOINT is set.
//
// Spans are sent in batches in the background. When the receiver is away, spans are dropped, and the log says so once and
// then at growing intervals; no call or job waits or fails because of it.
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Context,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { ExportResultCode, parseKeyPairsIntoRecord, parseTraceParent, TraceState } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Config } from '../config.ts'
import { type Logger, openOutage } from '../telemetry.ts'
import type { Attributes, Span, SpanOptions, SpanParent, Tracing } from './spans.ts'

type TraceSettings = NonNullable<Config['tracing']>

/**
 * Milliseconds between two batches; until a batch is given up, retries included; and for which the end of a process waits
 * for spans. A batch that is being sent would delay the end of the process, so its time is shorter.
 */
const TIMES_MS = { between: 2000, sending: 3000, end: 3500 }

/** Disposing sends the waiting spans, for 3.5 seconds at most. */
export function openExport(settings: TraceSettings, log: Logger): Tracing {
  const processor = new BatchSpanProcessor({
    exporter: reporting(buildExporter(settings), log),
    scheduledDelayMillis: TIMES_MS.between,
  })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.instance.id': `${hostname()}:${process.pid}`,
      ...parseKeyPairsIntoRecord(settings.resourceAttributes),
      'service.name': settings.serviceName,
    }),
    sampler: buildSampler(settings),
    spanProcessors: [processor],
  })
  const tracer = provider.getTracer('countersign')
  return {
    begin: (name, options, parent) => begin(tracer, contextOf(parent), name, options),
    async [Symbol.asyncDispose]() {
      // A failure was logged by `reporting`.
      await Promise.race([provider.shutdown().catch(() => {}), pause(TIMES_MS.end, undefined, { ref: false })])
    },
  }
}

function buildExporter({ endpoint, headers }: TraceSettings): SpanExporter {
  return new OTLPTraceExporter({
    url: `${endpoint}/v1/traces`,
    headers: parseKeyPairsIntoRecord(headers),
    timeoutMillis: TIMES_MS.sending,
  })
}

/** The exporter, with its failures in the log. */
function reporting(exporter: SpanExporter, log: Logger): SpanExporter {
  const outage = openOutage(log, 'receiver of traces')
  return {
    export(spans: ReadableSpan[], done) {
      exporter.export(spans, (result) => {
        if (result.code === ExportResultCode.SUCCESS) outage.worked()
        else outage.failed(result.error ?? new Error('the receiver did not accept the spans'))
        // The processor cannot do anything about a failure.
        done({ code: ExportResultCode.SUCCESS })
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  }
}

function buildSampler({ sampler, samplerRatio }: TraceSettings): Sampler {
  const root = ROOTS[sampler.replace('parentbased_', '')]?.(samplerRatio) ?? new AlwaysOnSampler()
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}

const ROOTS: Readonly<Record<string, (ratio: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
}

function contextOf({ traceparent, tracestate }: SpanParent = {}): Context {
  const parent = traceparent ? parseTraceParent(traceparent) : null
  if (!parent) return ROOT_CONTEXT
  const isKept = tracestate && tracestate.length <= MAX_TRACESTATE
  const traceState = isKept ? new TraceState(tracestate) : undefined
  return trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true, ...(traceState && { traceState }) })
}

/** Characters of a tracestate that W3C Trace Context requires to forward; a longer one may be dropped. */
const MAX_TRACESTATE = 512

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const

function begin(tracer: Tracer, parent: Context, name: string, { kind = 'internal', attributes }: SpanOptions): Span {
  const span = tracer.startSpan(
    name,
    { kind: KINDS[kind], ...(attributes && { attributes: { ...attributes } }) },
    parent,
  )
  return spanOf(tracer, span, trace.setSpan(parent, span))
}

function spanOf(tracer: Tracer, span: OtelSpan, context: Context): Span {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext()
  return {
    traceId,
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    tracestate: traceState?.serialize() || null,
    set: (attributes: Attributes) => void span.setAttributes({ ...attributes }),
    begin: (name, options) => begin(tracer, context, name, options),
    end(errorType) {
      if (errorType !== undefined) span.setAttribute('error.type', errorType).setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    },
  }
}
