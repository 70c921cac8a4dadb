// The lines of docs/guide/mcp.md with which hosts start `countersign mcp`: each is read as its host reads it, and starts a server.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { BARE_ENV } from '../children.ts'
import { openInspector } from '../mcp/inspector.ts'
import { openHere } from './mcp-hosts.ts'

const ROOT = join(import.meta.dirname, '../..')
const CLI = join(ROOT, 'client/cli.ts')
const guide = readFileSync(join(ROOT, 'docs/guide/mcp.md'), 'utf8')
const [, section = ''] = /## Hosts that cannot pay\n([\s\S]*?)\n## /.exec(guide) ?? []
const ARGS = /`ARGS`: `([^`]+)`/.exec(section)?.[1] ?? ''
const rows = new Map(
  [...section.matchAll(/^\| ([^|]+) \| (.+) \|$/gm)].map(([, host = '', how = '']) => [
    host,
    how.replace('ARGS', ARGS),
  ]),
)

const folder = mkdtempSync(join(tmpdir(), 'countersign-hosts-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
writeFileSync(join(folder, 'wallet.key'), `0x${'5b'.repeat(32)}`, { mode: 0o600 })

interface Started {
  command: string
  args: string[]
}

/** How the host starts the server, by its line: a command after `--`, or JSON in backticks. */
function startedBy(how: string): Started {
  const json = /(\{.*\})/.exec(how)?.[1]
  if (json === undefined) {
    const [command = '', ...args] = (/ -- ([^`]+)`/.exec(how)?.[1] ?? '').split(' ')
    return { command, args }
  }
  const { mcpServers, ...own } = JSON.parse(json)
  return mcpServers ? mcpServers.countersign : own
}

/** The same with the client of this checkout, a wallet that exists, and a service that nothing reaches. */
function here({ args }: Started): Started {
  const own = args.slice(args.indexOf('mcp')).map((arg) => {
    if (arg === 'https://HOST') return 'http://127.0.0.1:9'
    return arg.startsWith('/path/to/') ? join(folder, arg.slice('/path/to/'.length)) : arg
  })
  return { command: process.execPath, args: [CLI, ...own, '--journal', join(folder, 'journal')] }
}

t.test('a line for each host, which begins with npx', async (t) => {
  t.same([...rows.keys()].slice(2), ['Claude Code', 'Claude Desktop', 'Cursor', 'VS Code', 'Codex'])
  t.match(rows.get('Claude Code'), /^`claude mcp add countersign -- npx -y countersign mcp --service/)
  t.match(rows.get('Cursor'), /the same as Claude Desktop/)
  for (const [host, how] of rows)
    if (/npx/.test(how))
      t.match(startedBy(how), { command: 'npx', args: ['-y', 'countersign', 'mcp', '--service'] }, host)
})

t.test('each line starts a server that lists its tools', async (t) => {
  for (const [host, how] of rows) {
    if (!/npx/.test(how)) continue
    // The inspector below starts the program.
    const [, , ...args] = here(startedBy(how)).args
    const opened = await openHere(args, null, 'SDK 1')
    t.same(
      (await opened.list()).map(({ name }) => name),
      ['verify_source', 'check_quotes', 'check_report', 'verify_receipt'],
      host,
    )
    await opened.close()
  }
})

t.test('the stock inspector starts it from the configuration of a host, and finds its schemas portable', async (t) => {
  const config = join(folder, 'mcp.json')
  const countersign = { type: 'stdio', ...here(startedBy(rows.get('Claude Desktop') ?? '')), env: BARE_ENV }
  writeFileSync(config, JSON.stringify({ mcpServers: { countersign } }))
  await using inspector = await openInspector(['--config', config, '--server', 'countersign'])
  const strict = await inspector.run('--method', 'tools/list', '--strict')
  t.equal(strict.code, 0, strict.errors)
  t.notMatch(strict.errors, /warning/i)
  t.equal(strict.printed?.result?.tools?.length, 4)
  const called = await inspector.run(
    '--method',
    'tools/call',
    '--tool-name',
    'verify_receipt',
    '--tool-args-json',
    '{}',
  )
  t.equal(called.code, 5, 'the tool answered with an error')
})
