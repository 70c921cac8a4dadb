// A worker that only makes its commits: graphile-worker as workers/runner.ts runs it, and a job of three commits. With a
// `url` in its payload the job also fetches that page first, over a connection of its own.
import { get } from 'node:https'
import { text } from 'node:stream/consumers'
import { Logger, run, type TaskList } from 'graphile-worker'
import pg from 'pg'
import { readConfig } from '../../server/config.ts'
import { JOB_ENDS, openQueuePool } from '../../server/db/queue.ts'

const { databaseUrl = '', workerConcurrency, fixtures } = readConfig()
/** As many connections as openCore and openRunner have. */
const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 })
const queue = openQueuePool(databaseUrl, 6, (error) => console.error(error))

const taskList: TaskList = {
  async bare_job(payload) {
    const { id, url } = payload as { id: string; url: string | null }
    if (url) await fetchPage(new URL(url))
    for (const state of ['first', 'second', 'done'])
      await pool.query({ name: 'step', text: 'update bare_rows set state = $2 where id = $1', values: [id, state] })
  },
}

const runner = await run({
  pgPool: queue,
  taskList,
  parsedCronItems: [],
  noHandleSignals: true,
  logger: new Logger(() => () => {}),
  preset: {
    worker: {
      concurrentJobs: workerConcurrency,
      pollInterval: 1000,
      ...JOB_ENDS,
      localQueue: { size: workerConcurrency + 1, refetchDelay: { durationMs: 20 } },
    },
  },
})
process.once('SIGTERM', async () => {
  await runner.stop()
  await Promise.all([queue.end(), pool.end()])
})
console.log(JSON.stringify({ event: 'bare_ready' }))

async function fetchPage({ hostname, pathname }: URL) {
  const { address, port } = fixtures.hosts.get(hostname)!
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const options = { host: address, port, servername: hostname, path: pathname, ca: fixtures.ca, agent: false }
  get(options, (response) => text(response).then(resolve, reject)).on('error', reject)
  const page = await promise
  if (!page.includes('1874')) throw new Error('not the page')
}
