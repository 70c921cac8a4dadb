// No thread of the service has the secrets of its process. The test starts the threads of each pool and reads their
// environment and flags through the inspector.
import { createPrivateKey, randomBytes } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import t from 'tap'
import { openMetrics } from '../../server/metrics.ts'
import { openSignatureChecks } from '../../server/payments/chains/signature-checks.ts'
import { evmTerms } from '../../server/payments/x402.ts'
import { openSigning, openVerifier } from '../../server/receipts/signatures.ts'
import { openLog } from '../../server/telemetry.ts'
import { openThreads } from '../../server/threads/pool.ts'
import { openLocalAssessor } from '../../workers/assessment/local.ts'

/** Starts the threads of one user of the pool, named by its file and function; disposing ends them. */
const starts: Record<string, () => Promise<AsyncDisposable>> = {
  async 'workers/context.ts openWork'() {
    const threads = openThreads({ maxThreads: 1 })
    await threads.run(new URL('./tasks.ts', import.meta.url), 'echo', 1)
    return threads
  },
  async 'server/context.ts openApi'() {
    const threads = openThreads({ minThreads: 0, maxThreads: 1 })
    await threads.run(new URL('../../server/mcp/check-thread.ts', import.meta.url), 'readReport', '')
    return threads
  },
  async 'workers/assessment/local.ts'() {
    const assessor = openLocalAssessor({ threads: 1, metrics: openMetrics(), log: openLog('silent') })
    await assessor.ready
    return assessor
  },
  async 'server/receipts/signatures.ts openVerifier'() {
    const verifier = openVerifier()
    const signature = { text: 'a', pubkey_hex: 'ab'.repeat(32), signature_hex: 'ab'.repeat(64) }
    await verifier.areSigned([signature])
    return verifier
  },
  async 'server/receipts/signatures.ts openSigning'() {
    const signing = openSigning()
    const seed = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), randomBytes(32)])
    const key = createPrivateKey({ key: seed, format: 'der', type: 'pkcs8' })
    await signing.sign(Array.from({ length: 10 }, String), key)
    return signing
  },
  async 'server/payments/chains/signature-checks.ts'() {
    const signers = openSignatureChecks()
    const { payTo } = evmTerms('eip155:84532', `0x${'1'.repeat(40)}`)
    const authorization = {
      from: payTo,
      to: payTo,
      value: '1',
      validAfter: '0',
      validBefore: '1',
      nonce: `0x${'1'.repeat(64)}`,
    }
    const signature = `0x${'1'.repeat(64)}${'1'.repeat(64)}1b`
    await signers.isSignedByPayer('eip155:84532', { signature, authorization } as never)
    return signers
  },
}

/** Reads environment and flags of every thread, also of those that start later. */
async function openInterview() {
  const session = new Session()
  session.connect()
  const answers: { env: string[]; flags: string[] }[] = []
  let wanted = Promise.withResolvers<void>()
  const ask = (sessionId: string) => {
    const expression = 'JSON.stringify({ env: Object.keys(process.env), flags: process.execArgv ?? null })'
    const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression, returnByValue: true } })
    void session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
  }
  session.on('NodeWorker.attachedToWorker', ({ params }) => ask(params.sessionId))
  session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
    const { id, result } = JSON.parse(params.message)
    if (id !== 1) return
    const answer = JSON.parse(result.result.value)
    // The thread is still starting.
    if (answer.flags === null) return ask(params.sessionId)
    answers.push(answer)
    wanted.resolve()
  })
  await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  return {
    /** The answers since the last call, at least one. */
    async answers() {
      await wanted.promise
      wanted = Promise.withResolvers()
      return answers.splice(0)
    },
    [Symbol.dispose]: () => session.disconnect(),
  }
}

process.env.SIGNING_SEED = randomBytes(32).toString('hex')
process.env.DATABASE_URL = 'postgres://secret@127.0.0.1/none'

for (const [user, start] of Object.entries(starts))
  t.test(`a thread of ${user} has no secret in its environment, and no flags`, async (t) => {
    using interview = await openInterview()
    await using _started = await start()
    const { NODE_COMPILE_CACHE } = process.env
    const env = NODE_COMPILE_CACHE === undefined ? [] : ['NODE_COMPILE_CACHE']
    for (const answer of await interview.answers()) t.same(answer, { env, flags: [] })
  })

t.test('every user of the pool is tested here', async (t) => {
  const root = join(import.meta.dirname, '../..')
  const files = globSync(['server/**/*.ts', 'workers/**/*.ts'], { cwd: root, exclude: ['server/threads/pool.ts'] })
  const calls = files.flatMap((file) => {
    const source = readFileSync(join(root, file), 'utf8')
    return [...source.matchAll(/\bopenThreads\(/g)].map(() => file)
  })
  t.same(
    calls.sort(),
    Object.keys(starts)
      .map((name) => name.split(' ')[0])
      .sort(),
  )
})
