// The interface specification as JSON Schema 2020-12, written by hand from its tables and independent of the service's schemas:
// tests compare the two.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Test } from 'tap'

/** An object without unknown properties. Without `required`, every property is required. */
function closed(properties: Record<string, object>, required = Object.keys(properties)) {
  return { type: 'object', properties, required, additionalProperties: false }
}

const sha256 = { type: 'string', pattern: '^[0-9a-f]{64}$' }
const timestamp = {
  type: 'string',
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,6})?Z$',
}
const uuid = {
  type: 'string',
  format: 'uuid',
  pattern: '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$',
}
const decimalUsd = { type: 'string', pattern: '^(0|[1-9][0-9]*)(\\.[0-9]{1,6})?$', maxLength: 32 }
const methodology = { type: 'string', minLength: 1, maxLength: 256 }
const sourceUrl = { type: 'string', format: 'uri', pattern: '^https://[^\\s]+$', maxLength: 2048 }
const pageUrl = { type: 'string', format: 'uri', pattern: '^https://', maxLength: 49152 }
const claim = { type: 'string', minLength: 1, maxLength: 2000 }
const whole = (minimum: number, maximum?: number) => ({ type: 'integer', minimum, ...(maximum && { maximum }) })
const orNull = (schema: object) => ({ anyOf: [schema, { type: 'null' }] })
const seconds = (maximum: number) => ({
  anyOf: [whole(1, maximum), { type: 'string', pattern: '^(0|[1-9][0-9]*)\\.[0-9]+$' }],
})

export const SOLANA_MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'
export const SOLANA_DEVNET = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'

export const requestSchema = closed(
  {
    source_url: sourceUrl,
    claim: { ...claim, pattern: '\\S' },
    options: closed({ max_age_seconds: whole(0, 300), max_price_usd: decimalUsd }, []),
  },
  ['source_url', 'claim'],
)

const evidenceSchema = closed({
  evidence_id: { type: 'string', pattern: '^e[1-6]$' },
  quote: { type: 'string', minLength: 1, maxLength: 1000 },
  start: whole(0, 99_999),
  end: whole(1, 100_000),
  stance: { enum: ['supports', 'contradicts', 'mentions'] },
  source_sha256: sha256,
  text_sha256: sha256,
})

const sourceSchema = closed({
  requested_url: sourceUrl,
  final_url: pageUrl,
  http_status: { const: 200 },
  content_type: {
    type: 'string',
    maxLength: 32_768,
    pattern: '^[tT][eE][xX][tT]/([hH][tT][mM][lL]|[pP][lL][aA][iI][nN])[ \\t]*(;.*)?$',
  },
  content_sha256: sha256,
  text_sha256: sha256,
  normalized_text: { type: 'string', maxLength: 100_000 },
  offset_unit: { const: 'unicode_codepoint' },
  redirects: {
    type: 'array',
    maxItems: 5,
    items: closed({ url: pageUrl, status: { enum: [301, 302, 303, 307, 308] } }),
  },
  wire_bytes: whole(0, 26_000_000),
  decoded_bytes: whole(0, 8_388_608),
})

const limitsSchema = closed(
  {
    fixture: { const: true },
    max_decoded_bytes: whole(1, 8_388_608),
    max_header_bytes: whole(1, 65_536),
    max_redirects: whole(0, 5),
    max_text_chars: whole(1, 100_000),
    max_wire_bytes: whole(1, 4_194_304),
    socket_timeout_seconds: seconds(15),
    timeout_seconds: seconds(60),
  },
  ['max_text_chars'],
)

const paymentSchema = closed({
  status: { const: 'settled' },
  provider: { type: 'string', minLength: 1, maxLength: 64 },
  mode: { enum: ['offline', 'testnet', 'mainnet'] },
  simulated: { type: 'boolean' },
  network: { enum: ['eip155:8453', 'eip155:84532', SOLANA_MAINNET, SOLANA_DEVNET, 'none'] },
  asset: { type: 'string', minLength: 1, maxLength: 128 },
  currency: { const: 'USDC' },
  amount_atomic: { type: 'string', pattern: '^(0|[1-9][0-9]{0,17})$' },
  price_usd: decimalUsd,
  transaction: orNull({ type: 'string', maxLength: 512 }),
  facilitator_fee_usd: orNull(decimalUsd),
  network_fee_usd: orNull(decimalUsd),
})

export const receiptSchema = closed({
  envelope: closed({
    type: { const: 'service.source-verification.purchase' },
    version: { const: 1 },
    request_id: uuid,
    result_sha256: sha256,
    checked_at: timestamp,
    methodology_version: methodology,
    payment: paymentSchema,
    issued_at: timestamp,
  }),
  canonical_envelope_base64: {
    type: 'string',
    minLength: 4,
    maxLength: 16_384,
    pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
  },
  attestation: closed({
    v: { const: 1 },
    serial: whole(1),
    subject_sha256: sha256,
    label: orNull({ type: 'string', maxLength: 200 }),
    requested_by: { type: 'string', minLength: 1, maxLength: 128 },
    key_id: whole(0),
    ts_ms: whole(0),
    ts_utc: timestamp,
    prev_hash: sha256,
    pubkey_hex: sha256,
    receipt_hash: sha256,
    sig_ed25519_hex: { type: 'string', pattern: '^[0-9a-f]{128}$' },
  }),
  verification: { type: 'string', minLength: 1, maxLength: 1000 },
})

const quotes = (stance: string) => ({
  properties: { evidence: { contains: { properties: { stance: { const: stance } }, required: ['stance'] } } },
})
const given = (property: string, value: string) => ({
  properties: { [property]: { const: value } },
  required: [property],
})

export const resultSchema = {
  ...closed({
    schema_version: { const: '1.0.0' },
    request_id: uuid,
    status: { const: 'completed' },
    verification_type: { const: 'source' },
    source: sourceSchema,
    reachable: { const: true },
    source_identity: closed({
      hostname: { type: 'string', minLength: 1, maxLength: 253 },
      tls_verified: { type: 'boolean' },
      publisher_identity: { const: 'unknown' },
    }),
    claim,
    claim_support: { enum: ['supports', 'contradicts', 'mixed', 'insufficient_evidence', 'not_assessed'] },
    explanation: { type: 'string', maxLength: 800 },
    evidence: { type: 'array', maxItems: 6, items: evidenceSchema },
    confidence: { type: 'null' },
    risk_flags: {
      type: 'array',
      maxItems: 32,
      uniqueItems: true,
      items: { type: 'string', maxLength: 128, pattern: '^[a-z][a-z0-9_]*$' },
    },
    checked_at: timestamp,
    served_at: timestamp,
    methodology_version: methodology,
    assessment_scope: { enum: ['source_local_semantic_support', 'literal_quotation_only'] },
    limits: limitsSchema,
    cache: closed({ hit: { type: 'boolean' }, age_seconds: whole(0), original_checked_at: timestamp }),
    payment: paymentSchema,
    receipt: receiptSchema,
  }),
  allOf: [
    {
      if: given('assessment_scope', 'literal_quotation_only'),
      // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
      then: {
        properties: {
          claim_support: { enum: ['not_assessed', 'insufficient_evidence'] },
          evidence: { items: { properties: { stance: { const: 'mentions' } } } },
        },
      },
    },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    { if: given('claim_support', 'supports'), then: quotes('supports') },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    { if: given('claim_support', 'contradicts'), then: quotes('contradicts') },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    { if: given('claim_support', 'mixed'), then: { allOf: [quotes('supports'), quotes('contradicts')] } },
  ],
}

/** HTTP 202, 400, 402, 404, 409, 410, 415, 422, 429, 503. */
export const nonCompletedSchema = closed(
  {
    schema_version: { const: '1.0.0' },
    status: { enum: ['failed', 'pending', 'payment_required'] },
    error: closed({
      code: { type: 'string', maxLength: 128, pattern: '^[a-z][a-z0-9_]*$' },
      message: { type: 'string', minLength: 1, maxLength: 2000 },
      retryable: { type: 'boolean' },
    }),
    request_id: uuid,
    payment_required: { type: 'object' },
    quote: { type: 'object' },
  },
  ['schema_version', 'status', 'error'],
)

const descriptor = {
  service: { type: 'string', minLength: 1 },
  description: { type: 'string', minLength: 1 },
  endpoint: { type: 'string', format: 'uri', pattern: '/api/agent/v1/verify-source$' },
  idempotency: {
    const: { minimum_length: 16, required_header: 'Idempotency-Key', result_retention_seconds: 86_400 },
  },
  input_schema: { type: 'object' },
  output_schema: { type: 'object' },
  limits: {
    const: { cache_max_age_seconds: 60, claim_characters: 2000, formats: ['text/html', 'text/plain'], source_count: 1 },
  },
  mcp_tool: { const: 'service_verify_source' },
  methodology_version: methodology,
  networks: { type: 'array', minItems: 1, items: { type: 'string' } },
  payment_mode: { enum: ['offline', 'testnet', 'mainnet'] },
  payment_protocol: { const: 'x402-v2' },
  price: { const: { amount_atomic: '30000', currency: 'USDC', decimals: 6, usd: '0.03' } },
  public_discovery: { const: true },
  schema_version: { const: '1.0.0' },
  scope: { type: 'string', minLength: 1 },
  verification_type: { const: 'source' },
}

export const capabilitiesSchema = {
  type: 'object',
  properties: descriptor,
  required: Object.keys(descriptor),
  if: given('payment_mode', 'mainnet'),
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  then: { properties: { networks: { const: ['eip155:8453', SOLANA_MAINNET] } } },
}

/**
 * A validator of JSON Schema 2020-12, formats checked.
 * @param formats formats that are not checked; any other format that ajv does not know fails to compile
 */
export function openAjv(formats: readonly string[] = []) {
  const strict = { strict: true, strictTypes: false, strictRequired: false }
  // To make the code of a check shorter takes as long as to make the check, and each process makes hundreds of them.
  const ajv = new Ajv2020({ allErrors: true, ...strict, code: { optimize: false } })
  addFormats.default(ajv)
  for (const format of formats) ajv.addFormat(format, true)
  return ajv
}

/** Compiles once, for the first value; returns the problems of a value, one line each, none when it conforms. */
export function buildCheck(schema: object): (value: unknown) => string[] {
  let validate: ReturnType<ReturnType<typeof openAjv>['compile']> | undefined
  return (value) => {
    validate ??= openAjv(['base64']).compile(schema)
    return validate(value)
      ? []
      : (validate.errors ?? []).map((error) => `${error.instancePath || '/'} ${error.message}`)
  }
}

export const checkRequest = buildCheck(requestSchema)
export const checkReceipt = buildCheck(receiptSchema)
export const checkNonCompleted = buildCheck(nonCompletedSchema)
export const checkCapabilities = buildCheck(capabilitiesSchema)
const checkResultShape = buildCheck(resultSchema)

interface Evidence {
  quote: string
  start: number
  end: number
  source_sha256: string
  text_sha256: string
}

export interface Result extends Record<string, unknown> {
  request_id: string
  claim: string
  claim_support: string
  evidence: Evidence[]
  checked_at: string
  served_at: string
  methodology_version: string
  source: Record<string, unknown> & { content_sha256: string; text_sha256: string; normalized_text: string }
  cache: { hit: boolean; age_seconds: number; original_checked_at: string }
  payment: Record<string, unknown>
  receipt: {
    envelope: Record<string, unknown>
    canonical_envelope_base64: string
    attestation: Record<string, unknown> & { serial: number; pubkey_hex: string; sig_ed25519_hex: string }
  }
}

/** The problems of a completed result: its shape, and the rules on quotes, digests and the receipt that no schema can express. */
export function checkResult(value: unknown): string[] {
  const shape = checkResultShape(value)
  if (shape.length > 0) return shape
  const result = value as Result
  const rules: [string, boolean][] = [...evidenceRules(result), ...clockRules(result), ...receiptRules(result)]
  return rules.filter(([, holds]) => !holds).map(([rule]) => rule)
}

function evidenceRules({ evidence, source }: Result): [string, boolean][] {
  const text = [...source.normalized_text]
  return [
    ['text_sha256 is of normalized_text', source.text_sha256 === hex(Buffer.from(source.normalized_text))],
    ...evidence.flatMap((item, index): [string, boolean][] => [
      [`evidence ${index}: start < end`, item.start < item.end],
      [`evidence ${index}: quote at its offsets`, text.slice(item.start, item.end).join('') === item.quote],
      [`evidence ${index}: source_sha256`, item.source_sha256 === source.content_sha256],
      [`evidence ${index}: text_sha256`, item.text_sha256 === source.text_sha256],
    ]),
  ]
}

function clockRules({ cache, checked_at, served_at }: Result): [string, boolean][] {
  const age = Math.floor((Date.parse(served_at) - Date.parse(checked_at)) / 1000)
  return [
    ['checked_at = cache.original_checked_at', checked_at === cache.original_checked_at],
    ['served_at is not before checked_at', age >= 0],
    ['age_seconds counts from checked_at to served_at on a hit', cache.age_seconds === (cache.hit ? age : 0)],
  ]
}

function receiptRules(value: Result): [string, boolean][] {
  const { receipt, ...result } = value
  const { envelope, attestation } = receipt
  const { receipt_hash, sig_ed25519_hex, ...signed } = attestation
  const envelopeBytes = Buffer.from(canonical(envelope))
  const signedBytes = Buffer.from(canonical(signed))
  return [
    ['result_sha256', envelope.result_sha256 === hex(Buffer.from(canonical(result)))],
    ['canonical envelope', receipt.canonical_envelope_base64 === envelopeBytes.toString('base64')],
    ['subject_sha256', attestation.subject_sha256 === hex(envelopeBytes)],
    ['receipt_hash', receipt_hash === hex(signedBytes)],
    ['signature', verify(null, signedBytes, publicKey(attestation.pubkey_hex), Buffer.from(sig_ed25519_hex, 'hex'))],
    ['ts_utc says ts_ms', Date.parse(String(attestation.ts_utc)) === attestation.ts_ms],
    ['requested_by and label', attestation.requested_by === 'source-verification' && attestation.label === null],
    ...(['request_id', 'checked_at', 'methodology_version', 'payment'] as const).map((name): [string, boolean] => [
      `envelope.${name} repeats the result's`,
      canonical(envelope[name]) === canonical(result[name]),
    ]),
  ]
}

function hex(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function publicKey(pubkeyHex: string) {
  const x = Buffer.from(pubkeyHex, 'hex').toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}

/** RFC 8785 for the values of a result: integers only, members in the order of UTF-16 code units. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}

export interface NonCompleted {
  status: string
  error: { code: string; message: string; retryable: boolean }
  request_id?: string
  payment_required?: Record<string, unknown>
}

const STATUS_OF = new Map<number, string>([
  [202, 'pending'],
  [402, 'payment_required'],
])

/** Asserts that a response without a result conforms to the interface, and returns its body. */
export async function expectNonCompleted(
  t: Test,
  response: Response,
  status: number,
  about = '',
): Promise<NonCompleted> {
  const text = await response.text()
  t.equal(response.status, status, `${about} ${status}: ${text.slice(0, 300)}`)
  t.match(response.headers.get('content-type'), /^application\/json(;|$)/, `${about} is JSON`)
  const body = parse(text)
  t.same(checkNonCompleted(body), [], `${about} has the shape of a non-completed body`)
  t.equal(body.status, STATUS_OF.get(status) ?? 'failed', `${about} says its status`)
  t.equal(response.headers.has('payment-response'), false, `${about} carries no settlement`)
  t.equal(response.headers.has('payment-required') && status !== 402, false, `${about} asks for no payment, unless 402`)
  return body
}

/** Asserts that a 200 conforms to the interface, and returns the result with its bytes. */
export async function expectCompleted(t: Test, response: Response): Promise<{ result: Result; bytes: string }> {
  const bytes = await response.text()
  t.equal(response.status, 200, bytes.slice(0, 300))
  t.match(response.headers.get('content-type'), /^application\/json(;|$)/, 'a result is JSON')
  const result = parse(bytes) as unknown as Result
  t.same(checkResult(result), [], 'the result conforms to the interface')
  t.equal(response.headers.has('payment-required'), false, 'a result has no payment terms')
  return { result, bytes }
}

function parse(text: string): NonCompleted {
  try {
    return JSON.parse(text)
  } catch {
    return { status: 'not JSON', error: { code: '', message: text, retryable: false } }
  }
}
