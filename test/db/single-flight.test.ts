// Single flight: overlapping calls share one, and its result is kept for a while.
import t from 'tap'
import { singleFlight } from '../../server/db/single-flight.ts'

t.test('a call under way or a fresh result is shared; a failure is not kept', async (t) => {
  const clock = { now: 0 }
  const readings: PromiseWithResolvers<number>[] = []
  const read = singleFlight(
    () => {
      const reading = Promise.withResolvers<number>()
      readings.push(reading)
      return reading.promise
    },
    1000,
    () => clock.now,
  )
  const together = [read(), read()]
  clock.now = 5000
  together.push(read())
  t.equal(readings.length, 1, 'one at a time, however long it takes')
  readings[0]?.resolve(1)
  t.same(await Promise.all(together), [1, 1, 1])
  clock.now = 5999
  t.equal(await read(), 1, 'kept from its end on')
  clock.now = 6000
  const failing = [read(), read()]
  t.equal(readings.length, 2)
  readings[1]?.reject(new Error('gone'))
  for (const one of failing) await t.rejects(one, { message: 'gone' })
  const next = read()
  t.equal(readings.length, 3, 'a failure is not kept')
  readings[2]?.resolve(3)
  t.equal(await next, 3)
})
