// Runs the official conformance suites, as their own programs, against a server that is already up.
import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/** The package for the revisions up to 2025-11-25, and the one that knows 2026-07-28. */
export const SUITES = { until2025: '@modelcontextprotocol/conformance', since2026: 'mcp-conformance-next' } as const

export interface Run {
  /** 0: exactly the scenarios of the baseline failed. */
  code: number | null
  output: string
  /** Checks by scenario, in the order they ran. */
  scenarios: Map<string, { id: string; status: string; errorMessage?: string }[]>
}

export async function runSuite(
  suite: keyof typeof SUITES,
  url: string,
  { baseline, args = [] }: { baseline?: string; args?: string[] } = {},
): Promise<Run> {
  await using opened = new AsyncDisposableStack()
  // It writes to the user's home and to the folder of -o.
  const folder = await mkdtemp(join(tmpdir(), 'countersign-conformance-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const results = join(folder, 'results')
  const program = join(import.meta.dirname, '../../node_modules', SUITES[suite], 'dist/index.js')
  const expected = baseline ? ['--expected-failures', join(import.meta.dirname, baseline)] : []
  const child = spawn(process.execPath, [program, 'server', '--url', url, '-o', results, ...expected, ...args], {
    env: { PATH: process.env.PATH, HOME: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { code, output: output + errors, scenarios: await readResults(results) }
}

async function readResults(folder: string): Promise<Run['scenarios']> {
  const found: Run['scenarios'] = new Map()
  for (const run of (await readdir(folder)).sort()) {
    const scenario = run.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '')
    found.set(scenario, JSON.parse(await readFile(join(folder, run, 'checks.json'), 'utf8')))
  }
  return found
}

/** The failures and warnings of a run, for its report. */
export function failuresOf({ scenarios }: Run): string[] {
  return [...scenarios].flatMap(([scenario, checks]) =>
    checks
      .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
      .map(({ id, status, errorMessage }) => `${scenario}: ${status} ${id}: ${errorMessage ?? ''}`),
  )
}
