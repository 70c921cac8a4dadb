// The files of the embedded PostgreSQL, and the server that runs on them.
//
//   dataDir/postgres/            a folder, or a link to one that root's PostgreSQL account can reach
//     password                   of the superuser, 0600
//     data/                      the cluster, 0700, owned by the account
//
// A process that runs as root changes nothing below data/ but its lock file: the owner of that folder could replace it by a
// link to another place.

import { randomBytes } from 'node:crypto'
import {
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Account, Programs } from './programs.ts'
import { draftName, openRootFolder, removeFolder, runAs, SELF } from './programs.ts'

export interface Cluster {
  /** The folder that `postgres -D` runs on. */
  data: string
  /** Of the superuser `postgres`. */
  password: string
  /** The user and group that own the folder. */
  owner: { uid: number; gid: number }
}

/** The cluster `dataDir/name`, links followed, or undefined. It is complete: a draft has another name. */
export async function findCluster(dataDir: string, name: string): Promise<Cluster | undefined> {
  const home = await findHome(dataDir, name)
  if (home === undefined) return undefined
  const data = join(home, 'data')
  const { uid, gid } = await stat(data)
  const password = await readFile(join(home, 'password'), 'utf8').catch((cause) => {
    throw new Error(`The database in ${home} belongs to user id ${uid}. Run as that user, as root, or move it away.`, {
      cause,
    })
  })
  return { data, password: password.trim(), owner: { uid, gid } }
}

/**
 * Makes the cluster `dataDir/name`. If the account cannot reach dataDir, the files are in a folder of root's and dataDir has a
 * link.
 *
 * @param sync whether the files must be on the disk before this returns
 */
export async function createCluster(
  programs: Programs,
  options: { dataDir: string; name: string; sync: boolean; log: (line: string) => void },
): Promise<Cluster> {
  const { dataDir, name, sync, log } = options
  await removeDeadLink(dataDir, name)
  const near = join(dataDir, name)
  let home = near
  let draft = await openDraft(home, programs.account)
  if (draft === undefined) {
    // A new name each time: after `rm -r dataDir` the old data must not come back.
    home = join(await openRootFolder(), `${name}-${randomBytes(6).toString('hex')}`)
    draft = await openDraft(home, programs.account)
  }
  if (draft === undefined) throw new Error(`${programs.account.name} can reach neither ${near} nor ${home}`)
  await initialize(draft, programs, sync)
  await publish(draft, home, near)
  const cluster = await findCluster(dataDir, name)
  if (cluster === undefined) throw new Error(`The cluster ${home} was removed while it was made`)
  if (home !== near) {
    log(`${programs.account.name} cannot reach ${dataDir}: the database is kept in ${dirname(cluster.data)}`)
  }
  return cluster
}

export async function removeCluster(dataDir: string, name: string): Promise<void> {
  const home = await findHome(dataDir, name)
  if (home !== undefined) await removeFolder(home)
  // The link, where there was one.
  await rm(join(dataDir, name), { force: true })
}

/** A running server. `owner` is the process of this service that started it, if one did. */
export interface Postmaster {
  pid: number
  /** On 127.0.0.1. */
  port: number
  owner: number | undefined
}

export async function findPostmaster(data: string): Promise<Postmaster | undefined> {
  const lock = await readFile(join(data, LOCK), 'utf8').catch(() => undefined)
  if (lock === undefined) return undefined
  const pid = Number.parseInt(lock, 10)
  const command = await findCommand(pid)
  if (!command?.includes(` -D ${data} `)) return undefined
  const owner = command.match(OWNER)?.[1]
  // The lines of the lock file: process, folder, start, port, ...
  return { pid, port: Number(lock.split('\n')[3]), owner: owner === undefined ? undefined : Number(owner) }
}

/** An argument that names the process that started a server. It is on the server's command line as long as the server runs. */
export function ownerMark(pid: number): string {
  return `cluster_name=countersign-${pid}`
}

const OWNER = /cluster_name=countersign-(\d+)/

/**
 * Removes a lock file whose process id belongs to another program. PostgreSQL recognizes a dead process, but takes any living
 * process of the same user for its own: a container that is started again has the same few ids.
 */
export async function removeStaleLock(data: string): Promise<void> {
  if ((await findPostmaster(data)) === undefined) await rm(join(data, LOCK), { force: true })
}

export async function isAlive(pid: number): Promise<boolean> {
  return (await findCommand(pid)) !== undefined
}

/** The command line of a process, joined by spaces; undefined if the process has ended. */
async function findCommand(pid: number): Promise<string | undefined> {
  if (!(pid > 0)) return undefined
  if (process.platform === 'linux') {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    return line === '' ? undefined : line.replaceAll('\0', ' ')
  }
  const line = await runAs(SELF, 'ps', ['-ww', '-o', 'command=', '-p', String(pid)]).catch(() => '')
  return line === '' || line.startsWith('(') ? undefined : line.replace('\n', ' ')
}

async function removeDeadLink(dataDir: string, name: string) {
  if ((await findHome(dataDir, name)) === undefined) await unlink(join(dataDir, name)).catch(ignore('ENOENT'))
}

/** An empty home under a draft's name, or undefined if the account cannot reach it. */
async function openDraft(home: string, account: Account): Promise<string | undefined> {
  await removeDrafts(dirname(home))
  const draft = draftName(home)
  const data = join(draft, 'data')
  await mkdir(data, { recursive: true })
  await chmod(draft, 0o711)
  await chmod(data, 0o700)
  try {
    if (account.id.uid !== undefined) await chown(data, account.id.uid, account.id.gid)
    await runAs(account, '/bin/sh', ['-c', 'test -r "$0" && test -w "$0" && test -x "$0"', data])
    return draft
  } catch {
    await removeFolder(draft)
    return undefined
  }
}

/** Removes drafts of processes that crashed before they published them. */
async function removeDrafts(folder: string) {
  for (const name of await readdir(folder)) {
    const pid = name.match(/^postgres.*\.draft-(\d+)-\w+$/)?.[1]
    if (pid !== undefined && !(await isAlive(Number(pid)))) await removeFolder(join(folder, name))
  }
}

async function initialize(draft: string, { bin, account }: Programs, sync: boolean) {
  const password = join(draft, 'password')
  await writeFile(password, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  if (account.id.uid !== undefined) await chown(password, account.id.uid, account.id.gid)
  await runAs(account, join(bin, 'initdb'), [
    '-D',
    join(draft, 'data'),
    '--username=postgres',
    `--pwfile=${password}`,
    '--auth=scram-sha-256',
    // More iterations only slow down attackers who guess passwords, and this password has 192 random bits. Each new
    // connection would have to compute them.
    '--set=scram_iterations=1',
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
    ...(sync ? [] : ['--no-sync']),
  ])
}

/**
 * Gives the finished draft its name. Of two processes that make the same cluster at once, the first publishes; the other
 * removes its draft and uses the published one.
 */
async function publish(draft: string, home: string, near: string) {
  try {
    await rename(draft, home)
    // A crash between the two leaves an empty, unused cluster in root's folder.
    if (home !== near) await symlink(home, near)
  } catch (error) {
    await Promise.all([removeFolder(draft), home === near ? undefined : removeFolder(home)])
    ignore('ENOTEMPTY', 'EEXIST', 'ENOTDIR')(error)
  }
}

function findHome(dataDir: string, name: string) {
  return realpath(join(dataDir, name)).catch(ignore('ENOENT'))
}

function ignore(...codes: string[]) {
  return (error: unknown) => {
    if (!(error instanceof Error && 'code' in error && codes.includes(String(error.code)))) throw error
    return undefined
  }
}

const LOCK = 'postmaster.pid'
