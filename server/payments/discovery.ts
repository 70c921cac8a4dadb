// What a 402 says beside its terms, for catalogues and for clients that name their payments: the extensions `bazaar` and
// `payment-identifier` of x402 v2. A client echoes them; a facilitator catalogues what it is sent.
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { PaymentPayload } from './x402.ts'

const DRAFT = 'https://json-schema.org/draft/2020-12/schema'

export const SERVICE = {
  serviceName: 'Countersign',
  tags: ['fact-checking', 'verification', 'citations', 'receipts'],
  mimeType: 'application/json',
  description: 'Hold one public HTTPS page against one claim: a verdict with exact quotes and a signed receipt.',
} as const

/** Without its limits: the whole schema is in /openapi.json, and a header has to stay small. */
const INPUT = {
  type: 'object',
  properties: { source_url: { type: 'string', format: 'uri' }, claim: { type: 'string' } },
  required: ['source_url', 'claim'],
}
const EXAMPLE = { source_url: 'https://example.com/', claim: 'This domain is for use in documentation examples.' }
const OUTPUT = { claim_support: 'supports', evidence: [{ quote: '...', start: 0, end: 3 }] }

export interface Extension {
  info: Record<string, unknown>
  schema: Record<string, unknown>
}

const identifier: Extension = {
  info: { required: false },
  schema: {
    $schema: DRAFT,
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
    },
    required: ['required'],
  },
}

function discovery(input: Record<string, unknown>, inputSchema: Record<string, unknown>): Extension {
  return {
    info: { input, output: { type: 'json', example: OUTPUT } },
    schema: {
      $schema: DRAFT,
      type: 'object',
      properties: {
        input: inputSchema,
        output: {
          type: 'object',
          properties: { type: { type: 'string' }, example: { type: 'object' } },
          required: ['type'],
        },
      },
      required: ['input'],
    },
  }
}

const overHttp = discovery(
  { type: 'http', method: 'POST', bodyType: 'json', body: EXAMPLE },
  {
    type: 'object',
    properties: {
      type: { type: 'string', const: 'http' },
      method: { type: 'string', enum: ['POST'] },
      bodyType: { type: 'string', enum: ['json'] },
      body: INPUT,
    },
    required: ['type', 'method', 'bodyType', 'body'],
    additionalProperties: false,
  },
)

const TOOL = 'service_verify_source'
const overMcp = discovery(
  { type: 'mcp', toolName: TOOL, transport: 'streamable-http', inputSchema: INPUT, example: EXAMPLE },
  {
    type: 'object',
    properties: {
      type: { type: 'string', const: 'mcp' },
      toolName: { type: 'string' },
      transport: { type: 'string', enum: ['streamable-http', 'sse'] },
      inputSchema: { type: 'object' },
      example: { type: 'object' },
    },
    required: ['type', 'toolName', 'inputSchema'],
    additionalProperties: false,
  },
)

/** The `extensions` of a 402, by the protocol it leaves through. */
export const extensions = {
  http: { bazaar: overHttp, 'payment-identifier': identifier },
  mcp: { bazaar: overMcp, 'payment-identifier': identifier },
}

const echoed = z.object({
  bazaar: z.object({ info: z.unknown() }).optional(),
  'payment-identifier': z
    .object({
      info: z.object({
        required: z.literal(false),
        id: z
          .string()
          .regex(/^[a-zA-Z0-9_-]{16,128}$/)
          .optional(),
      }),
    })
    .optional(),
})

export type Protocol = keyof typeof extensions

/** The address that a payment names, by the protocol it comes through. @param baseUrl this service's public address */
export function resourceUrl(through: Protocol, baseUrl: string): string {
  return through === 'mcp' ? `mcp://tool/${TOOL}` : `${baseUrl}/api/agent/v1/verify-source`
}

/** What a 402, and a payment that is passed on, says of the resource at this address. */
export function resourceOf(url: string) {
  const { description, mimeType, serviceName, tags } = SERVICE
  return { url, description, mimeType, serviceName, tags: [...tags] }
}

/** The extensions of a payment that is passed on: what was offered, with the name that the client gave it. */
export function extensionsOf(through: Protocol, id: string | null): Record<string, Extension> {
  const offered = extensions[through]
  return { ...offered, 'payment-identifier': { ...identifier, info: { ...identifier.info, ...(id && { id }) } } }
}

/**
 * Which of our two offers a payment repeats, and the name that its client gave it, if any. What it echoes of the
 * catalogue's entry must be ours. The rest of the echo is not looked at: it is not passed on. Throws AppError
 * `payment_invalid`.
 */
export function readEcho(payload: PaymentPayload): { through: Protocol; identifier: string | null } {
  const parsed = echoed.safeParse(payload.extensions ?? {})
  if (!parsed.success)
    throw new AppError('payment_invalid', 'An extension of the payment does not have its documented form.')
  const { bazaar, 'payment-identifier': named } = parsed.data
  const ofMcp = bazaar ? isDeepStrictEqual(bazaar.info, overMcp.info) : isOfMcp(payload)
  if (bazaar && !ofMcp && !isDeepStrictEqual(bazaar.info, overHttp.info))
    throw new AppError('payment_invalid', 'An extension of the payment does not repeat what was offered.')
  return { through: ofMcp ? 'mcp' : 'http', identifier: named?.info.id ?? null }
}

function isOfMcp({ resource }: PaymentPayload): boolean {
  return resource?.url === resourceUrl('mcp', '')
}
