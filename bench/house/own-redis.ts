// A Redis for this run only, which stores nothing on disk, and can be killed and started again at the same port.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { findPort } from '../child.ts'

export interface OwnRedis {
  url: string
  kill(): Promise<void>
  start(): Promise<void>
}

/** Null where the machine has no redis-server. */
export async function openOwnRedis(opened: AsyncDisposableStack): Promise<OwnRedis | null> {
  const port = await findPort()
  let server: ChildProcess | null = null
  const start = async () => {
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('Ready to accept connections')) resolve()
    })
    await promise
    server = child
  }
  const kill = async () => {
    const child = server
    if (!child) return
    server = null
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  try {
    await start()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  const killNow = () => void server?.kill('SIGKILL')
  process.once('exit', killNow)
  opened.defer(async () => {
    process.off('exit', killNow)
    await kill()
  })
  return { url: `redis://127.0.0.1:${port}`, kill, start }
}
