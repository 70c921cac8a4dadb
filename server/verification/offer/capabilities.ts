// The discovery document: what can be bought here, in the interface's words. If the configuration offers less than the
// interface describes (no real money, one chain only, no paid tool), the members of the document say so.
import { z } from 'zod'
import type { Api } from '../../context.ts'
import { LIMITS } from '../../interface/limits.ts'
import { FURTHER_CLAIM, MOST_CLAIMS, PRICE } from '../../interface/price.ts'
import { completedResult, SCHEMA_VERSION, verificationInput } from '../../interface/result.ts'
import { resourceUrl } from '../../payments/discovery.ts'
import { configuredNetworks } from '../../payments/networks.ts'
import { configuredMethodologies } from './methodology.ts'
import { describeOffer } from './offer.ts'

export const capabilities = z.strictObject({
  service: z.string(),
  description: z.string(),
  endpoint: z.string(),
  idempotency: z.strictObject({
    minimum_length: z.literal(16),
    required_header: z.literal('Idempotency-Key'),
    result_retention_seconds: z.int(),
  }),
  input_schema: z.looseObject({}),
  output_schema: z.looseObject({}),
  limits: z.strictObject({
    cache_max_age_seconds: z.literal(60),
    claim_characters: z.literal(LIMITS.claimChars),
    formats: z.tuple([z.literal('text/html'), z.literal('text/plain')]),
    source_count: z.literal(1),
  }),
  /** Optional, because the interface has no value for a tool that is switched off. */
  mcp_tool: z.literal('service_verify_source').optional().describe('Left out where the tool is switched off.'),
  methodology_version: z.string(),
  networks: z.array(z.string()),
  payment_mode: z.enum(['offline', 'testnet', 'mainnet']),
  payment_protocol: z.literal('x402-v2'),
  price: z.strictObject({
    amount_atomic: z.literal(PRICE.atomic),
    currency: z.literal(PRICE.currency),
    decimals: z.literal(PRICE.decimals),
    usd: z.literal(PRICE.usd),
  }),
  public_discovery: z.literal(true),
  schema_version: z.literal(SCHEMA_VERSION),
  scope: z.string(),
  verification_type: z.literal('source'),
})
export type Capabilities = z.output<typeof capabilities>

/** Computed once, since schemas do not change while a process runs. */
const inputSchema = z.toJSONSchema(verificationInput, { io: 'input' })
const outputSchema = z.toJSONSchema(completedResult)

export async function describeCapabilities(api: Api): Promise<Capabilities> {
  const { config, baseUrl } = api
  const offer = describeOffer(config)
  return {
    service: 'Countersign',
    description: [
      ...(offer.closed ? [offer.closed] : []),
      offer.summary,
      offer.outcomes,
      `Stock x402 clients buy at ${resourceUrl('buy', baseUrl)}, without Idempotency-Key.`,
      `Up to ${MOST_CLAIMS} claims on one page are bought together at ${resourceUrl('claims', baseUrl)}: ${FURTHER_CLAIM.usd} USDC for each after the first.`,
      `Risk flags are explained at ${baseUrl}/risk-flags, methodology versions at ${baseUrl}/methodology.`,
      `The weights with which anyone can recompute a local verdict are listed at ${baseUrl}/model/.`,
    ].join(' '),
    endpoint: `${baseUrl}/api/agent/v1/verify-source`,
    idempotency: {
      minimum_length: 16,
      required_header: 'Idempotency-Key',
      result_retention_seconds: config.resultRetentionSeconds,
    },
    input_schema: inputSchema,
    output_schema: outputSchema,
    limits: {
      cache_max_age_seconds: 60,
      claim_characters: LIMITS.claimChars,
      formats: ['text/html', 'text/plain'],
      source_count: 1,
    },
    ...(offer.tool && { mcp_tool: 'service_verify_source' as const }),
    methodology_version: await findMethodology(api),
    networks: configuredNetworks(config),
    payment_mode: config.paymentMode,
    payment_protocol: 'x402-v2',
    price: { amount_atomic: PRICE.atomic, currency: PRICE.currency, decimals: PRICE.decimals, usd: PRICE.usd },
    public_discovery: true,
    schema_version: SCHEMA_VERSION,
    scope: offer.scope,
    verification_type: 'source',
  }
}

/** The methodology of the worker with the latest beat; without one, that of the configuration. */
async function findMethodology({ assessors, config }: Api): Promise<string> {
  const [configured] = configuredMethodologies(config)
  // Discovery always answers 200, even if the database fails; /readyz reports that.
  const [reported = configured] = await assessors.methodologies().catch(() => [])
  return reported
}
