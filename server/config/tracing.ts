// Variables of traces, by the names that OpenTelemetry gives them.
import { z } from 'zod'
import { url } from './addresses.ts'
import { decimal } from './numbers.ts'

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

const pairs = z.string().regex(/^\s*[^=,\s]+\s*=[^,]*(,\s*[^=,\s]+\s*=[^,]*)*$/, 'must be name=value,name=value')

export const traceVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    schema: url,
    about: 'Receiver of traces by OTLP (HTTP, JSON); /v1/traces is appended. Unset: none',
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    schema: pairs,
    about: 'Its headers: name=value,name=value',
    secret: true as const,
  },
  OTEL_SERVICE_NAME: { schema: z.string().min(1), default: 'countersign', about: 'Name in traces' },
  OTEL_RESOURCE_ATTRIBUTES: {
    schema: pairs,
    about: 'Attributes in traces: name=value,name=value',
  },
  OTEL_TRACES_SAMPLER: {
    schema: z.enum(SAMPLERS),
    default: 'parentbased_always_on',
    about: "Which traces are exported. parentbased: a caller's traceparent decides",
  },
  OTEL_TRACES_SAMPLER_ARG: {
    schema: decimal(0, 1),
    default: '1',
    about: 'Share that traceidratio exports',
  },
}

interface Values {
  OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined
  OTEL_EXPORTER_OTLP_HEADERS?: string | undefined
  OTEL_SERVICE_NAME: string
  OTEL_RESOURCE_ATTRIBUTES?: string | undefined
  OTEL_TRACES_SAMPLER: (typeof SAMPLERS)[number]
  OTEL_TRACES_SAMPLER_ARG: number
}

/** Undefined where nothing is traced. */
export function readTracing(values: Values) {
  if (!values.OTEL_EXPORTER_OTLP_ENDPOINT) return undefined
  return {
    /** Base URL of the receiver; `/v1/traces` is appended. */
    endpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT,
    /** `name=value,name=value`. */
    headers: values.OTEL_EXPORTER_OTLP_HEADERS,
    serviceName: values.OTEL_SERVICE_NAME,
    /** Written like `headers`. */
    resourceAttributes: values.OTEL_RESOURCE_ATTRIBUTES,
    sampler: values.OTEL_TRACES_SAMPLER,
    /** From 0 to 1. */
    samplerRatio: values.OTEL_TRACES_SAMPLER_ARG,
  }
}
