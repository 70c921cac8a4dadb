// A process of callers: closed loops over kept-alive connections, apart from the process that answers. It gets its
// requests over the process channel and reports the outcome.
import { Pool } from 'undici'
import { closedLoop } from './rounds.ts'

export interface Load {
  origin: string
  path: string
  /** In place of `path`, one after the other. */
  paths?: string[]
  method: 'GET' | 'POST'
  /** As many requests as these, one each; or, if `milliseconds` is set, these again and again. */
  requests: { headers: Record<string, string>; body?: string }[]
  connections: number
  milliseconds?: number
  /** The only status that counts as an answer. */
  status: number
}

export type LoadReport = { rate: number } | { error: string }

process.on('message', (load: Load) => {
  run(load).then(
    (rate) => process.send!({ rate } satisfies LoadReport),
    (error) => process.send!({ error: String(error) } satisfies LoadReport),
  )
})
process.on('SIGTERM', () => process.exit())
console.log(JSON.stringify({ event: 'load_ready' }))

async function run(load: Load): Promise<number> {
  const pool = new Pool(load.origin, { connections: load.connections, pipelining: 1 })
  let sent = 0
  let turn = 0
  const nextPath = () => load.paths?.[turn++ % load.paths.length] ?? load.path
  const { requests, milliseconds } = load
  const next = () => requests[milliseconds ? sent++ % requests.length : sent++]
  try {
    return await closedLoop({ callers: load.connections, milliseconds }, next, async (request) => {
      const answer = await pool.request({ path: nextPath(), method: load.method, ...request })
      const text =
        answer.statusCode === load.status ? await answer.body.dump({ limit: MAX_BYTES }) : await answer.body.text()
      if (answer.statusCode !== load.status) throw new Error(`${answer.statusCode} in place of ${load.status}: ${text}`)
    })
  } finally {
    await pool.close()
  }
}

const MAX_BYTES = 16 * 1024 * 1024
