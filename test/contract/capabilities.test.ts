// The published descriptor: the interface's values, schemas that judge as the interface does, and nothing but 200.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { privateKeyToAccount } from 'viem/accounts'
import { openAccountHarness } from '../accounts/harness.ts'
import { buildCheck, checkCapabilities, checkResult, expectCompleted, type Result } from '../interface.schema.ts'
import { openRawClient } from '../mcp/raw-client.ts'
import { harbourClaim, openScriptedFacilitator, payingFetch, startSystem, VERIFY } from '../system.ts'

const PATH = '/api/agent/v1/capabilities'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

async function describe(): Promise<Record<string, object>> {
  return (await (await fetch(system.url(PATH))).json()) as Record<string, object>
}

async function buy(t: Test): Promise<Result> {
  const options = { key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=20' } }
  return (await expectCompleted(t, await system.ask(options))).result
}

const digest = 'a'.repeat(64)
type Change = (result: Result) => void
const evidence = (stance: string, more: object = {}) => ({
  evidence_id: 'e1',
  quote: 'x',
  start: 0,
  end: 1,
  stance,
  source_sha256: digest,
  text_sha256: digest,
  ...more,
})
const verdict =
  (claim_support: string, ...stances: string[]): Change =>
  (result) =>
    Object.assign(result, {
      assessment_scope: 'source_local_semantic_support',
      claim_support,
      evidence: stances.map((stance) => evidence(stance)),
    })
const set =
  (path: string, value: unknown): Change =>
  (result) => {
    const steps = path.split('.')
    const last = steps.pop() ?? ''
    const owner = steps.reduce((at, step) => at[step] as Record<string, unknown>, result as Record<string, unknown>)
    if (value === undefined) delete owner[last]
    else owner[last] = value
  }

/** What still is a completed result by the interface's tables. */
const conforming: Record<string, Change> = {
  unchanged: () => {},
  supports: verdict('supports', 'mentions', 'supports'),
  contradicts: verdict('contradicts', 'contradicts', 'supports'),
  mixed: verdict('mixed', 'supports', 'contradicts'),
  'semantic, not enough': verdict('insufficient_evidence'),
  'semantic, not assessed': verdict('not_assessed', 'mentions'),
  'literal, not enough': set('claim_support', 'insufficient_evidence'),
  'no evidence': set('evidence', []),
  'six items': set('evidence', Array(6).fill(evidence('mentions'))),
  'a quote of 1000 emoji': set('evidence', [evidence('mentions', { quote: '🚢'.repeat(1000) })]),
  'an explanation of 800 emoji': set('explanation', '🚢'.repeat(800)),
  'an empty explanation': set('explanation', ''),
  'timeouts as decimals': set('limits', {
    max_text_chars: 100_000,
    timeout_seconds: '0.5',
    socket_timeout_seconds: '2.50',
  }),
  'max_text_chars alone': set('limits', { max_text_chars: 1 }),
  'a time of six decimals': set('served_at', '2026-11-20T10:00:00.123456Z'),
  'a time without fraction': set('served_at', '2026-11-20T10:00:00Z'),
  'content type in capitals': set('source.content_type', 'TEXT/HTML; Charset=UTF-8'),
  'content type bare': set('source.content_type', 'text/plain'),
  'paid on Base': set('payment.network', 'eip155:8453'),
  'paid on Solana': set('payment.network', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'),
  'paid on a Solana test chain': set('payment.network', 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'),
  'fees known': set('payment.facilitator_fee_usd', '0.001'),
  'a transaction': set('payment.transaction', '0xabc'),
  'a label': set('receipt.attestation.label', 'x'.repeat(200)),
}

/** What no longer is one. */
const violating: Record<string, Change> = {
  'an extra field': set('extra', 1),
  'no confidence': set('confidence', undefined),
  'a confidence': set('confidence', 0.9),
  'another version': set('schema_version', '1.0.1'),
  'not reachable': set('reachable', false),
  'pending as status': set('status', 'pending'),
  'a verdict unheard of': set('claim_support', 'true'),
  'a scope unheard of': set('assessment_scope', 'semantic'),
  'seven items': set('evidence', Array(7).fill(evidence('mentions'))),
  e7: set('evidence', [evidence('mentions', { evidence_id: 'e7' })]),
  'an empty quote': set('evidence', [evidence('mentions', { quote: '' })]),
  'a quote of 1001': set('evidence', [evidence('mentions', { quote: 'x'.repeat(1001) })]),
  'a start of 100000': set('evidence', [evidence('mentions', { start: 100_000 })]),
  'an end of 0': set('evidence', [evidence('mentions', { end: 0 })]),
  'a digest in capitals': set('evidence', [evidence('mentions', { text_sha256: 'A'.repeat(64) })]),
  'more in evidence': set('evidence', [evidence('mentions', { page: 1 })]),
  'an explanation of 801': set('explanation', 'x'.repeat(801)),
  'an empty claim': set('claim', ''),
  'a flag twice': set('risk_flags', ['a', 'a']),
  'a flag in capitals': set('risk_flags', ['A']),
  '33 flags': set(
    'risk_flags',
    Array.from({ length: 33 }, (_, n) => `f${n}`),
  ),
  'a time with an offset': set('checked_at', '2026-11-20T10:00:00+00:00'),
  'a time without seconds': set('checked_at', '2026-11-20T10:00Z'),
  'a time of seven decimals': set('checked_at', '2026-11-20T10:00:00.1234567Z'),
  'an id that is no UUID': set('request_id', '1'),
  'an empty methodology': set('methodology_version', ''),
  'source: http': set('source.final_url', 'http://site.test/'),
  'source: status 203': set('source.http_status', 203),
  'source: PDF': set('source.content_type', 'application/pdf'),
  'source: text/html5': set('source.content_type', 'text/html5'),
  'source: bytes as offsets': set('source.offset_unit', 'byte'),
  'source: a text too long': set('source.normalized_text', 'x'.repeat(100_001)),
  'source: six redirects': set('source.redirects', Array(6).fill({ url: 'https://site.test/', status: 301 })),
  'source: redirect 300': set('source.redirects', [{ url: 'https://site.test/', status: 300 }]),
  'source: redirect http': set('source.redirects', [{ url: 'http://site.test/', status: 301 }]),
  'source: too many bytes': set('source.decoded_bytes', 8_388_609),
  'source: more': set('source.title', 'x'),
  'identity: a publisher': set('source_identity.publisher_identity', 'Kelby Times'),
  'identity: no host': set('source_identity.hostname', ''),
  'limits: none': set('limits', {}),
  'limits: no fixture': set('limits', { max_text_chars: 1, fixture: false }),
  'limits: a minute and one': set('limits', { max_text_chars: 1, timeout_seconds: 61 }),
  'limits: a decimal as number': set('limits', { max_text_chars: 1, timeout_seconds: 0.5 }),
  'cache: a negative age': set('cache.age_seconds', -1),
  'payment: pending': set('payment.status', 'pending'),
  'payment: another network': set('payment.network', 'eip155:1'),
  'payment: a number': set('payment.amount_atomic', 30_000),
  'payment: 19 digits': set('payment.amount_atomic', '1'.repeat(19)),
  'payment: no fee said': set('payment.network_fee_usd', undefined),
  'payment: 7 decimals': set('payment.price_usd', '0.0300000'),
  'receipt: none': set('receipt', undefined),
  'receipt: another type': set('receipt.envelope.type', 'purchase'),
  'receipt: version 2': set('receipt.envelope.version', 2),
  'receipt: base64url': set('receipt.canonical_envelope_base64', 'a-_b'),
  'receipt: serial 0': set('receipt.attestation.serial', 0),
  'receipt: a short signature': set('receipt.attestation.sig_ed25519_hex', 'ab'),
  'receipt: more in it': set('receipt.attestation.proof', {}),
  'receipt: a long label': set('receipt.attestation.label', 'x'.repeat(201)),
  'receipt: no verification': set('receipt.verification', ''),
}

/** Of the right shape, and against one of the consistency rules. */
const inconsistent: Record<string, Change> = {
  'supports without': verdict('supports', 'mentions', 'contradicts'),
  'supports with nothing': verdict('supports'),
  'contradicts without': verdict('contradicts', 'supports'),
  'mixed without contradicts': verdict('mixed', 'supports', 'mentions'),
  'mixed without supports': verdict('mixed', 'contradicts'),
  'literal support': (result) => {
    verdict('supports', 'supports')(result)
    set('assessment_scope', 'literal_quotation_only')(result)
  },
  'literal with a stance': (result) => {
    verdict('not_assessed', 'supports')(result)
    set('assessment_scope', 'literal_quotation_only')(result)
  },
}

/** What the interface and the published schema say of a changed result; digests and signatures are no schema's business. */
function buildComparison(result: Result, published: object) {
  const checkPublished = buildCheck(published)
  return (change: Change) => {
    const copy = structuredClone(result)
    change(copy)
    return {
      interface: checkResult(copy).filter((fault) => fault.startsWith('/')),
      published: checkPublished(copy),
    }
  }
}

t.test('the published output schema judges shapes as the interface does', async (t) => {
  const { output_schema = {} } = await describe()
  const check = buildComparison(await buy(t), output_schema)
  for (const [about, change] of Object.entries(conforming))
    t.same(check(change), { interface: [], published: [] }, about)
  for (const [about, change] of Object.entries(violating)) {
    const faults = check(change)
    t.not(faults.interface.length, 0, `${about}: by the interface`)
    t.not(faults.published.length, 0, `${about}: as published`)
  }
})

t.test('the published output schema holds the consistency rules', async (t) => {
  const { output_schema = {} } = await describe()
  const check = buildComparison(await buy(t), output_schema)
  for (const [about, change] of Object.entries(inconsistent)) {
    const faults = check(change)
    t.not(faults.interface.length, 0, `${about}: by the interface`)
    t.not(faults.published.length, 0, `${about}: as published`)
  }
})

t.test('a result altered after signing is found out', async (t) => {
  const result = await buy(t)
  t.same(checkResult(result), [])
  const altered: Record<string, Change> = {
    explanation: set('explanation', 'Another.'),
    text: set('source.normalized_text', 'Another text.'),
    envelope: set('receipt.envelope.issued_at', '2026-01-01T00:00:00Z'),
    attestation: set('receipt.attestation.ts_ms', 1),
    key: set('receipt.attestation.pubkey_hex', digest),
  }
  for (const [about, change] of Object.entries(altered)) {
    const copy = structuredClone(result)
    change(copy)
    t.not(checkResult(copy).length, 0, about)
  }
})

const PAY_TO_EVM = privateKeyToAccount(`0x${'17'.repeat(32)}`).address
const PAY_TO_SOLANA = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'

t.test('in mainnet mode: exactly the values of the interface', async (t) => {
  const till = openScriptedFacilitator()
  const [first] = till.accepts
  if (!first) throw new Error('no terms')
  const solana = { ...first, network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' as const }
  const accepts = [{ ...first, network: 'eip155:8453' as const }, solana]
  await using mainnet = await startSystem({
    overrides: { facilitator: { ...till, accepts } },
    env: {
      PAYMENT_MODE: 'mainnet',
      FACILITATOR_URL: 'https://facilitator.example',
      SIGNING_SEED: '5e'.repeat(32),
      PAY_TO_EVM,
      PAY_TO_SOLANA,
      BASE_URL: 'https://verify.example',
      ASSESSMENT: 'literal',
      FIXTURE_HOSTS: '',
      FIXTURE_CA_FILE: '',
    },
  })
  const capabilities = (await (await fetch(mainnet.url(PATH))).json()) as Record<string, unknown>
  t.same(checkCapabilities(capabilities), [])
  t.equal(capabilities.payment_mode, 'mainnet')
  t.same(capabilities.networks, ['eip155:8453', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'])
  t.equal(capabilities.endpoint, `https://verify.example${VERIFY}`)
})

const AWAY = 'http://127.0.0.1:9'
const MAINNET = {
  PAYMENT_MODE: 'mainnet',
  FACILITATOR_URL: AWAY,
  EVM_RPC_URL: AWAY,
  SOLANA_RPC_URL: AWAY,
  SIGNING_SEED: '5e'.repeat(32),
  BASE_URL: 'https://verify.example',
  ASSESSMENT: 'literal',
}
const BASE = 'eip155:8453'
const SOLANA = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'

for (const [about, payTo, networks] of [
  ['both', { PAY_TO_EVM, PAY_TO_SOLANA }, [BASE, SOLANA]],
  ['Base alone', { PAY_TO_EVM }, [BASE]],
  ['Solana alone', { PAY_TO_SOLANA }, [SOLANA]],
] as const)
  t.test(`mainnet networks are those configured (${about}), also while the facilitator is down at start`, async (t) => {
    await using office = await openAccountHarness({ ...MAINNET, ...payTo })
    t.same((await office.call('GET', PATH)).body.networks, networks)
    const { ask } = openRawClient(new URL('/mcp', office.address).href)
    const { tools } = (await ask('tools/list')).body.result
    const tool = tools.find(({ name }: { name: string }) => name === 'service_verify_source')
    t.same(tool._meta['service/networks'], networks)
  })

t.test('the default of max_age_seconds is published wherever the input is, and filled into no body', async (t) => {
  const age = (schema: unknown) => {
    const { properties } = schema as { properties: { options: { properties: { max_age_seconds: object } } } }
    return properties.options.properties.max_age_seconds
  }
  const shape = { type: 'integer', minimum: 0, maximum: 300, default: 60 }
  t.match(age((await describe()).input_schema), shape)
  const { paths } = await (await fetch(system.url('/openapi.json'))).json()
  t.match(age(paths[VERIFY].post.requestBody.content['application/json'].schema), shape)
  const { tools } = (await openRawClient(system.url('/mcp')).ask('tools/list')).body.result
  const tool = tools.find(({ name }: { name: string }) => name === 'service_verify_source')
  t.match(age(tool.inputSchema), shape)

  const key = randomUUID()
  const body = harbourClaim(system.site)
  const { request_id } = (await (await system.ask({ key, body })).json()) as { request_id: string }
  const stored = await system.sql('select body from verification_requests where id = $1', [request_id])
  t.same(stored, [{ body }])
})

t.test('the scope says what a verdict does not say', async (t) => {
  const { scope, methodology_version } = await describe()
  t.match(scope, /true|truth/i)
  t.match(scope, /TLS/)
  t.match(scope, /publisher|credib/i)
  t.equal(methodology_version, (await buy(t)).methodology_version, 'as results name it')
})

t.test('nothing but 200: with its database away, and past the limit of requests', async (t) => {
  await using twin = await system.openTwin({}, { RATE_LIMIT_PER_MINUTE: '1' })
  const get = () => fetch(new URL(PATH, twin.address))
  t.equal((await get()).status, 200)
  t.equal((await get()).status, 200, 'past the limit')
  await using broken = await system.openTwin()
  const { db } = broken.api
  broken.api.db = new Proxy(db, { get: () => () => Promise.reject(new Error('Connection terminated unexpectedly')) })
  t.equal((await fetch(new URL(PATH, broken.address))).status, 200, 'without its database')
  broken.api.db = db
})
