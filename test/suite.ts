// Runs test files, each in a process of its own, some at a time. `test/run.ts` starts this beside a database.
//
// The scheduler, the parser and the timeouts are tap's: each file is a `spawn` of one tap test. tap's command runs files
// in the same way, but it also loads its recorder for coverage into every process, which doubles the time of each start.

import type { StdioOptions } from 'node:child_process'
import { globSync, readFileSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { inspect, parseArgs } from 'node:util'
import type { Base, Spawn } from 'tap'
import { Test, t } from 'tap'

/** Of all files, in assertions. */
export interface Sums {
  passed: number
  failed: number
  skipped: number
}

type Point = Base['lists']['fail'][number]

const ROOT = join(import.meta.dirname, '..')
const TOGETHER = 'test/together.ts'
const SLOWEST = 40

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    grep: { type: 'string', short: 'g', multiple: true },
    // One more than there are processors, because files also wait. With more the tests of files that work take more processor time
    // for the same, and what the service does within seconds of its own clock takes longer than that.
    jobs: { type: 'string', short: 'j', default: String(availableParallelism() + 1) },
    only: { type: 'boolean', default: false },
    // Of the pages, in .tap/pages/, for people.
    pictures: { type: 'boolean', default: false },
    // Time of each file, and of the processor in it: of its own process, and of the programs that it starts, without the database.
    slowest: { type: 'boolean', default: false },
    tap: { type: 'boolean', default: false },
    // Of one file, in seconds. Generous: a machine under load is no failure.
    timeout: { type: 'string', short: 't', default: '600' },
  },
})

/** The names of the files, from the root. Throws if a path does not exist, or no file is found. */
function findFiles(paths: string[]): string[] {
  const inside = (path: string) => (statSync(path).isDirectory() ? globSync(join(path, '**/*.test.ts')) : [path])
  const files = new Set(paths.flatMap((path) => inside(resolve(ROOT, path)).map((file) => relative(ROOT, file))))
  if (files.size === 0) throw new Error(`no test file in ${paths.join(', ')}`)
  return [...files].sort()
}

/** Prints each file as it ends, with what failed in it, and after all of them what was skipped. */
async function runFiles(files: string[]): Promise<Sums> {
  // The test that tap opens for each process is not used here, and would time out.
  t.setTimeout(0)
  const suite = new Test({ name: 'tests' })
  const jobs = Number(options.jobs)
  const [timed, others] = splitBy(files, (file) => MEASURES.test(readFileSync(join(ROOT, file), 'utf8')))
  const groups = [...timed.map((file) => [file]), ...groupFiles(others)]
  let timedLeft = timed.length
  const setJobs = () => {
    suite.jobs = timedLeft > 0 ? Math.min(jobs, TIMED_JOBS) : jobs
  }
  setJobs()
  const begun = new Map<Base, number>()
  let broken = 0
  suite.on('subtestStart', (file) => {
    begun.set(file, performance.now())
  })
  suite.on('subtestEnd', (file) => {
    const milliseconds = performance.now() - (begun.get(file) ?? performance.now())
    if (isBroken(file)) broken++
    // tap reads the number of jobs before each start.
    if (timed.includes(file.name) && --timedLeft === 0) setJobs()
    if (!options.tap) console.log(describeFile(file, milliseconds))
  })
  if (options.tap) suite.pipe(process.stdout)
  else suite.resume()
  const completed = new Promise((resolve) => suite.once('complete', resolve))
  suite.runMain(() => {})
  for (const group of groups) add(suite, group)
  suite.end()
  await completed
  const passedOver = [...suite.lists.skip, ...suite.lists.todo]
  const skipped = passedOver.filter((point) => !isEmptyFile(point))
  for (const point of skipped) console.log(`skipped: ${nameOf(point)}: ${point.skip || point.todo}`)
  if (options.slowest) {
    times.sort((a, b) => b.milliseconds - a.milliseconds)
    for (const { file, milliseconds, own, programs } of times.slice(0, SLOWEST))
      console.log(
        `slowest: ${seconds(milliseconds)} (processor: ${seconds(own)}, its programs ${seconds(programs)}) ${file}`,
      )
  }
  const { pass, fail } = suite.counts
  // Not from the counts: those have the tests that --grep and --only leave out as well.
  const empty = passedOver.length - skipped.length
  // tap counts some of the broken files, and others not.
  return { passed: pass, failed: Math.max(fail, broken) + empty, skipped: skipped.length }
}

function splitBy<T>(all: T[], test: (one: T) => boolean): [yes: T[], no: T[]] {
  return [all.filter(test), all.filter((one) => !test(one))]
}

/**
 * Files that measure how long something takes. They come first and have the machine nearly to themselves: what they hold the service to
 * are seconds, and beside three other files a second is not what it is for a user.
 */
const MEASURES = /performance\.now\(\) - /
const TIMED_JOBS = 3

/**
 * Neighbours share a process, because to load the service and to warm it up costs one to two seconds of processor time, which is
 * more than most files. Those that wait most of their time come first, because the longest are among them; those that change what the
 * next file would see have processes of their own.
 */
function groupFiles(files: string[]): string[][] {
  const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8')
  const [packing, others] = splitBy(files, (file) => PACKS.test(textOf(file)))
  const [alone, sharing] = splitBy(others, (file) => WAITS.has(file) || NEEDS_PROCESS.test(textOf(file)))
  const [starting, shared] = splitBy(sharing, (file) => STARTS.test(textOf(file)))
  const groups = [packing, ...cut(starting, STARTING_GROUP), ...alone.map((file) => [file]), ...cut(shared, GROUP)]
  return groups.filter((group) => group.length > 0)
}

/**
 * Few files are as many groups as run at a time. A group ends with a folder where it has enough files: files of one folder load the same.
 */
function cut(files: string[], limits: { enough: number; most: number }): string[][] {
  const share = Math.ceil(files.length / Number(options.jobs))
  const [enough, most] = [Math.min(share, limits.enough), Math.min(share, limits.most)]
  const groups: string[][] = []
  let group: string[] = []
  for (const [n, file] of files.entries()) {
    group.push(file)
    const next = files[n + 1]
    const isEnd = next === undefined || (group.length >= enough && dirname(next) !== dirname(file))
    if (!isEnd && group.length < most) continue
    groups.push(group)
    group = []
  }
  return groups
}

/** Files of one process. */
const GROUP = { enough: 14, most: 22 }
/** They wait for programs, for an outage, or for pages that never end. The first is skipped as a whole where its program is another. */
const WAITS = new Set(
  ['backup', 'crowd', 'demo', 'outage', 'pages/guide', 'readers', 'source', 'workers/house'].map(
    (name) => `test/${name}.test.ts`,
  ),
)
/**
 * They pack and install the packages, which is done once in a process. Together they take longer than any other process, so theirs is
 * the first.
 */
const PACKS = /\/packing\.ts'/
/** They start processes of the service. So many of them, one after the other, take no longer than what packs. */
const STARTS = /\b(startChild|openCrashHarness)\(|\/lab\.ts'/
const STARTING_GROUP = { enough: 7, most: 7 }
/** At the top level, settings of tap's own test of the process. Anywhere, settings of the process. */
const NEEDS_PROCESS =
  /^t\.(?!(test|teardown|equal)\()|^const .* = t\.(?!testdir\()|setGlobalDispatcher|process\.(env\.\w+ = |stdout\.write = )/m

/** With the folder of each, where they are of several. */
function nameGroup(files: string[]): string {
  const [first = '', ...others] = files
  if (others.length === 0) return first
  const folder = files.every((file) => dirname(file) === dirname(first)) ? dirname(first) : 'test'
  return `${folder}/{${files.map((file) => relative(folder, file).replace(/\.test\.ts$/, ''))}}.test.ts`
}

/** New objects have more room than by default, because tests make many and keep few: the collector runs less often. */
const HEAP = ['--min-semi-space-size=32', '--max-semi-space-size=64']

function add(suite: Pick<Test, 'spawn'>, files: string[]): void {
  // tap puts its recorder into the child's NODE_OPTIONS. `env` puts this process's own options there instead.
  const args = [`NODE_OPTIONS=${process.env.NODE_OPTIONS ?? ''}`, process.execPath, ...HEAP, TOGETHER, files[0] ?? '']
  const fileTimeout = Number(options.timeout) * 1000
  // A file that never ends is ended in its process (see together.ts). This is for a process that cannot do even that.
  const timeout = fileTimeout * (1 + files.length / 10)
  const env = {
    // Node keeps here what it has compiled, for the next process that imports it.
    NODE_COMPILE_CACHE: join(ROOT, '.tap/compiled'),
    ...process.env,
    TEST_FILES: files.join('\n'),
    TEST_FILE_TIMEOUT_MS: String(fileTimeout),
    TAP_TIMEOUT: String(timeout / 1000),
    TAP_ONLY: options.only ? '1' : '0',
    ...(options.slowest ? { TEST_SLOWEST: '1' } : {}),
    ...(options.pictures ? { TEST_PICTURES: '1' } : {}),
    ...(options.grep ? { TAP_GREP: options.grep.join('\n') } : {}),
  }
  // Nothing is written to stdin. Its end tells the process that this one was killed (see together.ts).
  const stdio: StdioOptions = ['pipe', 'pipe', 'pipe']
  const running = suite.spawn('env', args, { name: nameGroup(files), cwd: ROOT, env, stdio, timeout, buffered: true })
  const { subtest } = running as { subtest?: Spawn | null }
  // together.ts says after each file how long it took.
  subtest?.parser.on('comment', (text: string) => {
    const [, milliseconds, own, programs, file] = /^# took (\d+) (\d+) (\d+) (\S+)/.exec(text) ?? []
    if (file === undefined) return
    times.push({ file, milliseconds: Number(milliseconds), own: Number(own), programs: Number(programs) })
  })
  subtest?.once('process', ({ stderr }) => {
    stderr
      ?.setEncoding('utf8')
      .on('data', (text: string) => stderrOf.set(subtest, (stderrOf.get(subtest) ?? '') + text))
  })
}

/** In milliseconds. */
const times: { file: string; milliseconds: number; own: number; programs: number }[] = []
const stderrOf = new WeakMap<Base, string>()

/** A line, and below it each failure and what the file wrote to stderr. */
function describeFile(file: Base, milliseconds: number): string {
  const { exitCode, signal, skip } = (file as Spawn).options
  const failures = file.lists.fail.map(describeFailure)
  if (skip === EMPTY) failures.push(`not ok: it has no tests`)
  else if (isBroken(file)) failures.push(`not ok: it ended with ${signal ?? exitCode}`)
  const head = `${failures.length > 0 ? 'FAILED' : 'ok'} ${file.name} # ${file.counts.pass} in ${seconds(milliseconds)}`
  return [head, ...failures, stderrOf.get(file)?.trimEnd() ?? ''].filter((text) => text !== '').join('\n')
}

/** It ended too early, as by a signal, with no assertion that says so. */
function isBroken(file: Base): boolean {
  return file.results?.ok !== true && file.lists.fail.length === 0 && (file as Spawn).options.skip !== EMPTY
}

function describeFailure(point: Point): string {
  const { source, stack, diff, at, ...rest } = point.diag ?? {}
  const details = Object.keys(rest).length > 0 ? inspect(rest, { depth: 6, breakLength: 120 }) : undefined
  const text = [stack, source, diff, details].filter((part) => part !== undefined && part !== '').join('\n')
  return `not ok: ${nameOf(point)}\n${text.trimEnd().replaceAll(/^(?=.)/gm, '    ')}`
}

/** tap's words for a file in which no assertion was made. */
const EMPTY = 'no tests found'

function isEmptyFile(point: Point): boolean {
  return point.closingTestPoint === true && point.skip === EMPTY
}

function nameOf({ fullname }: Point): string {
  return fullname.replace(/^tests > /, '')
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`
}

const sums = await runFiles(findFiles(positionals.length > 0 ? positionals : ['test']))
process.exitCode = sums.failed > 0 ? 1 : 0
process.send?.({ sums })
