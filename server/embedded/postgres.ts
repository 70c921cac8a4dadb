// Starts an embedded PostgreSQL server for the entries that bring their own: `npm start`, the demo, the tests and the benches. It needs
// no installation and no root. A deployed service is given a server by its URL and loads nothing of this folder but the search for a
// database that `npm start` left open, which the operator commands make where no URL is set.

import type { ChildProcessByStdio } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { realpath } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { checkDataFolder, makeDataFolder } from '../config/data-folder.ts'
import type { Cluster, Postmaster } from './cluster.ts'
import {
  createCluster,
  findCluster,
  findPostmaster,
  isAlive,
  ownerMark,
  removeCluster,
  removeStaleLock,
} from './cluster.ts'
import type { Account, Programs } from './programs.ts'
import { findPrograms, runAs, spawnOptions } from './programs.ts'
import { ensureServiceRole, SERVICE, servicePassword } from './role.ts'

export interface EmbeddedPostgres extends AsyncDisposable {
  /** `postgres://...` of the database `countersign`, as its owner, who is no superuser. */
  url: string
  /** The same server's database `postgres` as superuser, from which other databases are created and dropped. */
  adminUrl: string
}

export interface EmbeddedPostgresOptions {
  /** The folder of the cluster, made if it is missing. */
  dataDir: string
  /**
   * true: data survives a crash of the machine and stays in dataDir for the next start.
   * false: a separate, fast cluster, which closing removes.
   */
  durable: boolean
  /** Of Postgres, in place of the ones of this module. */
  settings?: Record<string, string>
  /** Takes lines for a person: decisions about users and folders, and the failure of a server. */
  log: (line: string) => void
}

/**
 * Starts PostgreSQL on 127.0.0.1 at a free port and makes the database `countersign` if it is missing.
 *
 * The server has its own process group, so that Ctrl-C and a SIGTERM to the group of this process do not reach it: it runs
 * until the service has drained and closes it. It does not outlive this process, however this process ends.
 *
 * Throws with the process ids in the message if another process is running the same cluster.
 */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { durable, log } = options
  const name = durable ? DURABLE : 'postgres-throwaway'
  makeDataFolder(options.dataDir)
  const dataDir = await realpath(options.dataDir)
  const existing = await findCluster(dataDir, name)
  if (!existing) checkDataFolder(dataDir)
  const programs = await findPrograms(existing?.owner, log)
  const cluster = existing ?? (await createCluster(programs, { dataDir, name, sync: durable, log }))
  await endOrphan(cluster, programs, log)

  await using cleanup = new AsyncDisposableStack()
  const { server, port, output } = await startServer(cluster, programs, options)
  const reportLoss = () => {
    for (const line of ['PostgreSQL ended by itself. Its last lines:', ...output]) log(line)
  }
  server.once('close', reportLoss)
  cleanup.defer(async () => {
    server.off('close', reportLoss)
    await stop(server)
    if (!durable) await removeCluster(dataDir, name)
  })
  const adminUrl = superuserUrl(cluster, port, 'postgres')
  await ensureServiceRole(adminUrl, superuserUrl(cluster, port, SERVICE), servicePassword(cluster.password))
  const open = cleanup.move()
  return { url: serviceUrl(cluster, port), adminUrl, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

/** The URL of the durable database in dataDir while another process has it open, else undefined. */
export async function findOpenDatabase(dataDir: string): Promise<string | undefined> {
  const cluster = await findCluster(dataDir, DURABLE)
  const running = cluster && (await findPostmaster(cluster.data))
  return running && serviceUrl(cluster, running.port)
}

function superuserUrl({ password }: Cluster, port: number, database: string) {
  return `postgres://postgres:${password}@127.0.0.1:${port}/${database}`
}

function serviceUrl({ password }: Cluster, port: number) {
  return `postgres://${SERVICE}:${servicePassword(password)}@127.0.0.1:${port}/${SERVICE}`
}

/**
 * Stops a server whose owner died without closing it. Its watchdog stops it too, but may not be done when a start follows a
 * `kill -9` at once.
 */
async function endOrphan({ data }: Cluster, { bin, account }: Programs, log: (line: string) => void) {
  await removeStaleLock(data)
  const found = await findPostmaster(data)
  if (found === undefined) return
  if (found.owner === undefined || (await isAlive(found.owner))) throw alreadyRunning(data, found)
  log(`Ending the database server ${found.pid} that process ${found.owner} left behind`)
  try {
    await runAs(account, join(bin, 'pg_ctl'), ['stop', '-D', data, '-m', 'fast', '-s'])
  } catch (error) {
    if ((await findPostmaster(data)) !== undefined) throw error
  }
}

function alreadyRunning(data: string, { pid, owner }: Postmaster) {
  const starter = owner === undefined ? 'not by this service' : `by process ${owner}`
  const running = `The database in ${data} is already running: server process ${pid}, started ${starter}`
  return new Error(`${running}. Stop that one, or set DATA_DIR to another folder.`)
}

/** Resolves when the server takes connections. `output` always holds its last lines. */
async function startServer(cluster: Cluster, programs: Programs, options: ServerOptions) {
  for (let attempt = 1; ; attempt++) {
    const port = await findFreePort()
    const server = spawnServer(cluster, programs, port, options)
    const { output, ready } = readOutput(server)
    try {
      await ready
      return { server, port, output }
    } catch (error) {
      const found = await findPostmaster(cluster.data)
      if (found !== undefined) throw alreadyRunning(cluster.data, found)
      // Another process may have taken the port between the check and the server's start.
      const portTaken = output.some((line) => line.includes('could not create any TCP/IP sockets'))
      if (!portTaken || attempt === PORT_ATTEMPTS) throw error
    }
  }
}

async function findFreePort(): Promise<number> {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  listener.close()
  await once(listener, 'close')
  if (address === null || typeof address === 'string') throw new Error('no TCP port on 127.0.0.1')
  return address.port
}

type ServerOptions = Pick<EmbeddedPostgresOptions, 'durable' | 'settings'>

function spawnServer({ data }: Cluster, { bin, account }: Programs, port: number, options: ServerOptions): Server {
  const { durable } = options
  const settings = { port, ...SETTINGS, ...(durable ? {} : THROWAWAY_SETTINGS), ...options.settings }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(join(bin, 'postgres'), ['-D', data, '-c', ownerMark(process.pid), ...flags], {
    ...spawnOptions(account),
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  if (server.pid !== undefined) guard(server, server.pid, account, durable)
  return server
}

type Server = ChildProcessByStdio<null, null, Readable>

/**
 * Stops the server when this process has ended: the kernel then closes the pipe in every case, and `read` returns. It uses the
 * process id, not the folder: a new owner may already run another server there.
 */
function guard(server: Server, pid: number, account: Account, durable: boolean) {
  const watchdog = spawn('/bin/sh', ['-c', `read -r _; kill -s ${durable ? 'INT' : 'QUIT'} ${pid}`], {
    ...spawnOptions(account),
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // A server without a watchdog could outlive this process.
  watchdog.once('error', () => server.kill('SIGQUIT'))
  server.once('exit', () => watchdog.kill('SIGKILL'))
}

/** `ready` rejects with the server's last lines if it ends first. */
function readOutput(server: Server) {
  const output: string[] = []
  const { promise: accepting, resolve: accept } = Promise.withResolvers<void>()
  createInterface({ input: server.stderr }).on('line', (line) => {
    output.push(line)
    if (output.length > OUTPUT_LINES) output.shift()
    if (line.includes('database system is ready to accept connections')) accept()
  })
  const failed = once(server, 'close').then(() => {
    throw new Error(`PostgreSQL did not start:\n${output.join('\n')}`)
  })
  return { output, ready: Promise.race([accepting, failed]) }
}

/** Stops with a checkpoint, then without one, then by force. The next start recovers from the last two. */
async function stop(server: Server) {
  for (const [signal, seconds] of STOP) {
    if (server.exitCode !== null || server.signalCode !== null) return
    server.kill(signal)
    await once(server, 'exit', { signal: AbortSignal.timeout(seconds * 1000) }).catch(() => {})
  }
}

/** The folder of the durable cluster. */
const DURABLE = 'postgres'
const PORT_ATTEMPTS = 5
const OUTPUT_LINES = 20

const STOP = [
  ['SIGINT', 15],
  ['SIGQUIT', 5],
  ['SIGKILL', 5],
] as const

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 200,
  shared_buffers: '64MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Above ERROR: a client gets its errors as answers.
  log_min_messages: 'log',
  log_checkpoints: 'off',
}

const THROWAWAY_SETTINGS = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' }
