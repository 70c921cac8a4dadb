// Wrong payment setups: a process does not start with them, and `doctor` reports them.
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { runDoctor } from '../../server/doctor.ts'
import {
  inspectPayments,
  openLiveFacilitator,
  type PaymentConfig,
} from '../../server/payments/facilitators/live-setup.ts'
import { PaymentSetupError } from '../../server/payments/startup-checks.ts'
import { openLog } from '../../server/telemetry.ts'
import { type Heard, startChild } from '../children.ts'
import { problemsOf } from '../problems.ts'
import { openEvmChain } from './evm-chain.ts'
import { openFacilitatorRig } from './evm-facilitator.ts'
import { openLogLines } from './log-lines.ts'

const PAY_TO_EVM = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const MAINNET = {
  PAYMENT_MODE: 'mainnet',
  SIGNING_SEED: randomBytes(32).toString('hex'),
  PAY_TO_EVM,
  CDP_API_KEY_ID: 'key-1',
  CDP_API_KEY_SECRET: randomBytes(64).toString('base64'),
  BASE_URL: 'https://verify.example',
  ASSESSMENT: 'literal',
}

t.test('mainnet mode names everything that is missing', async (t) => {
  const problems = problemsOf({ PAYMENT_MODE: 'mainnet' })
  for (const name of ['SIGNING_SEED', 'PAY_TO_EVM', 'CDP_API_KEY_ID', 'CDP_API_KEY_SECRET', 'BASE_URL'])
    t.equal(problems.filter((problem) => problem.startsWith(name)).length, 1, `${name}: ${problems.join(' ')}`)
  t.equal(problems.length, 5)
})

t.test('mainnet mode names every setting that is for offline mode', async (t) => {
  const caFile = join(t.testdir({ 'ca.pem': rootCertificates[0]! }), 'ca.pem')
  const offline: Record<string, string> = {
    FIXTURE_HOSTS: 'site.test=127.0.0.1:8443',
    FIXTURE_CA_FILE: caFile,
    PAY_TO_EVM: '0x0000000000000000000000000000000000008402',
    RESULT_RETENTION_SECONDS: '60',
  }
  const problems = problemsOf({ ...MAINNET, ...offline })
  for (const name of Object.keys(offline))
    t.equal(problems.filter((problem) => problem.startsWith(name)).length, 1, `${name}: ${problems.join(' ')}`)
  t.equal(problems.length, 4)
})

t.test('one setting at a time', async (t) => {
  t.same(problemsOf(MAINNET), [], 'complete')
  for (const name of ['SIGNING_SEED', 'PAY_TO_EVM', 'CDP_API_KEY_ID', 'CDP_API_KEY_SECRET'] as const) {
    const { [name]: _, ...rest } = MAINNET
    const problems = problemsOf(rest)
    t.match(problems, [new RegExp(`^${name}`)])
    t.equal(problems.length, 1)
  }
  const { CDP_API_KEY_ID: _id, CDP_API_KEY_SECRET: _secret, ...unkeyed } = MAINNET
  t.same(problemsOf({ ...unkeyed, FACILITATOR_URL: 'https://facilitator.example' }), [], 'another facilitator, no key')
  t.match(problemsOf({ ...MAINNET, CDP_API_KEY_SECRET: 'no key' }), [/^CDP_API_KEY_SECRET: must be/])
  const testnet = { PAYMENT_MODE: 'testnet', SIGNING_SEED: MAINNET.SIGNING_SEED, PAY_TO_EVM }
  t.same(problemsOf({ ...testnet, BASE_URL: MAINNET.BASE_URL }), [], 'testnet: no key')
  t.match(problemsOf(testnet), [/^BASE_URL is required in testnet mode/])
  t.match(problemsOf({ ...MAINNET, PAYMENT_MODE: 'testnet', CDP_API_KEY_ID: '' }), [/^CDP_API_KEY_ID/])
})

t.test('a live mode starts only with a public https BASE_URL', (t) => {
  for (const BASE_URL of ['', 'http://verify.example', 'http://127.0.0.1:8402'])
    t.match(problemsOf({ ...MAINNET, BASE_URL }), [/^BASE_URL is required in mainnet mode, and must begin with https:/])
  t.same(problemsOf({ BASE_URL: 'http://verify.example' }), [], 'offline mode takes any')
  t.end()
})

t.test('mainnet may sell every assessment; a model needs its key', (t) => {
  for (const ASSESSMENT of ['', 'auto', 'local', 'literal']) t.same(problemsOf({ ...MAINNET, ASSESSMENT }), [])
  t.same(problemsOf({ ...MAINNET, ASSESSMENT: 'semantic', ANTHROPIC_API_KEY: 'k' }), [])
  const keyless: Record<string, string>[] = [{}, MAINNET, { ANTHROPIC_BASE_URL: 'http://127.0.0.1:8000' }]
  for (const more of keyless)
    t.match(
      problemsOf({ ...more, ASSESSMENT: 'semantic' }),
      [/^ASSESSMENT is semantic, and neither ANTHROPIC_API_KEY nor OPENAI_MODEL is set/],
      'a model without a key',
    )
  t.end()
})

t.test('every process exits 1 and names the variables', async (t) => {
  for (const file of ['server/main.ts', 'workers/main.ts', 'server/dev.ts']) {
    const child = startChild(file, { PAYMENT_MODE: 'mainnet', FIXTURE_HOSTS: 'site.test=127.0.0.1:8443' })
    // If a child ends before the expected line, the error contains its output.
    const { message } = await child.logs('listening').catch((error: Error) => error as Error & Heard)
    t.match(await child.ended, { code: 1 })
    for (const name of [
      'SIGNING_SEED',
      'PAY_TO_EVM',
      'CDP_API_KEY_ID',
      'CDP_API_KEY_SECRET',
      'FIXTURE_HOSTS',
      'BASE_URL',
    ])
      t.match(message, name, file)
  }
})

const chain = await openEvmChain('eip155:84532')
const rig = await openFacilitatorRig(chain)
t.teardown(async () => {
  await rig[Symbol.asyncDispose]()
  await chain[Symbol.asyncDispose]()
})

const fitting: PaymentConfig = {
  paymentMode: 'testnet',
  facilitatorUrl: rig.url,
  cdpKey: undefined,
  payToEvm: PAY_TO_EVM,
  payToSolana: undefined,
  evmRpcUrl: chain.url,
  solanaRpcUrl: undefined,
}

t.test('a right setup is opened', async (t) => {
  const findings = await inspectPayments(fitting)
  t.same(
    findings.map(({ verdict }) => verdict),
    ['right', 'right', 'right'],
  )
  await using facilitator = await openLiveFacilitator(fitting, openLog('silent'))
  t.match(facilitator.accepts, [{ network: 'eip155:84532', payTo: PAY_TO_EVM, extra: { name: 'USDC', version: '2' } }])
})

/** A server that gives every request this answer. */
async function openAnswerer(status: number, body: string) {
  const server = createServer((_request, response) => response.writeHead(status).end(body))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => void server.close(),
  }
}

t.test('a wrong setup is refused with its cure; doctor reports the same', async (t) => {
  await using bare = await openAnswerer(200, '{"kinds":[],"extensions":[],"signers":{}}')
  await using closed = await openAnswerer(401, 'Unauthorized')
  await using other = await openEvmChain('eip155:8453')
  const wrong: [about: string, change: Partial<PaymentConfig>, named: RegExp][] = [
    ['a facilitator that does not know the network', { facilitatorUrl: bare.url }, /eip155:84532.*FACILITATOR_URL/],
    ['credentials that are refused', { facilitatorUrl: closed.url }, /http_401.*CDP_API_KEY_ID and CDP_API_KEY_SECRET/],
    ['the RPC of another chain', { evmRpcUrl: other.url }, /is chain 8453.*EVM_RPC_URL/],
    ['a mistyped address', { payToEvm: PAY_TO_EVM.replace('C8', 'c8') }, /PAY_TO_EVM: its checksum/],
  ]
  for (const [about, change, named] of wrong) {
    await t.rejects(openLiveFacilitator({ ...fitting, ...change }, openLog('silent')), PaymentSetupError, about)
    await t.rejects(openLiveFacilitator({ ...fitting, ...change }, openLog('silent')), { message: named }, about)
    const findings = await runDoctor({ ...readConfig({}), ...fitting, ...change })
    const bad = findings.filter((finding) => !finding.ok)
    t.ok(
      bad.some(({ subject, detail, cure }) => named.test(`${subject}: ${detail}; ${cure}`)),
      `${about}: ${JSON.stringify(bad)}`,
    )
  }
})

t.test('a facilitator that does not answer does not stop a process, but no payment is possible', async (t) => {
  const logLines = openLogLines()
  const away = { ...fitting, facilitatorUrl: 'http://127.0.0.1:9', evmRpcUrl: 'http://127.0.0.1:9' }
  await using facilitator = await openLiveFacilitator(away, openLog('error', logLines))
  t.match(
    logLines.lines.map(({ event, subject }) => `${event} ${subject}`),
    [/payment_setup facilitator/, /payment_setup RPC of eip155:84532/],
  )
  t.equal(facilitator.accepts.length, 1)
})
