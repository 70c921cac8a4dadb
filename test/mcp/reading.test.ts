// What callers of /mcp/check send is read in threads, and what a thread cannot do is the right error.
import t from 'tap'
import { ADDRESS_LIMITS } from '../../server/accounts/tiers.ts'
import { readInThread } from '../../server/mcp/reading.ts'
import { buildLanes, type Lane } from '../../server/threads/lanes.ts'
import { openThreads, ThreadError, type Threads } from '../../server/threads/pool.ts'
import { openSeats } from '../../server/verification/admission/waiting-seats.ts'

const ofAddress = openSeats({ each: ADDRESS_LIMITS.readings_in_flight, all: 100 })
const ofNetwork = openSeats({ each: ADDRESS_LIMITS.readings_in_flight_per_network, all: 100 })

const callBy = (run: Threads['run'], address = '192.0.2.1', signal = new AbortController().signal) =>
  ({
    api: { parsing: { threads: { run }, ofAddress, ofNetwork } },
    credentials: { address },
    options: { waitSeconds: 0, signal },
  }) as unknown as Parameters<typeof readInThread>[3]

const read = (call: ReturnType<typeof callBy>, markdown = '') => readInThread('readReport', markdown, 'markdown', call)

t.test('the errors of threads', async (t) => {
  const failing = (code: ConstructorParameters<typeof ThreadError>[0]) =>
    callBy(() => Promise.reject(new ThreadError(code)))
  for (const code of ['ran_too_long', 'out_of_memory'] as const)
    await t.rejects(read(failing(code)), { code: 'invalid_request', message: 'markdown: takes too long to read.' })
  for (const code of ['waited', 'busy', 'closed', 'exited'] as const)
    await t.rejects(read(failing(code)), { code: 'capacity_exceeded', headers: { 'retry-after': '2' } })
  const gone = callBy(() => Promise.reject(new ThreadError('aborted')), '192.0.2.1', AbortSignal.abort())
  await t.rejects(read(gone), { code: 'cancelled' })
  await t.rejects(read(callBy(() => Promise.reject(new TypeError('x')))), { message: 'x' })
})

t.test('one address has a few readings at a time, and another has its own', async (t) => {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const held = callBy(() => promise as Promise<never>)
  const most = Array.from({ length: ADDRESS_LIMITS.readings_in_flight }, () => read(held))
  await t.rejects(read(held), { code: 'rate_limited', message: /readings_in_flight/ })
  const other = callBy(async () => ({ value: 'read' }) as never, '192.0.2.2')
  t.equal(await read(other), 'read')
  resolve({ value: 'read' })
  t.same(new Set(await Promise.all(most)), new Set(['read']))
  t.equal(await read(held), 'read', 'and its places are free again')
})

t.test('the addresses of one /48 have a quarter of the places, and another /48 has its own', async (t) => {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const from = (n: number, network = 1) =>
    callBy(() => promise as Promise<never>, `2001:db8:${network}:${n.toString(16)}::1`)
  const most = Array.from({ length: ADDRESS_LIMITS.readings_in_flight_per_network }, (_, n) => read(from(n)))
  await t.rejects(read(from(0xffff)), { code: 'rate_limited', message: /readings_in_flight_per_network/ })
  const other = read(from(1, 2))
  resolve({ value: 'read' })
  t.same(new Set(await Promise.all([...most, other])), new Set(['read']))
})

t.test('the threads are shared by address: an address that has used them waits for one that has not', async (t) => {
  const lanes = buildLanes<string>(() => 0)
  const laneOf = async (address: string) => {
    let lane: Lane | undefined
    const run: Threads['run'] = async (_file, _name, _argument, options) => {
      lane = options?.lane
      return { value: [] } as never
    }
    await read(callBy(run, address))
    return lane!
  }
  const [busy, quiet] = [await laneOf('192.0.2.1'), await laneOf('192.0.2.2')]
  lanes.begin(busy)
  lanes.add('busy', busy)
  lanes.add('quiet', quiet)
  t.equal(
    lanes.take(() => true),
    'quiet',
  )
})

t.test('what a thread reads', async (t) => {
  await using threads = openThreads({ minThreads: 0, maxThreads: 1 })
  const call = callBy(threads.run.bind(threads))
  t.same(await read(call, 'No links.'), [])
  t.match(await read(call, '“One two three” [x](https://s.test/a)'), [{ kind: 'quotation', url: 'https://s.test/a' }])
  const many = Array.from({ length: 2001 }, (_, n) => `[one two three ${n}](https://s.test/a)\n\n`).join('')
  await t.rejects(read(call, many), { code: 'invalid_request', message: /^markdown: has more than 2000 citations/ })
  await t.rejects(read(call, '['.repeat(300)), { code: 'invalid_request', message: /^markdown: .*brackets/ })
  const result = (text: string) => readInThread('checkResult', { text, keys: [] }, 'result_json', call)
  await t.rejects(result('{'), { code: 'invalid_request', message: 'result_json: is not JSON.' })
  await t.rejects(result('"\\ud800"'), { code: 'invalid_request', message: /^result_json: / })
  t.match(await result('{}'), { ok: false })
})
