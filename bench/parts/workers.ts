// Verdicts of the local verifier by one, two and four worker processes on one Postgres, each with one thread of the verifier. With as
// many cores as processes the rate has to rise with them; processes that share cores may not use more CPU for a verdict.
import { availableParallelism } from 'node:os'
import type { Lab } from '../lab.ts'
import { bodyFor } from '../orders.ts'
import { figure, printHeading, printNote, printRows } from '../table.ts'
import { openWatch } from '../watch.ts'
import { openSource, openWorkerHarness, type Source } from '../worker-harness.ts'

/** Of the rate of one process, where each has a core of its own. */
const LEAST_RATE: Readonly<Record<number, number>> = { 2: 1.8, 4: 3.2 }
/** Of the CPU that a verdict needs with one process. */
const MOST_CPU = 1.1

interface Measured {
  count: number
  rate: number
  cpuMs: number
}

export async function benchWorkers(lab: Lab): Promise<void> {
  await using source = await openSource(lab)
  const verdicts = lab.quick ? 8 : 120
  printHeading('workers', `${verdicts} verdicts of the local verifier, by processes with one thread of it each`)
  const measured: Measured[] = []
  for (const count of [1, 2, 4]) measured.push(await measure(lab, source, count, verdicts))
  const [one] = measured
  if (!one) throw new Error('nothing was measured')
  printRows([
    ['', 'verdicts/s', 'of one', 'CPU ms each', 'of one'],
    ...measured.map(({ count, rate, cpuMs }): [string, ...string[]] => [
      count === 1 ? 'one worker' : `${count} workers`,
      figure(rate),
      figure(rate / one.rate),
      figure(cpuMs),
      figure(cpuMs / one.cpuMs),
    ]),
  ])
  for (const { count, rate, cpuMs } of measured.slice(1)) printNote(judge(count, rate / one.rate, cpuMs / one.cpuMs))
}

function judge(count: number, rate: number, cpu: number): string {
  const least = LEAST_RATE[count] ?? count
  if (availableParallelism() >= count)
    return `rate of ${count}: ${figure(rate)} of one, aim ${least}: ${rate >= least ? 'met' : 'MISSED'}`
  const met = cpu <= MOST_CPU ? 'met' : 'MISSED'
  return `CPU of a verdict with ${count}: ${figure(cpu)} of one, aim ${MOST_CPU} at most, because they share cores: ${met}`
}

async function measure(lab: Lab, source: Source, count: number, verdicts: number): Promise<Measured> {
  await using opened = new AsyncDisposableStack()
  let asked = 0
  const harness = opened.use(
    await openWorkerHarness(lab, source, {
      count,
      env: { ASSESSMENT: 'local', VERIFIER_THREADS: '1' },
      // Each claim is another one, because a verdict on the same text and claim is kept.
      body: (url) => ({
        ...bodyFor(url),
        claim: `The harbour was opened in ${1000 + asked++} by the county engineer.`,
      }),
    }),
  )
  // Each process compiles its code.
  await harness.measureRate('/', 2 * count)
  const pids = Object.fromEntries(harness.workers.map(({ pid }, n) => [`worker ${n + 1}`, pid]))
  const watch = opened.use(await openWatch(harness.url, pids))
  const rate = await harness.measureRate('/', verdicts, (work) => watch.during(work))
  const cpuMs = Object.keys(pids).reduce((sum, name) => sum + watch.cpuMs(name), 0) / verdicts
  return { count, rate, cpuMs }
}
