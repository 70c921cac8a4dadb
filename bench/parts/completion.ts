// Completed verifications per second: one worker process, a page over TLS, requests admitted beforehand. Beside it a bare
// job of three checkpoint commits under the same queue settings, and the same job with a plain fetch of the page in it.

import type { Lab } from '../lab.ts'
import { compete } from '../rounds.ts'
import { figure, printHeading, printNote, printRows, printStandings } from '../table.ts'
import { openWatch } from '../watch.ts'
import { openBareHarness, openSource, openWorkerHarness, type Source } from '../worker-harness.ts'

/**
 * Verifications before the measurement. A worker runs for days, so the compilation in its first minutes is not
 * measured; after so many its rate does not rise any more.
 */
const WARM_UP = 1500

/** Shares of the same job with a plain fetch. */
const AIMS = { short: 0.6, long: 0.4 }

export async function benchCompletion(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const source = opened.use(await openSource(lab))
  const harness = opened.use(await openWorkerHarness(lab, source))
  const bare = opened.use(await openBareHarness(lab, source))
  const watch = opened.use(await openWatch(harness.url, { worker: harness.worker.pid, page: source.page.pid }))
  const bareWatch = opened.use(await openWatch(bare.url, { bare: bare.worker.pid }))
  const counts = lab.quick ? { ours: 500, bare: 1000 } : { ours: 1000, bare: 2000 }
  let completed = 0
  const ours = async () => {
    completed += counts.ours
    return harness.measureRate('/', counts.ours, (work) => watch.during(work))
  }

  printHeading('completion', 'verifications by one worker process, each of an origin of its own, over TLS')
  for (const path of ['/', '/long/']) {
    await harness.measureRate(path, WARM_UP)
    await bare.measureRate(path, WARM_UP)
  }
  await bare.measureRate(null, WARM_UP)
  printStandings(
    await compete(lab.rounds, [
      { what: `page of ${kilobytes(source, 'short')}, ${harness.concurrency} under way`, run: ours },
      {
        what: 'bare job of three commits',
        run: () => bare.measureRate(null, counts.bare, (work) => bareWatch.during(work)),
      },
      {
        what: 'the same job with a plain fetch of the page',
        run: () => bare.measureRate('/', counts.ours * 2),
        aim: AIMS.short,
      },
    ]),
  )
  printStandings(
    await compete(1, [
      { what: `page of ${kilobytes(source, 'long')}`, run: () => harness.measureRate('/long/', counts.ours / 2) },
      { what: 'bare job with a plain fetch of it', run: () => bare.measureRate('/long/', counts.ours), aim: AIMS.long },
    ]),
  )
  const cpu = (name: string) => `${name} ${figure(watch.cpuMs(name) / completed)} ms`
  printRows([['CPU of one verification', cpu('worker'), cpu('page')]])
  printNote(watch.heldBack())
  printNote(`the bare job ${bareWatch.heldBack()}`)
}

function kilobytes({ bytes }: Source, size: 'short' | 'long') {
  return `${(bytes[size] / 1000).toFixed(1)} kB`
}
