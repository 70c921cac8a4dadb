// Packages are built in the threads that are shared by callers, and a shortage of threads is no failure of the package.
import t from 'tap'
import type { Lane } from '../../server/threads/lanes.ts'
import { ThreadError, type Threads } from '../../server/threads/pool.ts'
import { sharedThreads } from '../shared-threads.ts'
import { harbourClaim, startSystem } from '../system.ts'
import { askEvidence, buyFrom } from './purchases.ts'

const built: { name: string; lane: Lane | undefined }[] = []
let refusal: ThreadError | null = null
const pool = sharedThreads()
const threads: Threads = {
  run(file, name, argument, options) {
    if (!file.href.endsWith('/evidence/package-thread.ts')) return pool.run(file, name, argument, options)
    built.push({ name, lane: options?.lane })
    return refusal ? Promise.reject(refusal) : pool.run(file, name, argument, options)
  },
  get queueSize() {
    return pool.queueSize
  },
  get threadCount() {
    return pool.threadCount
  },
  [Symbol.asyncDispose]: async () => {},
}
const system = await startSystem({ env: { SOURCE_CAPTURE: 'on' }, overrides: { threads } })
t.teardown(() => system[Symbol.asyncDispose]())
const bought = await buyFrom(system, harbourClaim(system.site))

t.test('each package is one task of the lane of its caller', async (t) => {
  for (let n = 0; n < 2; n++) t.equal((await askEvidence(system, bought)).status, 200)
  const lane: Lane = { payer: '127.0.0.1', domain: '127.0.0.1', isFree: false }
  t.same(built.splice(0), Array(2).fill({ name: 'buildOrdered', lane }))
})

t.test('while no thread is free, the caller is asked to come again', async (t) => {
  for (const code of ['busy', 'waited'] as const) {
    refusal = new ThreadError(code)
    const answer = await askEvidence(system, bought)
    t.equal(answer.status, 503, code)
    t.match(answer.headers.get('retry-after'), /^[1-4]$/)
    t.match(await answer.json(), { error: { code: 'capacity_exceeded', retryable: true } })
  }
  refusal = null
  t.equal((await askEvidence(system, bought)).status, 200)
})

t.test('a thread that died is a failure of the service, and no shortage', async (t) => {
  refusal = new ThreadError('out_of_memory')
  t.match(await (await askEvidence(system, bought)).json(), { error: { code: 'internal_error' } })
})
