// Runs the MCP inspector's command line, with a new home folder.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { TOOL, type ToolResult } from './paid-tool.ts'

const MANIFEST = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json')

export interface Inspection {
  /** 0: fine; 5: the tool answered with an error; 6: --strict found a schema that some models refuse. */
  code: number
  /** The JSON that it printed; undefined without output. */
  printed?: { result?: ToolResult & { tools?: Record<string, unknown>[] } }
  errors: string
}

export interface Inspector extends AsyncDisposable {
  run(...args: string[]): Promise<Inspection>
  /** Calls the paid tool. @param metadata `name=JSON`, members of `_meta` */
  buy(era: string, args: object, ...metadata: string[]): Promise<Inspection>
}

/** @param target the endpoint `path` of a service, or options that name another server */
export async function openInspector(target: string | string[], path = '/mcp'): Promise<Inspector> {
  const home = await mkdtemp(join(tmpdir(), 'countersign-inspector-'))
  const { bin } = createRequire(import.meta.url)(MANIFEST) as { bin: Record<string, string> }
  const program = join(dirname(MANIFEST), bin['mcp-inspector'] ?? '')
  const server = typeof target === 'string' ? [new URL(path, target).href, '--transport', 'http'] : target
  const fixed = ['--cli', ...server, '--format', 'json']
  const run = (...args: string[]) =>
    new Promise<Inspection>((resolve) => {
      const env = { ...process.env, HOME: home, NODE_OPTIONS: '' }
      execFile(process.execPath, [program, ...fixed, ...args], { env, maxBuffer: 1 << 24 }, (error, stdout, errors) => {
        const code = error ? Number(error.code ?? -1) : 0
        resolve({ code, errors, ...(stdout.trim() && { printed: JSON.parse(stdout) }) })
      })
    })
  return {
    run,
    buy(era, args, ...metadata) {
      const call = ['--tool-name', TOOL, '--tool-args-json', JSON.stringify(args), '--tool-metadata', ...metadata]
      return run('--protocol-era', era, '--method', 'tools/call', ...call)
    },
    [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }),
  }
}
