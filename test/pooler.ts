// PgBouncer in transaction mode in front of a test database.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { endWithProcess } from './children.ts'

const PROGRAM = '/usr/sbin/pgbouncer'

/** Whether this machine has one. */
export const hasPooler = existsSync(PROGRAM)

/** @param url of the database; the pooler's own URL is answered. @param at the port of a pooler before it, which it replaces */
export async function openPooler(url: string, at?: string): Promise<AsyncDisposable & { url: string }> {
  const { hostname, port, username, password, pathname } = new URL(url)
  const folder = await mkdtemp(join(tmpdir(), 'countersign-pooler-'))
  const own = at ?? String(await freePort())
  const database = pathname.slice(1)
  const secret = password ? ` password=${decodeURIComponent(password)}` : ''
  await writeFile(
    join(folder, 'pooler.ini'),
    `[databases]
${database} = host=${hostname} port=${port || 5432} dbname=${database} user=${username}${secret}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
ignore_startup_parameters = extra_float_digits,options
server_login_retry = 1
`,
  )
  // It does not run as root.
  await chmod(folder, 0o755)
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn(PROGRAM, [...user, join(folder, 'pooler.ini')], { stdio: ['ignore', 'ignore', 'pipe'] })
  endWithProcess(child)
  const lines: string[] = []
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      lines.push(line)
      if (line.includes('process up')) resolve()
    })
    child.once('error', reject)
    child.once('exit', () => reject(new Error(lines.join('\n'))))
  })
  return {
    url: `postgres://${username}@127.0.0.1:${own}/${database}`,
    async [Symbol.asyncDispose]() {
      child.removeAllListeners('exit')
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (typeof address !== 'object' || !address) throw new Error('no port')
  return address.port
}
