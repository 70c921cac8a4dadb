// Seats for waiting calls: a limit per holder, a limit in all, and a freed seat can be taken again.
import t from 'tap'
import { openSeats } from '../../server/verification/admission/waiting-seats.ts'

t.test('the limits per holder and in all hold, and a disposed seat is free', async (t) => {
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
  t.ok(seats.take('c'), 'the disposed seat is free')
  t.equal(seats.take('a'), null, 'and can be taken once')
  other?.[Symbol.dispose]()
  t.ok(seats.take('a'))
})
