// A receiver of traces that speaks OTLP over HTTP with JSON, as a collector does. It keeps the spans, and can fail.
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedSpan {
  name: string
  traceId: string
  spanId: string
  /** Empty for the first span of a trace. */
  parentSpanId: string
  /** Empty where there is none. */
  traceState: string
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number
  /** 2: failed. */
  status: number
  attributes: Record<string, unknown>
  /** Attributes of the process. */
  resource: Record<string, unknown>
}

export interface TraceReceiver extends AsyncDisposable {
  /** The setting that makes a process export its spans here. */
  env: { OTEL_EXPORTER_OTLP_ENDPOINT: string }
  spans: ReceivedSpan[]
  /** Every request as text. */
  bodies: string[]
  headers: IncomingHttpHeaders[]
  /** In place of an answer of success. */
  answer: ((response: ServerResponse) => void) | undefined
}

interface Pair {
  key: string
  value: { stringValue?: string; intValue?: number; doubleValue?: number; boolValue?: boolean }
}
interface Export {
  resourceSpans: {
    resource: { attributes: Pair[] }
    scopeSpans: {
      spans: (Omit<ReceivedSpan, 'attributes' | 'status' | 'resource'> & {
        attributes: Pair[]
        status: { code: number }
      })[]
    }[]
  }[]
}

export async function openTraceReceiver(): Promise<TraceReceiver> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    self.headers.push(request.headers)
    self.bodies.push(text)
    if (request.url === '/v1/traces') self.spans.push(...spansIn(JSON.parse(text)))
    if (self.answer) self.answer(response)
    else response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const self: TraceReceiver = {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` },
    spans: [],
    bodies: [],
    headers: [],
    answer: undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
  return self
}

function spansIn({ resourceSpans }: Export): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ name, traceId, spanId, parentSpanId = '', traceState = '', kind, status, attributes }) => ({
        ...{ name, traceId, spanId, parentSpanId, traceState, kind, status: status.code },
        attributes: readPairs(attributes),
        resource: readPairs(resource.attributes),
      })),
    ),
  )
}

function readPairs(pairs: Pair[]): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map(({ key, value }) => [
      key,
      value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue ?? null,
    ]),
  )
}

/** The spans below one, as lines with two spaces for each level, each level in order of name. */
export function drawTree(spans: readonly ReceivedSpan[], parentSpanId: string, indent = ''): string[] {
  return spans
    .filter((span) => span.parentSpanId === parentSpanId)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((span) => [`${indent}${span.name}`, ...drawTree(spans, span.spanId, `${indent}  `)])
}
