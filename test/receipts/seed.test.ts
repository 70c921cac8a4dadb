// The seed file: one for all processes that start at once, and never incomplete.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { keptSeed } from '../../server/receipts/keys.ts'

t.test('processes that start at once get the same seed, and leave no other file', async (t) => {
  const folder = join(t.testdir({}), 'data', 'deep')
  const module = JSON.stringify(new URL('../../server/receipts/keys.ts', import.meta.url).href)
  const go = new SharedArrayBuffer(4)
  const code = `const { parentPort, workerData } = require('node:worker_threads')
    import(${module}).then(({ keptSeed }) => {
      parentPort.postMessage('ready')
      Atomics.wait(new Int32Array(workerData.go), 0, 0)
      parentPort.postMessage(keptSeed(workerData.folder).toString('hex'))
    })`
  const workers = Array.from({ length: 6 }, () => new Worker(code, { eval: true, workerData: { go, folder } }))
  const seeds: string[] = []
  let ready = 0
  await Promise.all(
    workers.map(
      (worker) =>
        new Promise<void>((done, fail) => {
          worker.on('error', fail)
          worker.on('exit', () => done())
          worker.on('message', (text: string) => {
            if (text !== 'ready') return void seeds.push(text)
            if (++ready < workers.length) return
            Atomics.store(new Int32Array(go), 0, 1)
            Atomics.notify(new Int32Array(go), 0)
          })
        }),
    ),
  )
  t.equal(seeds.length, 6)
  t.same([...new Set(seeds)], [keptSeed(folder).toString('hex')])
  t.same(readdirSync(folder), ['signing-seed'])
  t.equal(statSync(join(folder, 'signing-seed')).mode & 0o777, 0o600)
  t.equal(readFileSync(join(folder, 'signing-seed'), 'utf8'), `${seeds[0]}\n`)
})

t.test('a file with other content is refused and not changed', async (t) => {
  const folder = t.testdir({})
  for (const text of ['', 'x', '00'.repeat(31)]) {
    writeFileSync(join(folder, 'signing-seed'), text)
    t.throws(() => keptSeed(folder), /does not hold a signing seed/)
    t.equal(readFileSync(join(folder, 'signing-seed'), 'utf8'), text)
  }
})
