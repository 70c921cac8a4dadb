// Counts of calls in the memory of a process: they are bounded, and calls from many addresses make none of them forgotten.
import t from 'tap'
import { CallCounts, MAX_KEYS } from '../../server/accounts/call-counts.ts'
import { buildRateLimits } from '../../server/accounts/rate-limit.ts'
import { rounds } from '../long.ts'

/** Networks of 2001:db8::/32, each another subscriber's. */
const subscriber = (n: number) => `2001:db8:${(n >> 16).toString(16)}:${(n & 65_535).toString(16)}::1`

function openCounts(most: number) {
  const clock = { now: 0 }
  return { clock, counts: new CallCounts({ seconds: 60, most, now: () => clock.now }) }
}

t.test('a window begins with the first call of its key, and calls can be taken back', async (t) => {
  const { clock, counts } = openCounts(10)
  t.same(counts.add('a'), { calls: 1, msLeft: 60_000 })
  clock.now = 20_000
  t.same(counts.add('b'), { calls: 1, msLeft: 60_000 })
  t.same(counts.add('a'), { calls: 2, msLeft: 40_000 })
  counts.takeBack('a')
  counts.takeBack('unknown')
  t.same(counts.add('a'), { calls: 2, msLeft: 40_000 })
  clock.now = 60_000
  counts.takeBack('a')
  t.same(counts.add('a'), { calls: 1, msLeft: 60_000 }, 'a call of the window before is not taken back from this one')
  t.same(counts.add('b'), { calls: 2, msLeft: 20_000 })
})

t.test('keys whose window has ended are deleted', async (t) => {
  const { clock, counts } = openCounts(1000)
  for (let n = 0; n < 500; n++) counts.add(`k${n}`)
  clock.now = 60_000
  counts.add('later')
  t.equal(counts.size, 1)
})

t.test('within a window no count is too low, and none too high by more than the calls per place', async (t) => {
  for (let round = 0; round < rounds(40); round++) {
    const most = 1 + Math.floor(Math.random() * 40)
    const keys = 1 + Math.floor(Math.random() * 200)
    const { counts } = openCounts(most)
    const real = new Map<string, number>()
    const wrong: string[] = []
    for (let call = 1; call <= 3000; call++) {
      // Few keys with many calls and many with few.
      const key = `k${Math.floor(keys * Math.random() ** 3)}`
      const calls = (real.get(key) ?? 0) + 1
      real.set(key, calls)
      const counted = counts.add(key).calls
      if (counted < calls || counted > calls + call / most) wrong.push(`${calls} calls count as ${counted}`)
    }
    t.same(wrong, [], `${keys} keys for ${most} places`)
    t.ok(counts.size <= most)
  }
})

t.test('a key with many calls stays while windows of others end and new keys come', async (t) => {
  const { clock, counts } = openCounts(16)
  for (let n = 0; n < 15; n++) counts.add(`before${n}`)
  clock.now = 30_000
  for (let n = 0; n < 10; n++) counts.add('many')
  clock.now = 60_000
  for (let n = 0; n < 100; n++) counts.add(`after${n}`)
  t.same(counts.add('many'), { calls: 11, msLeft: 30_000 })
})

t.test('a flood of new keys that does not end leaves newcomers their calls', async (t) => {
  const { clock, counts } = openCounts(1000)
  let most = 0
  for (; clock.now < 600_000; clock.now++) most = Math.max(most, counts.add(`k${clock.now}`).calls)
  t.ok(most <= 60_000 / 875 + 1, `${most} calls, where each window had 60,000`)
  t.ok(counts.size <= 1000)
})

t.test('calls from 200,000 subscribers neither free one that is refused nor refuse one that is new', async (t) => {
  const limits = buildRateLimits(20, undefined)
  const refused = subscriber(0)
  for (let n = 0; n < 20; n++) await limits.spend(refused)
  await t.rejects(limits.spend(refused), { code: 'rate_limited' })
  for (let n = 1; n <= 200_000; n++) await limits.spend(subscriber(n))
  await t.rejects(limits.spend(refused), { code: 'rate_limited' })
  await t.resolves(limits.spend(subscriber(200_001)))
})

t.test('200,000 keys are counted in the memory of 50,000', async (t) => {
  const counts = new CallCounts({ seconds: 60 })
  for (let n = 0; n < 200_000; n++) counts.add(subscriber(n))
  t.equal(counts.size, MAX_KEYS)
})
