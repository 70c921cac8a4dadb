// What a signal does to a command that buys. The whole command: batch-money.test.ts and check-terms.test.ts.
import t from 'tap'
import { stopAtSignals } from '../../client/commands/signals.ts'

t.test('a signal that npm or npx repeats at once is the same one', async (t) => {
  using stop = stopAtSignals(() => 'Stopping.')
  for (const signal of ['SIGINT', 'SIGINT', 'SIGTERM'] as const) process.emit(signal)
  t.ok(stop.finish.aborted, 'nothing new begins')
  t.notOk(stop.abort.aborted, 'what is under way goes on')
})
