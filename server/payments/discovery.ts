// The extensions of a 402: `bazaar`, for catalogues of services, and `payment-identifier`, for clients that name their
// payments (x402 v2). A client echoes them; a facilitator catalogues what it receives.
import { isDeepStrictEqual } from 'node:util'
import type { PaymentPayload } from '@x402/core/types'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { AssessmentKind } from '../interface/assessment.ts'

const DRAFT = 'https://json-schema.org/draft/2020-12/schema'

/** The same for every configuration. */
const SERVICE = {
  serviceName: 'Countersign',
  tags: ['source-verification', 'quotation', 'citations', 'receipts'],
  mimeType: 'application/json',
} as const

/** Without limits: the whole schema is in /openapi.json, and a header must be small. */
const INPUT = {
  type: 'object',
  properties: { source_url: { type: 'string', format: 'uri' }, claim: { type: 'string' } },
  required: ['source_url', 'claim'],
}
const EXAMPLE = { source_url: 'https://example.com/', claim: 'This domain is for use in documentation examples.' }
const OUTPUTS: Record<AssessmentKind, object> = {
  literal: {
    assessment_scope: 'literal_quotation_only',
    claim_support: 'not_assessed',
    evidence: [{ quote: '...', start: 0, end: 3, stance: 'mentions' }],
  },
  semantic: {
    assessment_scope: 'source_local_semantic_support',
    claim_support: 'supports',
    evidence: [{ quote: '...', start: 0, end: 3, stance: 'supports' }],
  },
}

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

function discovery(
  assessment: AssessmentKind,
  input: Record<string, unknown>,
  inputSchema: Record<string, unknown>,
): Extension {
  return {
    info: { input, output: { type: 'json', example: OUTPUTS[assessment] } },
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

const overHttp = [
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
] as const

const TOOL = 'service_verify_source'
const overMcp = [
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
] as const

const extensionsOf = (assessment: AssessmentKind) => ({
  http: { bazaar: discovery(assessment, ...overHttp), 'payment-identifier': identifier },
  mcp: { bazaar: discovery(assessment, ...overMcp), 'payment-identifier': identifier },
})

/** The `extensions` of a 402, by assessment and protocol. */
export const extensions = { literal: extensionsOf('literal'), semantic: extensionsOf('semantic') }
export type Through = keyof ReturnType<typeof extensionsOf>

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

/** The resource that is sold, as its buyer and a facilitator read it. */
export interface Resource {
  url: string
  description: string
  assessment: AssessmentKind
}

/** The URL of the resource, by protocol. @param baseUrl this service's public address */
export function resourceUrl(through: Through, baseUrl: string): string {
  return through === 'mcp' ? `mcp://tool/${TOOL}` : `${baseUrl}/api/agent/v1/verify-source`
}

/** The `resource` of a 402, and of a payment that is passed to a facilitator. */
export function describeListing({ url, description }: Resource) {
  const { mimeType, serviceName, tags } = SERVICE
  return { url, description, mimeType, serviceName, tags: [...tags] }
}

/** The extensions of a payment that is passed to a facilitator. @param id the client's payment identifier */
export function nameExtensions(offered: Record<string, Extension>, id: string | null): Record<string, Extension> {
  return { ...offered, 'payment-identifier': { ...identifier, info: { ...identifier.info, ...(id && { id }) } } }
}

/**
 * The protocol whose offer a payment echoes, and the client's payment identifier. An echoed `bazaar` entry must be one of
 * this service. The rest of the echo is ignored, since it is not passed on. Throws AppError `payment_invalid`.
 */
export function readEcho(payload: PaymentPayload): { through: Through; identifier: string | null } {
  const parsed = echoed.safeParse(payload.extensions ?? {})
  if (!parsed.success)
    throw new AppError('payment_invalid', 'An extension of the payment does not have its documented form.')
  const { bazaar, 'payment-identifier': named } = parsed.data
  const through = bazaar ? throughOf(bazaar.info) : isOfMcp(payload) ? 'mcp' : 'http'
  if (!through) throw new AppError('payment_invalid', 'An extension of the payment does not repeat what was offered.')
  return { through, identifier: named?.info.id ?? null }
}

/** Accepts the entries of both assessments, since a restart may change the assessment. Null for any other entry. */
function throughOf(info: unknown): Through | null {
  const isOffered = (through: Through) =>
    Object.values(extensions).some((offered) => isDeepStrictEqual(info, offered[through].bazaar.info))
  return isOffered('http') ? 'http' : isOffered('mcp') ? 'mcp' : null
}

function isOfMcp({ resource }: PaymentPayload): boolean {
  return resource?.url === resourceUrl('mcp', '')
}
