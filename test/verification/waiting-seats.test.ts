// Seats for calls that wait: so many for one holder, so many in all, and each can be taken again.
import t from 'tap'
import { openSeats } from '../../server/verification/waiting-seats.ts'

t.test('one holder has so many, all together so many, and a seat that was left is free', async (t) => {
  const seats = openSeats({ each: 2, all: 3 })
  const first = seats.take('a')
  const second = seats.take('a')
  t.ok(first && second)
  t.equal(seats.take('a'), null, 'a third of one holder')
  const other = seats.take('b')
  t.ok(other)
  t.equal(seats.take('c'), null, 'a fourth of all')
  first?.[Symbol.dispose]()
  first?.[Symbol.dispose]()
  t.ok(seats.take('c'), 'what was left is free')
  t.equal(seats.take('a'), null, 'once')
  other?.[Symbol.dispose]()
  t.ok(seats.take('a'))
})
