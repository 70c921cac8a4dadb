// The only reader of the environment. Every variable is declared once here: what it means, its default, whether it is a
// secret. docs/configuration.md and `cli config` are generated from this list, so they always agree with it.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { PUBLIC_LIMITS } from './accounts/tiers.ts'
import { evmAddress, origin, publicAddress, url } from './config/addresses.ts'
import { assessmentProblems, assessmentVariables, readAssessment, readModel } from './config/assessment.ts'
import { missingStripe, pricesOfTwoTiers, readStripe } from './config/billing.ts'
import { captureVariables, readCapture } from './config/capture.ts'
import { isCdpSecret, missingCdpKeys, readCdpKey } from './config/cdp-key.ts'
import { HIDDEN, withoutCredentials } from './config/credentials.ts'
import { fixtureHosts, readFixtureHosts } from './config/fixtures.ts'
import { heapVariables } from './config/heap.ts'
import { logVariables } from './config/logging.ts'
import { lookVariables, readTry } from './config/looks.ts'
import { whole } from './config/numbers.ts'
import { platformAddress, reachProblems, reachVariables } from './config/reach.ts'
import { storeVariables } from './config/stores.ts'
import { certificatesProblem, readTimestamps, timestampVariables } from './config/timestamps.ts'
import { readTracing, traceVariables } from './config/tracing.ts'
import { errorMessage } from './errors.ts'
import { readWitnesses } from './receipts/witness-list.ts'

export type { StripeSettings } from './config/billing.ts'
export type { CdpKey } from './config/cdp-key.ts'

const port = whole(0, 65_535)
const flag = z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1')
const priceIds = z.string().regex(/^[^\s,]+(,[^\s,]+)*$/, 'must be price ids, separated by commas')
const solanaAddress = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/, 'must be a Solana address')
const cdpSecret = z.string().refine(isCdpSecret, 'must be the base64 of 64 bytes, or a P-256 key in PEM')
const seed = z.string().regex(/^[0-9a-f]{64}$/i, 'must be 32 bytes as 64 hex characters')

function checkWitnesses(text: string, context: z.RefinementCtx) {
  try {
    readWitnesses(text)
  } catch (error) {
    context.addIssue(errorMessage(error))
  }
}

export interface Variable {
  schema: z.ZodType
  default?: string
  about: string
  secret?: true
}

export const variables = {
  PORT: { schema: port, default: '8402', about: 'Port of the web process; 0: any free one' },
  HOST: { schema: z.string().min(1), default: '127.0.0.1', about: 'Address it listens on' },
  BASE_URL: {
    schema: publicAddress,
    about:
      'Public address; https and required outside offline mode. Unset: what the platform names (Heroku with dyno metadata, Render, Railway, Fly), else HOST and PORT',
  },
  ...reachVariables,
  DATA_DIR: {
    schema: z.string().min(1),
    default: '.data',
    about: 'Folder of embedded database and generated seed',
  },
  ...storeVariables,
  PAYMENT_MODE: {
    schema: z.enum(['offline', 'testnet', 'mainnet']),
    default: 'offline',
    about: 'offline: payment signatures are checked, no money moves. testnet: test money. mainnet: USDC',
  },
  FACILITATOR_URL: {
    schema: url,
    about: 'x402 facilitator; unset: x402.org in testnet, Coinbase in mainnet',
  },
  CDP_API_KEY_ID: { schema: z.string().min(1), about: 'Id of the Coinbase key' },
  CDP_API_KEY_SECRET: { schema: cdpSecret, about: 'Secret of the Coinbase key', secret: true },
  PAY_TO_EVM: { schema: evmAddress, about: 'Address on Base that receives payments' },
  PAY_TO_SOLANA: { schema: solanaAddress, about: 'Address on Solana that receives payments' },
  EVM_RPC_URL: {
    schema: url,
    about:
      'JSON-RPC node of Base, which confirms settlements. Unset: the facilitator is trusted; in doubt, a public node',
    secret: true,
  },
  SOLANA_RPC_URL: { schema: url, about: 'The same for Solana', secret: true },
  ...assessmentVariables,
  SIGNING_SEED: { schema: seed, about: 'Root of all signing keys: 32 bytes as 64 hex characters', secret: true },
  SIGNING_SEED_FILE: { schema: z.string().min(1), about: 'File of the seed, instead of SIGNING_SEED' },
  STRIPE_SECRET_KEY: {
    schema: z.string().regex(/^\S+$/, 'must not hold white space'),
    about: 'Key for subscriptions. Unset: simulated in offline mode, else none',
    secret: true,
  },
  STRIPE_WEBHOOK_SECRET: {
    schema: z.string().regex(/^\S+$/, 'must not hold white space'),
    about: 'Secret of the webhook BASE_URL/v1/stripe/webhook',
    secret: true,
  },
  STRIPE_PRICE_DEV: {
    schema: priceIds,
    about: 'Price of the dev tier. After a comma: earlier prices, whose subscribers keep it',
  },
  STRIPE_PRICE_PRO: { schema: priceIds, about: 'The same for the pro tier' },
  STRIPE_API_BASE: { schema: origin, about: "Address of the Stripe API. Unset: Stripe's own" },
  WITNESSES: {
    schema: z.string().superRefine(checkWitnesses),
    about: 'Witnesses that cosign checkpoints (C2SP tlog-witness): VKEY URL, ...',
  },
  ...timestampVariables,
  OPERATOR_TOKEN: {
    schema: z.string().min(16),
    about:
      'Token of /metrics and /operator. Unset: /metrics is open in offline mode without OFFLINE_PUBLIC, else closed',
    secret: true,
  },
  WORKER_CONCURRENCY: {
    schema: whole(1, 256),
    about: 'Parallel verifications of a worker. Unset: 32; with the local verifier 4 a thread',
  },
  WORKER_FETCHES: {
    schema: whole(0, 4096),
    default: '256',
    about: 'Slow fetches and settlements it keeps besides',
  },
  ...heapVariables,
  ...logVariables,
  ...traceVariables,
  VERIFICATION_ENABLED: { schema: flag, default: 'true', about: 'false: new verifications answer 503' },
  MCP_VERIFICATION_ENABLED: { schema: flag, default: 'true', about: 'false: the paid MCP tool is not listed' },
  MCP_VERIFY_CLAIMS_ENABLED: {
    schema: flag,
    default: 'false',
    about: 'true: lists the tool for several claims',
  },
  MCP_REGISTRY_AUTH: {
    schema: z.string().min(1).max(4096),
    about: 'Answer of /.well-known/mcp-registry-auth, which proves the domain',
  },
  QUOTE_TTL_SECONDS: { schema: whole(1, 86_400), default: '900', about: 'Seconds an unpaid quote is valid' },
  RESULT_RETENTION_SECONDS: {
    schema: whole(1),
    default: '86400',
    about: 'Seconds a result is kept; other values in offline mode only',
  },
  ...captureVariables,
  RATE_LIMIT_PER_MINUTE: {
    schema: whole(0),
    default: '600',
    about: 'Calls a minute of an address without API key or recovery token. 0: no limit',
  },
  MAX_IN_FLIGHT_PER_PAYER: {
    schema: whole(0, PUBLIC_LIMITS.most_in_flight_per_payer),
    default: String(PUBLIC_LIMITS.first_in_flight_per_payer),
    about: 'Verifications in flight of a new payer; settlements add one each, uncharged ends take one. 0: no limit',
  },
  MAX_QUEUE_SECONDS: {
    schema: whole(0, 3600),
    default: '30',
    about: 'Nothing is sold that would wait longer for a worker. 0: no limit',
  },
  ...lookVariables,
  TRUST_PROXY: { schema: whole(0, 16), default: '0', about: 'Trusted proxies in front (X-Forwarded-For)' },
  FIXTURE_HOSTS: {
    schema: fixtureHosts,
    about: 'For tests: hosts at given addresses, name=127.0.0.1:8443,... Not in mainnet mode',
  },
  FIXTURE_CA_FILE: { schema: z.string().min(1), about: 'CA certificate (PEM) of those hosts' },
} as const satisfies Record<string, Variable>

type VariableName = keyof typeof variables
type Values = {
  [N in VariableName]: (typeof variables)[N] extends { default: string }
    ? z.output<(typeof variables)[N]['schema']>
    : z.output<(typeof variables)[N]['schema']> | undefined
}

/** Lists every problem of the configuration, one line each. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(`The configuration is not valid:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`)
    this.problems = problems
  }
}

/** The variables of the environment whose names match, for a program that sets the others itself. */
export function findVariables(names: RegExp): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => names.test(name)))
}

/** Reads, defaults and cross-checks the variables. An empty value counts as unset. Throws ConfigError. */
export function readConfig(env: Readonly<Record<string, string | undefined>> = process.env) {
  const problems: string[] = []
  const values = readValues(env, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  problems.push(...contradictions(values))
  const fixtures = readFixtures(values, problems)
  const signingSeed = readSeed(values, problems)
  const timestampRoots = readCertificates('TIMESTAMP_CA_FILE', values.TIMESTAMP_CA_FILE, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return Object.freeze({
    values: Object.freeze(values),
    port: values.PORT,
    host: values.HOST,
    baseUrl: values.BASE_URL,
    dataDir: values.DATA_DIR,
    databaseUrl: values.DATABASE_URL,
    databaseDirectUrl: values.DATABASE_DIRECT_URL,
    databaseConnections: values.DATABASE_CONNECTIONS,
    redisUrl: values.REDIS_URL,
    paymentMode: values.PAYMENT_MODE,
    /** Other machines may reach a service on which nothing is really paid. */
    offlinePublic: values.PAYMENT_MODE === 'offline' && values.OFFLINE_PUBLIC,
    payToEvm: values.PAY_TO_EVM,
    payToSolana: values.PAY_TO_SOLANA,
    facilitatorUrl: values.FACILITATOR_URL,
    cdpKey: readCdpKey(values),
    evmRpcUrl: values.EVM_RPC_URL,
    solanaRpcUrl: values.SOLANA_RPC_URL,
    model: readModel(values),
    assessment: readAssessment(values),
    stripe: readStripe(values),
    stripeMissing: missingStripe(values),
    signingSeed,
    witnesses: values.WITNESSES ? readWitnesses(values.WITNESSES) : [],
    timestamps: readTimestamps(values, timestampRoots),
    operatorToken: values.OPERATOR_TOKEN,
    workerConcurrency: values.WORKER_CONCURRENCY ?? concurrencyFor(readAssessment(values)),
    workerFetches: values.WORKER_FETCHES,
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT,
    tracing: readTracing(values),
    verificationEnabled: values.VERIFICATION_ENABLED,
    mcpVerificationEnabled: values.MCP_VERIFICATION_ENABLED,
    mcpVerifyClaimsEnabled: values.MCP_VERIFY_CLAIMS_ENABLED,
    mcpRegistryAuth: values.MCP_REGISTRY_AUTH,
    quoteTtlSeconds: values.QUOTE_TTL_SECONDS,
    resultRetentionSeconds: values.RESULT_RETENTION_SECONDS,
    capture: readCapture(values),
    rateLimitPerMinute: values.RATE_LIMIT_PER_MINUTE,
    maxInFlightPerPayer: values.MAX_IN_FLIGHT_PER_PAYER,
    maxQueueSeconds: values.MAX_QUEUE_SECONDS,
    try: readTry(values),
    trustProxy: values.TRUST_PROXY,
    fixtures,
  })
}

export type Config = ReturnType<typeof readConfig>

function readValues(env: Readonly<Record<string, string | undefined>>, problems: string[]): Values {
  const values: Record<string, unknown> = {}
  for (const [name, variable] of Object.entries<Variable>(variables)) {
    const given = env[name] || (name === 'BASE_URL' && platformAddress(env)) || variable.default
    if (given === undefined) continue
    const parsed = variable.schema.safeParse(given)
    if (parsed.success) values[name] = parsed.data
    // The message leaves the value out: it may be a secret that was put into the wrong variable.
    else problems.push(`${name}: ${parsed.error.issues[0]?.message ?? 'is not valid'}. ${variable.about}.`)
  }
  // The cast is safe: without problems, the schema of each name has parsed its member.
  return values as Values
}

function contradictions(values: Values): string[] {
  const problems: string[] = []
  const live = values.PAYMENT_MODE !== 'offline'
  if (live && !values.SIGNING_SEED && !values.SIGNING_SEED_FILE)
    problems.push(`SIGNING_SEED or SIGNING_SEED_FILE is required in ${values.PAYMENT_MODE} mode.`)
  if (live && !values.PAY_TO_EVM && !values.PAY_TO_SOLANA)
    problems.push(`PAY_TO_EVM or PAY_TO_SOLANA is required in ${values.PAYMENT_MODE} mode.`)
  if (live && !values.BASE_URL?.startsWith('https://'))
    problems.push(`BASE_URL is required in ${values.PAYMENT_MODE} mode, and must begin with https://.`)
  problems.push(...reachProblems(values))
  problems.push(...assessmentProblems(values))
  for (const name of missingCdpKeys(values))
    problems.push(`${name} is required with the facilitator of Coinbase (FACILITATOR_URL names another).`)
  if (live)
    for (const name of missingStripe(values)) problems.push(`${name} is required with the other settings of Stripe.`)
  for (const id of pricesOfTwoTiers(values))
    problems.push(`STRIPE_PRICE_DEV and STRIPE_PRICE_PRO: ${id} cannot be the price of both.`)
  if (values.PAYMENT_MODE === 'mainnet' && values.PAY_TO_EVM && UNOWNED_ADDRESS.test(values.PAY_TO_EVM))
    problems.push('PAY_TO_EVM is an address without an owner: mainnet mode refuses it.')
  if (values.DATABASE_DIRECT_URL && !values.DATABASE_URL) problems.push('DATABASE_DIRECT_URL requires DATABASE_URL.')
  if (values.SIGNING_SEED && values.SIGNING_SEED_FILE) problems.push('SIGNING_SEED and SIGNING_SEED_FILE: set one.')
  for (const name of ['FIXTURE_HOSTS', 'FIXTURE_CA_FILE'] as const)
    if (values.PAYMENT_MODE === 'mainnet' && values[name])
      problems.push(`${name} is for tests: mainnet mode refuses it.`)
  if (live && values.RESULT_RETENTION_SECONDS !== 86_400)
    problems.push('RESULT_RETENTION_SECONDS may differ from 86400 in offline mode only.')
  return problems
}

/** Addresses without a known key: address zero, and those near it, one of which offline mode uses by default. */
const UNOWNED_ADDRESS = /^0x0{34}/

/** Jobs that read pages and settle while others wait for a thread of the verifier. */
const JOBS_PER_VERIFIER = 4
const JOBS = 32

function concurrencyFor({ kind, verifierThreads }: ReturnType<typeof readAssessment>): number {
  return kind === 'local' ? Math.min(JOBS, JOBS_PER_VERIFIER * verifierThreads) : JOBS
}

function readFixtures(values: Values, problems: string[]) {
  const ca = readCertificates('FIXTURE_CA_FILE', values.FIXTURE_CA_FILE, problems)
  return { hosts: readFixtureHosts(values.FIXTURE_HOSTS ?? ''), ca }
}

function readCertificates(name: VariableName, path: string | undefined, problems: string[]): string | undefined {
  const pem = path ? readFile(name, path, problems) : undefined
  const problem = pem === undefined ? null : certificatesProblem(pem)
  if (problem) problems.push(`${name}: ${problem}`)
  return pem
}

function readSeed(values: Values, problems: string[]): Buffer | undefined {
  if (values.SIGNING_SEED) return Buffer.from(values.SIGNING_SEED, 'hex')
  if (!values.SIGNING_SEED_FILE) return undefined
  const parsed = seed.safeParse(readFile('SIGNING_SEED_FILE', values.SIGNING_SEED_FILE, problems)?.trim())
  if (parsed.success) return Buffer.from(parsed.data, 'hex')
  problems.push('SIGNING_SEED_FILE: the file must hold 32 bytes as 64 hex characters.')
  return undefined
}

function readFile(name: VariableName, path: string, problems: string[]): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    // Only the code: the message repeats the path, which may be a secret that was put into the wrong variable.
    const code = error instanceof Error && 'code' in error ? error.code : error
    problems.push(`${name}: cannot be read (${code}).`)
    return undefined
  }
}

/** The current settings by the name of their variable, without secrets: a secret that is set is `(set, hidden)`. */
export function publicSettings(config: Config): Record<string, string> {
  return Object.fromEntries(describeConfig(config).map(({ name, value }) => [name, value]))
}

/** Every variable with its current value and secrets masked, for `cli config`. */
export function describeConfig(config: Config) {
  const values: Readonly<Record<string, unknown>> = config.values
  return Object.entries<Variable>(variables).map(([name, variable]) => {
    const value = values[name]
    const shown = value === undefined ? '' : variable.secret ? HIDDEN : withoutCredentials(String(value))
    return { name, value: shown, default: variable.default ?? '', about: variable.about }
  })
}
