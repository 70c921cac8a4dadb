// Runs several test files in this process, one after the other: `test/suite.ts` starts it. A file by itself takes a second
// or more to load the service and to warm up, which is most of what many files cost.

import { once } from 'node:events'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'

const teardowns: (() => unknown)[] = []
// Each file is torn down when its own tests have ended. tap would do it after the last file, and once there is a teardown
// it takes the pause before the next file for the end.
t.teardown = (teardown) => {
  teardowns.unshift(teardown)
}

for (const file of process.argv.slice(2)) {
  const { total } = t.counts
  t.comment(file)
  await import(pathToFileURL(resolve(file)).href)
  while (!t.idle) await once(t, 'idle')
  for (const teardown of teardowns.splice(0)) await teardown()
  if (t.counts.total === total) t.fail(`${file} has no tests`)
}
t.end()
