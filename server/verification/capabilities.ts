// The discovery document: what can be bought here, in the interface's words. In the modes that move no real money, mode
// and networks say what is true instead.
import { z } from 'zod'
import type { Api } from '../context.ts'
import { type Database, sql } from '../db/pool.ts'
import { completedResult, LIMITS, PRICE, SCHEMA_VERSION, verificationInput } from './result.ts'

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
  mcp_tool: z.literal('service_verify_source'),
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

/** Schemas are computed once: they do not change while a process runs. */
const inputSchema = z.toJSONSchema(verificationInput, { io: 'input' })
const outputSchema = z.toJSONSchema(completedResult)

export async function describeCapabilities(api: Api): Promise<Capabilities> {
  const { config, facilitator, baseUrl } = api
  return {
    service: 'Countersign',
    description:
      'Holds one public HTTPS page against one claim and answers with a verdict, exact quotes with code-point offsets ' +
      'and digests, and a signed receipt.',
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
    mcp_tool: 'service_verify_source',
    methodology_version: await findMethodology(api.db),
    networks: facilitator.accepts.map((terms) => terms.network),
    payment_mode: config.paymentMode,
    payment_protocol: 'x402-v2',
    price: { amount_atomic: PRICE.atomic, currency: PRICE.currency, decimals: PRICE.decimals, usd: PRICE.usd },
    public_discovery: true,
    schema_version: SCHEMA_VERSION,
    scope:
      'A verdict states only what the retrieved text says: a source may support a claim without the claim being true. ' +
      'TLS identifies the host that answered, not the credibility of its publisher.',
    verification_type: 'source',
  }
}

/** What the worker that reported last works by; where none can be asked for, the procedure's family name. */
async function findMethodology(db: Database): Promise<string> {
  try {
    const found = await db.maybeOneFirst(sql.prepared('find_methodology', z.object({ methodology: z.string() }))`
      select methodology from worker_beats order by beat_at desc limit 1`)
    return found ?? METHODOLOGY_FAMILY
  } catch {
    // Discovery answers 200 and nothing else; whether the database is well is for /readyz to say.
    return METHODOLOGY_FAMILY
  }
}

const METHODOLOGY_FAMILY = 'countersign'
