// The client as users get it: packed from copies of its files, so that the checkout is not changed, and laid out in a project or
// installed by npm. Each package is packed once for all files of a process. And programs of other versions of Node.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { endings } from '../endings.ts'

export const ROOT = join(import.meta.dirname, '../..')
/** The versions of Node on which each package runs, as its manifest says by the first. */
export const MAJORS = [20, 22, 24]
export const MODULES = join(ROOT, 'node_modules')

export async function run(command: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = {}) {
  // npm's settings of the run that started this test are not those of the project.
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS|TAP)/i.test(name))
  const child = spawn(command, args, {
    cwd,
    env: { ...Object.fromEntries(own), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}

export async function succeed(...[command, args, ...rest]: Parameters<typeof run>): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, ...rest)
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: exit ${code}\n${stdout}\n${stderr}`)
  return stdout
}

/** Outside the repository, because inside it Node would find files that the tarball lacks. */
export function openProject(t: Test): string {
  const folder = openFolder()
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return makeProject(folder)
}

function openFolder(): string {
  return mkdtempSync(join(tmpdir(), 'countersign-client-'))
}

function makeProject(folder: string): string {
  const project = join(folder, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{"name":"project","private":true,"type":"module"}')
  return project
}

/** For what all files of this process share. */
function shareFolder(): string {
  const folder = openFolder()
  endings.defer(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

interface Packed {
  tarball: string
  manifest: {
    name: string
    bin?: Record<string, string>
    dependencies: Record<string, string>
    exports: Record<string, unknown>
  }
  /** The copy of the checkout, as packing has left it. */
  checkout: string
}

const packages = new Map<string, Promise<Packed>>()

/**
 * Packs the package in this folder of the checkout, of which it needs the folders that are `copied`. Nothing may change the files of
 * the result.
 */
export function pack(source = 'client', copied: readonly string[] = ['client']): Promise<Packed> {
  let packed = packages.get(source)
  if (!packed) {
    packed = packInto(shareFolder(), source, copied)
    packages.set(source, packed)
  }
  return packed
}

async function packInto(folder: string, source: string, copied: readonly string[]): Promise<Packed> {
  // The packing has node_modules beside the project, not above it.
  const checkout = join(folder, 'checkout')
  const packed = join(folder, 'packed')
  mkdirSync(checkout)
  mkdirSync(packed)
  for (const name of [...copied, 'tsconfig.json', 'LICENSE', 'docs/NOTICE.md']) {
    mkdirSync(dirname(join(checkout, name)), { recursive: true })
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true })
  }
  rmSync(join(checkout, 'node_modules'), { force: true })
  symlinkSync(MODULES, join(checkout, 'node_modules'))
  const printed = await succeed('npm', ['pack', '--silent', '--pack-destination', packed], join(checkout, source))
  const manifest = JSON.parse(readFileSync(join(checkout, source, 'package.json'), 'utf8')) as Packed['manifest']
  return { tarball: join(packed, printed.trim().split('\n').at(-1) ?? ''), checkout, manifest }
}

/** What npm said to an installation. */
interface Installation {
  code: number
  stderr: string
  /** The registry of packages cannot be reached, so nothing is installed. */
  isAway: boolean
}

export interface Installed extends Installation {
  project: string
  /** The command of the client. */
  bin: string
}

let installed: Promise<Installed> | undefined

/** The packed client, installed by npm into an empty folder, which all files of this process share. */
export function installClient(): Promise<Installed> {
  installed ??= (async () => {
    const project = makeProject(shareFolder())
    const { tarball } = await pack()
    return { project, bin: join(project, 'node_modules/.bin/countersign'), ...(await install(project, tarball)) }
  })()
  return installed
}

/** Adds a tarball, or a package of the registry, to a project. */
export async function install(project: string, what: string): Promise<Installation> {
  const options = ['install', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=1', what]
  const { code, stderr } = await run('npm', options, project)
  const isAway = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET|ENETUNREACH/.test(stderr)
  return { code, stderr, isAway }
}

/**
 * Puts the package into the project without npm: its own files are copies, so that it finds only what it declares and what is in
 * `others`.
 */
export async function layOut(project: string, { tarball, manifest }: Packed, others: readonly string[]): Promise<void> {
  const own = join(project, 'node_modules', manifest.name)
  mkdirSync(own, { recursive: true })
  await succeed('tar', ['-xzf', tarball, '-C', own, '--strip-components=1'], project)
  mkdirSync(join(project, 'node_modules/.bin'), { recursive: true })
  for (const [name, target] of Object.entries(manifest.bin ?? {})) {
    chmodSync(join(own, target), 0o755)
    symlinkSync(join(own, target), join(project, 'node_modules/.bin', name))
  }
  for (const name of new Set([...Object.keys(manifest.dependencies), ...others])) {
    // A scope may be among the others as a whole.
    if (others.includes(name.split('/')[0] ?? '') && name.includes('/')) continue
    mkdirSync(dirname(join(project, 'node_modules', name)), { recursive: true })
    symlinkSync(join(MODULES, name), join(project, 'node_modules', name))
  }
}

const programs = new Map<number, Promise<string | null>>()

/** The program of Node of this major version: this one, one on the path, or one from the registry, which is kept in `.tap`. Null without a registry. */
export function nodeOf(major: number): Promise<string | null> {
  let found = programs.get(major)
  if (!found) {
    found = findNode(major)
    programs.set(major, found)
  }
  return found
}

async function findNode(major: number): Promise<string | null> {
  const name = `node-${process.platform}-${process.arch}`
  const kept = join(ROOT, '.tap', `${name}-${major}`)
  const program = join(kept, 'node_modules', name, 'bin/node')
  const candidates = (process.env.PATH ?? '').split(':').concat('/usr/local/bin', '/usr/bin')
  for (const one of [process.execPath, ...new Set(candidates.map((folder) => join(folder, 'node'))), program]) {
    if (!existsSync(one)) continue
    const version = await succeed(one, ['-p', 'process.versions.node'], ROOT).catch(() => '')
    if (Number.parseInt(version, 10) === major) return one
  }
  // Kept for the next run. It gets its name when it is whole.
  const draft = `${kept}.${process.pid}`
  mkdirSync(draft, { recursive: true })
  writeFileSync(join(draft, 'package.json'), '{"private":true}')
  const { code } = await install(draft, `${name}@${major}`)
  if (code === 0) {
    rmSync(kept, { recursive: true, force: true })
    renameSync(draft, kept)
  }
  rmSync(draft, { recursive: true, force: true })
  return code === 0 ? program : null
}
