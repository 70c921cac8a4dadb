// The order of waiting work, with a clock of its own.
import t from 'tap'
import { buildLanes, type Lane } from '../../server/threads/lanes.ts'

const laneOf = (payer: string, { domain = `${payer}.example`, isFree = false } = {}): Lane => ({
  payer,
  domain,
  isFree,
})

/** One place that is always taken; each item holds it for so many milliseconds. */
function buildPlace() {
  let now = 0
  const lanes = buildLanes<{ name: string; lane: Lane; ms: number }>(() => now)
  const add = (name: string, lane: Lane, ms = 100) => lanes.add({ name, lane, ms }, lane)
  const serve = (until = Number.POSITIVE_INFINITY) => {
    const served: string[] = []
    while (now < until) {
      const next = lanes.take(() => true)
      if (!next) break
      const end = lanes.begin(next.lane)
      now += next.ms
      end()
      served.push(next.name)
    }
    return served
  }
  return { lanes, add, serve, pass: (ms: number) => (now += ms) }
}

t.test('one lane is served in the order of arrival', async (t) => {
  const { add, serve } = buildPlace()
  for (const name of ['a', 'b', 'c']) add(name, laneOf('one'))
  t.same(serve(), ['a', 'b', 'c'])
})

t.test('a payer with much work, or a domain, does not delay another', async (t) => {
  const { add, serve } = buildPlace()
  for (let n = 0; n < 50; n++) {
    add('payer', laneOf('rich', { domain: `${n}.example` }))
    add('domain', laneOf(`wallet ${n}`, { domain: 'hostile.example' }))
  }
  add('honest', laneOf('honest'))
  t.ok(serve().indexOf('honest') <= 2)
})

t.test('time is what counts, not the number of tasks', async (t) => {
  const { add, serve } = buildPlace()
  for (let n = 0; n < 10; n++) add('long', laneOf('long'), 1000)
  for (let n = 0; n < 10; n++) add('short', laneOf('short'), 10)
  const served = serve()
  t.ok(served.lastIndexOf('short') <= 11, served.join(' '))
})

t.test('free work comes after paid work and still gets its share', async (t) => {
  const { add, serve } = buildPlace()
  for (let n = 0; n < 20; n++) add('free', laneOf(`account ${n}`, { isFree: true }))
  for (let n = 0; n < 600; n++) add('paid', laneOf(`buyer ${n}`))
  const served = serve(60_000)
  t.equal(served.indexOf('paid'), 0)
  const share = served.filter((name) => name === 'free').length / served.length
  t.ok(share > 0.02 && share < 0.12, `${share}`)
})

t.test('a free account does not use up the share of the same name among payers', async (t) => {
  const { add, serve } = buildPlace()
  add('free', laneOf('same', { isFree: true }), 10_000)
  serve()
  add('other', laneOf('other', { domain: 'd.example' }))
  serve()
  add('other', laneOf('other', { domain: 'd.example' }))
  add('paid', laneOf('same'))
  t.same(serve(), ['paid', 'other'])
})

t.test('what was used is forgotten after a while, and takes no room', async (t) => {
  const { add, serve, pass } = buildPlace()
  add('first', laneOf('old'), 10_000)
  serve()
  pass(300_000)
  add('old', laneOf('old'))
  add('new', laneOf('new'))
  t.same(serve(), ['old', 'new'])
})

t.test('what may not be taken now stays', async (t) => {
  const { lanes, add } = buildPlace()
  add('a', laneOf('one'))
  add('b', laneOf('one'))
  t.equal(lanes.take(({ name }) => name === 'b')?.name, 'b')
  t.ok(lanes.holds(({ name }) => name === 'a'))
  t.notOk(lanes.holds(({ name }) => name === 'b'))
  t.equal(
    lanes.take(() => false),
    undefined,
  )
  t.equal(lanes.size, 1)
})
