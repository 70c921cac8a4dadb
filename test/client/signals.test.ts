// What a signal does to a command that buys. The whole command: batch-money.test.ts and check-terms.test.ts.
import t from 'tap'
import { endAtSignals, stopAtSignals } from '../../client/commands/signals.ts'

t.test('a signal that npm or npx repeats at once is the same one', async (t) => {
  using stop = stopAtSignals(() => 'Stopping.')
  for (const signal of ['SIGINT', 'SIGINT', 'SIGTERM'] as const) process.emit(signal)
  t.ok(stop.finish.aborted, 'nothing new begins')
  t.notOk(stop.abort.aborted, 'what is under way goes on')
})

t.test('a command that was asked to stop says what it did, also when it is signalled further', async (t) => {
  const exits = t.capture(process, 'exit', (() => {}) as typeof process.exit)
  {
    using _ending = endAtSignals()
    {
      using stop = stopAtSignals(() => 'Stopping.')
      process.emit('SIGINT')
      t.ok(stop.finish.aborted)
    }
    process.emit('SIGINT')
  }
  process.emit('SIGINT')
  t.same(exits(), [])
  t.not(process.listenerCount('SIGINT'), 0, 'a signal does not end the process by itself')
  using next = stopAtSignals(() => 'Stopping again.')
  process.emit('SIGTERM')
  t.ok(next.finish.aborted, 'the next command is stopped by the next signal')
})
