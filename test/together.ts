// Runs one or several test files in this process: `test/suite.ts` starts it. Several run one after the other, because a file by
// itself takes a second or more to load the service and to warm up, which is most of what many files cost.

import { once } from 'node:events'
import { Socket } from 'node:net'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { endings } from './endings.ts'
import { readProcessor } from './processor.ts'
import { t } from './tap.ts'

// The end of stdin says that the process that started this one was killed. Without this, the tests would go on for ever.
process.stdin.on('end', () => process.exit(1)).resume()
if (process.stdin instanceof Socket) process.stdin.unref()

// From the environment: tap names the folders of `t.testdir` after the arguments, of which the first file is enough to tell two
// processes apart.
const files = (process.env.TEST_FILES ?? '').split('\n')
const fileTimeoutMs = Number(process.env.TEST_FILE_TIMEOUT_MS)

async function runAfterEachOther(): Promise<void> {
  const teardowns: (() => unknown)[] = []
  // Each file is torn down when its own tests have ended. tap would do it after the last file, and once there is a teardown
  // it takes the pause before the next file for the end.
  t.teardown = (teardown) => {
    teardowns.unshift(teardown)
  }
  for (const file of files) {
    const { total } = t.counts
    const sayWhatItTook = measure(file)
    t.comment(file)
    const timer = setTimeout(() => endLate(file), fileTimeoutMs)
    // The import rejects if the file throws outside of its tests. The next file runs all the same.
    await load(file).catch((error) => t.fail(`${file} threw outside of its tests: ${error}`, error))
    await untilIdle()
    for (const teardown of teardowns.splice(0)) await teardown()
    clearTimeout(timer)
    sayWhatItTook()
    if (t.counts.total === total) t.fail(`${file} has no tests`)
  }
  await endings.disposeAsync()
  t.end()
}

/** With `--slowest`: begins to measure a file. What is returned says how long it took, for suite.ts. */
function measure(file: string): () => void {
  if (process.env.TEST_SLOWEST !== '1') return () => {}
  const begun = performance.now()
  const before = readProcessor()
  return () => {
    const { own, ended, running } = readProcessor()
    const programs = ended + running - before.ended - before.running
    const took = [performance.now() - begun, own - before.own, programs]
    t.comment(`took ${took.map(Math.round).join(' ')} ${file}`)
  }
}

/** Fails the test at hand, with what is open, and ends the process. */
function endLate(file: string): void {
  const late = { expired: file, seconds: fileTimeoutMs / 1000, open: process.getActiveResourcesInfo() }
  t.timeout(late as Parameters<typeof t.timeout>[0])
}

async function untilIdle(): Promise<void> {
  while (!t.idle) await once(t, 'idle')
}

function load(file: string): Promise<unknown> {
  return import(pathToFileURL(resolve(file)).href)
}

// One file is free to set up the test of its process.
if (files.length > 1) await runAfterEachOther()
else {
  const sayWhatItTook = measure(files[0] ?? '')
  await load(files[0] ?? '')
  await untilIdle()
  sayWhatItTook()
  await endings.disposeAsync()
}
