// The client as users get it: packed from copies of its files, so that the checkout is not changed, and laid out in a project or
// installed by npm. And programs of other versions of Node.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'

export const ROOT = join(import.meta.dirname, '../..')
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
export function openProject(t: Test): { folder: string; project: string } {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-client-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const project = join(folder, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{"name":"project","private":true,"type":"module"}')
  return { folder, project }
}

/**
 * Packs the package in this folder of the checkout, of which it needs the folders that are `copied`. Returns the tarball, its manifest,
 * and the copy of the checkout.
 */
export async function pack(folder: string, source = 'client', copied: readonly string[] = ['client']) {
  // The packing has node_modules beside the project, not above it.
  const checkout = join(folder, 'checkout')
  const packed = join(folder, 'packed')
  mkdirSync(checkout, { recursive: true })
  mkdirSync(packed, { recursive: true })
  for (const name of [...copied, 'tsconfig.json', 'LICENSE', 'docs/NOTICE.md']) {
    mkdirSync(dirname(join(checkout, name)), { recursive: true })
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true })
  }
  rmSync(join(checkout, 'node_modules'), { force: true })
  symlinkSync(MODULES, join(checkout, 'node_modules'))
  const printed = await succeed('npm', ['pack', '--silent', '--pack-destination', packed], join(checkout, source))
  const manifest = JSON.parse(readFileSync(join(checkout, source, 'package.json'), 'utf8')) as {
    name: string
    bin?: Record<string, string>
    dependencies: Record<string, string>
    exports: Record<string, unknown>
  }
  return { tarball: join(packed, printed.trim().split('\n').at(-1) ?? ''), checkout, manifest }
}

/**
 * Puts the package into the project without npm: its own files are copies, so that it finds only what it declares and what is in
 * `others`.
 */
export async function layOut(
  project: string,
  { tarball, manifest }: Awaited<ReturnType<typeof pack>>,
  others: readonly string[],
): Promise<void> {
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

/** The program of Node of this major version: this one, one on the path, or one from the registry. Null without a registry. */
export async function nodeOf(major: number, folder: string): Promise<string | null> {
  const candidates = (process.env.PATH ?? '').split(':').concat('/usr/local/bin', '/usr/bin')
  for (const program of [process.execPath, ...candidates.map((one) => join(one, 'node'))]) {
    const version = await succeed(program, ['-p', 'process.versions.node'], ROOT).catch(() => '')
    if (Number.parseInt(version, 10) === major) return program
  }
  const home = join(folder, `node${major}`)
  mkdirSync(home)
  writeFileSync(join(home, 'package.json'), '{"private":true}')
  const name = `node-${process.platform}-${process.arch}`
  const options = ['install', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=1', `${name}@${major}`]
  const installed = await run('npm', options, home)
  return installed.code === 0 ? join(home, 'node_modules', name, 'bin/node') : null
}
