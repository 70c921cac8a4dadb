// Makes what the Dockerfile makes, and says how large it is: with docker, podman or buildah where one works here, and else by the steps of
// the Dockerfile itself, in a new folder, as another user. `npm run image`
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { readCall } from '../bench/program.ts'

const ROOT = join(import.meta.dirname, '..')
const TAG = 'countersign:steps'
/** Of the user `nobody`, who owns nothing. */
const NOBODY = 65_534
const BLOCK_BYTES = 512
/** Everything that web and worker load when they start. */
const LOADS = `for (const file of ['server/app.ts', 'server/commands.ts', 'server/doctor.ts', 'workers/context.ts', 'workers/runner.ts'])
  await import(process.cwd() + '/' + file)`

/** An instruction of a Dockerfile with its words; lines that are continued are one. */
export interface Step {
  name: string
  rest: string
}

export function readSteps(dockerfile: string): Step[] {
  const lines = dockerfile.split('\n').filter((line) => !/^\s*#/.test(line))
  return lines
    .join('\n')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .flatMap((line) => {
      const [, name, rest] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? []
      return name && rest ? [{ name, rest }] : []
    })
}

interface Stage {
  folder: string
  env: Record<string, string>
}

/**
 * Takes the steps in folders below `place`, one for each stage. `WORKDIR` is a folder of the stage, so commands must name files relative
 * to it. Answers the working folder of the last stage. Throws for an instruction that it does not know.
 */
export function takeSteps(steps: Step[], place: string, run: (command: string, stage: Stage) => void): Stage {
  const stages = new Map<string, Stage>()
  let root = ''
  let stage: Stage = { folder: '', env: {} }
  const enter = (folder: string) => {
    mkdirSync(folder, { recursive: true })
    stage.folder = folder
  }
  for (const { name, rest } of steps) {
    const words = rest.split(/\s+/)
    if (name === 'FROM') {
      root = join(place, words[2] ?? `stage-${stages.size + 1}`)
      stage = { folder: root, env: {} }
      stages.set(basename(root), stage)
      enter(root)
    } else if (name === 'WORKDIR') enter(join(root, rest))
    else if (name === 'ENV')
      for (const word of words) stage.env[word.split('=')[0]!] = word.slice(word.indexOf('=') + 1)
    else if (name === 'COPY') copy(words, stages, stage, place)
    else if (name === 'RUN') run(rest, stage)
    else if (!OF_THE_RUN.has(name)) throw new Error(`the Dockerfile has ${name}, which is not known here`)
  }
  return stage
}

/** What matters when the image runs. */
const OF_THE_RUN = new Set(['USER', 'EXPOSE', 'HEALTHCHECK', 'CMD'])

function copy(words: string[], stages: Map<string, Stage>, stage: Stage, place: string) {
  const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length)
  const names = words.filter((word) => !word.startsWith('--'))
  const target = names.pop()!
  const origin = from === undefined ? ROOT : stages.has(from) && join(place, from)
  if (!origin) throw new Error(`the Dockerfile copies from ${from}, which is no stage before`)
  for (const name of names) {
    const to = join(stage.folder, target, target.endsWith('/') ? basename(name) : '')
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(origin, name), to, { recursive: true, verbatimSymlinks: true })
  }
}

function findBuilder(): string | undefined {
  const works = (program: string) => spawnSync(program, ['info'], { stdio: 'ignore', timeout: 10_000 }).status === 0
  return ['docker', 'podman', 'buildah'].find(works)
}

/** The form of images that podman and buildah make by themselves has no health check. */
export function buildArguments(builder: string): string[] {
  const format = builder === 'docker' ? [] : ['--format', 'docker']
  return [builder === 'buildah' ? 'bud' : 'build', ...format, '--tag', TAG, '.']
}

function buildWith(builder: string): void {
  must(spawnSync(builder, buildArguments(builder), { cwd: ROOT, stdio: 'inherit' }).status, builder)
  const size = builder === 'buildah' ? ['images', TAG] : ['image', 'ls', TAG]
  must(spawnSync(builder, size, { stdio: 'inherit' }).status, builder)
}

function buildBySteps(): void {
  const place = mkdtempSync(join(tmpdir(), 'countersign-image-'))
  const isRoot = process.getuid?.() === 0
  const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {}
  try {
    chmodSync(place, 0o755)
    const run = (command: string, { folder, env }: Stage) => {
      if (isRoot) give(place)
      const own = { HOME: place, PATH: process.env.PATH ?? '', ...registryOf(process.env), ...env }
      must(spawnSync('/bin/sh', ['-c', command], { cwd: folder, env: own, stdio: 'inherit', ...user }).status, command)
    }
    const last = takeSteps(readSteps(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')), place, run)
    run(`node --input-type=module -e "${LOADS.replaceAll('\n', ' ')}"`, last)
    console.log(
      `made by the steps of the Dockerfile as ${isRoot ? 'user nobody' : 'this user'}: ${megabytes(last.folder)} MB`,
    )
    const packages = join(last.folder, 'node_modules')
    const sizes = listPackages(packages).map((name) => ({ name, size: megabytes(join(packages, name)) }))
    for (const { name, size } of sizes.sort((one, other) => other.size - one.size).slice(0, LISTED))
      console.log(`${String(size).padStart(6)} MB  ${name}`)
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

const LISTED = 12

/** Where npm finds its registry is a matter of this machine, and not of the image. */
function registryOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const ours = Object.entries(env).filter(([name]) => /^(npm_config_|NODE_EXTRA_CA_CERTS$|https?_proxy$)/i.test(name))
  return Object.fromEntries(ours.map(([name, value]) => [name, value ?? '']))
}

function give(path: string) {
  chownSync(path, NOBODY, NOBODY)
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) give(join(path, entry.name))
    else if (!entry.isSymbolicLink()) chownSync(join(path, entry.name), NOBODY, NOBODY)
  }
}

function listPackages(folder: string): string[] {
  return readdirSync(folder).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(folder, name)).map((inner) => `${name}/${inner}`) : [name],
  )
}

/** On the disk. */
function megabytes(path: string): number {
  const bytes = (at: string): number =>
    readdirSync(at, { withFileTypes: true }).reduce(
      (sum, entry) =>
        sum + (entry.isDirectory() ? bytes(join(at, entry.name)) : entry.isFile() ? sizeOf(join(at, entry.name)) : 0),
      sizeOf(at),
    )
  return Math.round((statSync(path).isDirectory() ? bytes(path) : sizeOf(path)) / 1024 / 1024)
}

const sizeOf = (path: string) => statSync(path).blocks * BLOCK_BYTES

function must(status: number | null, what: string) {
  if (status !== 0) throw new Error(`this failed: ${what}`)
}

if (import.meta.main) {
  const { options } = await readCall('npm run image --', {
    summary: 'make what the Dockerfile makes, and say how large it is',
    operands: [],
    usage: '[--by-steps]',
    about:
      'With docker, podman or buildah where one works here, and else by the steps of the Dockerfile itself, in a new folder, as\n' +
      'another user.',
    examples: ['npm run image', 'npm run image -- --by-steps'],
    exitStatus: '0 good, 1 it could not be made, 2 wrong usage.',
    options: {
      'by-steps': { type: 'boolean', default: false, help: 'the steps of the Dockerfile, also where a builder works' },
    },
  })
  const builder = options['by-steps'] ? undefined : findBuilder()
  if (builder) buildWith(builder)
  else buildBySteps()
}
