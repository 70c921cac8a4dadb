// The extensions of a 402: `bazaar`, for catalogues of services, and `payment-identifier`, for clients that name their
// payments (x402 v2). A client echoes them; a facilitator catalogues what it receives.
import { isDeepStrictEqual } from 'node:util'
import type { PaymentPayload } from '@x402/core/types'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { AssessmentKind } from '../interface/assessment.ts'
import { MOST_CLAIMS } from '../interface/price.ts'
import { assessmentScope, claimSupport, stance } from '../interface/result.ts'

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
const CLAIMS_INPUT = {
  type: 'object',
  properties: {
    source_url: { type: 'string', format: 'uri' },
    claims: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: MOST_CLAIMS, uniqueItems: true },
    context: { type: 'string' },
  },
  required: ['source_url', 'claims'],
}
/** A body that can be bought. */
export const EXAMPLE = {
  source_url: 'https://example.com/',
  claim: 'This domain is for use in documentation examples.',
}
/** The same of verify-claims. */
export const CLAIMS_EXAMPLE = {
  source_url: EXAMPLE.source_url,
  claims: [EXAMPLE.claim, 'This domain may be used without prior coordination.'],
}
const VERDICT = {
  assessment_scope: 'source_local_semantic_support',
  claim_support: 'supports',
  evidence: [{ quote: '...', start: 0, end: 3, stance: 'supports' }],
}
const OUTPUTS: Record<AssessmentKind, object> = {
  literal: {
    assessment_scope: 'literal_quotation_only',
    claim_support: 'not_assessed',
    evidence: [{ quote: '...', start: 0, end: 3, stance: 'mentions' }],
  },
  local: VERDICT,
  semantic: VERDICT,
}

/** The example of a result, by what is bought. */
const OUTPUTS_OF = {
  source: (assessment: AssessmentKind) => OUTPUTS[assessment],
  claims: (assessment: AssessmentKind) => ({ claims: [{ claim: EXAMPLE.claim, ...OUTPUTS[assessment] }] }),
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

interface Described {
  input: Record<string, unknown>
  inputSchema: Record<string, unknown>
  /** Of the result, for catalogues that list it. */
  outputSchema?: Record<string, unknown>
  /** What is bought; by default one claim on one page. */
  sold?: keyof typeof OUTPUTS_OF
}

function discovery(
  assessment: AssessmentKind,
  { input, inputSchema, outputSchema, sold = 'source' }: Described,
): Extension {
  return {
    info: { input, output: { type: 'json', example: OUTPUTS_OF[sold](assessment) } },
    schema: {
      $schema: DRAFT,
      type: 'object',
      properties: {
        input: inputSchema,
        output: {
          type: 'object',
          properties: { type: { type: 'string' }, example: outputSchema ?? { type: 'object' } },
          required: ['type'],
        },
      },
      required: ['input'],
    },
  }
}

const httpCall = (body: object, schema: object) => ({
  input: { type: 'http', method: 'POST', bodyType: 'json', body },
  inputSchema: {
    type: 'object',
    properties: {
      type: { type: 'string', const: 'http' },
      method: { type: 'string', enum: ['POST'] },
      bodyType: { type: 'string', enum: ['json'] },
      body: schema,
    },
    required: ['type', 'method', 'bodyType', 'body'],
    additionalProperties: false,
  },
})
const overHttp = httpCall(EXAMPLE, INPUT)
const claimsOverHttp = { ...httpCall(CLAIMS_EXAMPLE, CLAIMS_INPUT), sold: 'claims' as const }

/** The members of a result that say what was found; the whole schema is in /openapi.json. */
const OUTPUT = {
  type: 'object',
  properties: {
    claim_support: { type: 'string', enum: [...claimSupport.options] },
    assessment_scope: { type: 'string', enum: [...assessmentScope.options] },
    explanation: { type: 'string' },
    evidence: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          quote: { type: 'string' },
          start: { type: 'integer' },
          end: { type: 'integer' },
          stance: { type: 'string', enum: [...stance.options] },
        },
      },
    },
    risk_flags: { type: 'array', items: { type: 'string' } },
    receipt: { type: 'object' },
  },
  required: ['claim_support', 'assessment_scope', 'evidence'],
}

const TOOL = 'service_verify_source'
const CLAIMS_TOOL = 'service_verify_claims'

/** Without an example and without the output: over MCP the terms are read by a model, so their JSON must be short. */
const overMcp = (toolName: string, inputSchema: object): Extension => ({
  info: { input: { type: 'mcp', toolName, inputSchema } },
  schema: {
    $schema: DRAFT,
    type: 'object',
    properties: { input: { type: 'object' } },
    required: ['input'],
  },
})

const extensionsOf = (assessment: AssessmentKind) => ({
  http: { bazaar: discovery(assessment, overHttp), 'payment-identifier': identifier },
  buy: { bazaar: discovery(assessment, { ...overHttp, outputSchema: OUTPUT }), 'payment-identifier': identifier },
  claims: { bazaar: discovery(assessment, claimsOverHttp), 'payment-identifier': identifier },
  mcp: { bazaar: overMcp(TOOL, INPUT), 'payment-identifier': identifier },
  mcpClaims: { bazaar: overMcp(CLAIMS_TOOL, CLAIMS_INPUT), 'payment-identifier': identifier },
})

/**
 * The `extensions` of a 402, by assessment and by the offer: of verify-source, of /buy, of verify-claims, of the paid tools over
 * MCP.
 */
export const extensions = {
  literal: extensionsOf('literal'),
  local: extensionsOf('local'),
  semantic: extensionsOf('semantic'),
}
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

const BUY_PATH = '/api/agent/v1/buy'
const CLAIMS_PATH = '/api/agent/v1/verify-claims'

/** The URL of the resource, by offer. @param baseUrl this service's public address */
export function resourceUrl(through: Through, baseUrl: string): string {
  switch (through) {
    case 'mcp':
      return `mcp://tool/${TOOL}`
    case 'mcpClaims':
      return `mcp://tool/${CLAIMS_TOOL}`
    case 'buy':
      return `${baseUrl}${BUY_PATH}`
    case 'claims':
      return `${baseUrl}${CLAIMS_PATH}`
    case 'http':
      return `${baseUrl}/api/agent/v1/verify-source`
  }
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
 * The offer that a payment echoes, and the client's payment identifier. An echoed `bazaar` entry must be one of this
 * service. The rest of the echo is ignored, since it is not passed on. Throws AppError `payment_invalid`.
 */
export function readEcho(payload: PaymentPayload): { through: Through; identifier: string | null } {
  const parsed = echoed.safeParse(payload.extensions ?? {})
  if (!parsed.success)
    throw new AppError('payment_invalid', 'An extension of the payment does not have its documented form.')
  const { bazaar, 'payment-identifier': named } = parsed.data
  const through = bazaar ? throughOf(bazaar.info, payload) : (mcpOf(payload) ?? overHttpOf(payload))
  if (!through) throw new AppError('payment_invalid', 'An extension of the payment does not repeat what was offered.')
  return { through, identifier: named?.info.id ?? null }
}

/** Accepts the entries of both assessments, since a restart may change the assessment. Null for any other entry. */
function throughOf(info: unknown, payload: PaymentPayload): Through | null {
  const isOffered = (through: Through) =>
    Object.values(extensions).some((offered) => isDeepStrictEqual(info, offered[through].bazaar.info))
  if (isOffered('http')) return overHttpOf(payload)
  return (['claims', 'mcp', 'mcpClaims'] as const).find(isOffered) ?? null
}

/** Two offers over HTTP have the same entry, and a payment may have none. */
function overHttpOf({ resource }: PaymentPayload): Through {
  if (resource?.url?.endsWith(CLAIMS_PATH)) return 'claims'
  return resource?.url?.endsWith(BUY_PATH) ? 'buy' : 'http'
}

function mcpOf({ resource }: PaymentPayload): Through | null {
  return (['mcp', 'mcpClaims'] as const).find((through) => resource?.url === resourceUrl(through, '')) ?? null
}
