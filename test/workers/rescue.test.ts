// The time until another worker completes the request of a killed one, in real time.
import t from 'tap'
import { openApiHarness, openSlowPage } from '../api-harness.ts'
import { buy, checkBooks, openCrashHarness, run } from '../crash-harness.ts'
import { PAGE } from '../system.ts'

t.jobs = 2

t.test('killed while it settles: completed by another worker within 30 seconds', { buffered: true }, async (t) => {
  await using front = await openApiHarness()
  await using workers = openCrashHarness(front)
  const [victim, other] = [await workers.next(), await workers.next()]
  await run(victim, { at: 'after charge', how: 'hold' })
  const purchase = buy(front)
  await victim.tells('held')
  await run(other)
  const killed = performance.now()
  victim.kill('SIGKILL')
  const result = await purchase.result
  const seconds = (performance.now() - killed) / 1000
  t.comment(`rescued and completed ${seconds.toFixed(1)} s after kill -9`)
  t.ok(seconds < 30, `${seconds.toFixed(1)} s`)
  await checkBooks(t, front, [result], { jobs: false })
})

t.test('killed while it holds all turns of one site: the same', { buffered: true }, async (t) => {
  await using front = await openApiHarness()
  await using workers = openCrashHarness(front)
  const [victim, other] = [await workers.next(), await workers.next()]
  await run(victim)
  const pages = Array.from({ length: 4 }, () => openSlowPage(PAGE))
  const purchases = pages.map(({ page }) => buy(front, page))
  await Promise.all(pages.map(({ asked }) => asked))
  await run(other)
  const killed = performance.now()
  victim.kill('SIGKILL')
  for (const { serve } of pages) serve()
  const results = await Promise.all(purchases.map(({ result }) => result))
  const seconds = (performance.now() - killed) / 1000
  t.comment(`rescued and completed ${seconds.toFixed(1)} s after kill -9`)
  t.ok(seconds < 30, `${seconds.toFixed(1)} s`)
  await checkBooks(t, front, results, { jobs: false })
})
