// A call of each command that would succeed with a service that answers, as a table for tests of what holds for all commands. Files are
// names in one folder; each is replaced by what a test makes of it.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Command, SingleCommand } from '../../client/commands/command.ts'
import { countersign as all } from '../../client/commands/main.ts'
import { createWalletKey } from '../../client/wallet.ts'
import { issueResult, keys } from './issuer.ts'

export interface Call {
  /** As it is typed after `countersign`. */
  name: string
  /** With the name; `{service}` is the address, and a word that begins with `@/` a file. */
  args: readonly string[]
  /** The service is asked by nothing but the command's own work, once everything given is in order. */
  asks: boolean
}

const KEY = ['--service', '{service}', '--key', '@/key.txt']
const WALLET = ['--service', '{service}', '--wallet', '@/wallet.key']
const HOOK = 'https://example.org/hook'

/** What follows the name. */
const ASKING: Record<string, readonly string[]> = {
  export: ['{service}', '@/new.jsonl'],
  watch: ['{service}', '@/new.json', '--once'],
  keys: ['{service}'],
  ask: ['{service}', '--source', 'https://example.org/', '--claim', 'x'],
  recover: ['{service}', '3f0e6a52-0f47-4a3b-9b6b-3f1f0f0f0f0f', '--token', '@/token.txt'],
  buy: ['https://example.org/', 'x', ...WALLET, '--yes', '--journal', '@/journal'],
  batch: ['@/claims.csv', ...WALLET, '--budget', '1', '--out', '@/out', '--yes'],
  check: ['@/report.md', ...KEY],
  'wallet balance': ['@/wallet.key', '--network', 'eip155:84532', '--rpc', '{service}'],
  'account register': ['handle', '--service', '{service}'],
  'account show': KEY,
  'account keys list': KEY,
  'account keys create': ['read_only', ...KEY],
  'account keys revoke': ['id', ...KEY, '--yes'],
  'account upgrade': ['dev', ...KEY],
  'account billing': KEY,
  'lease grant': [...KEY, '--agent', 'a', '--action', 'b', '--lim', 'c', '--ttl', '1'],
  'lease renew': ['id', ...KEY],
  'lease revoke': ['id', ...KEY, '--yes'],
  'lease show': ['id', ...KEY],
  'lease check': ['id', ...KEY],
  'lease list': KEY,
  'receipt create': [...KEY, '--file', '@/claims.csv'],
  'receipt show': ['1', '--service', '{service}'],
  'receipt list': KEY,
  'watchdog set': ['name', ...KEY, '--interval', '10', '--webhook', HOOK],
  heartbeat: ['name', ...KEY],
  'journal put': ['slot', '@/claims.csv', ...KEY],
  'journal get': ['slot', ...KEY],
  'journal list': KEY,
  'journal delete': ['slot', ...KEY, '--yes'],
  'citation set': [
    ...['name', ...KEY, '--webhook', HOOK, '--request', 'id', '--evidence', 'e1', '--token', '@/token.txt'],
  ],
  'citation check': ['name', ...KEY],
}
for (const noun of ['watchdog', 'citation']) {
  for (const verb of ['show', 'test', 'alerts', 'rotate-secret']) ASKING[`${noun} ${verb}`] = ['name', ...KEY]
  ASKING[`${noun} list`] = KEY
  ASKING[`${noun} delete`] = ['name', ...KEY, '--yes']
  ASKING[`${noun} redeliver`] = ['name', 'id', ...KEY]
}
for (const verb of ['pause', 'resume']) ASKING[`watchdog ${verb}`] = ['name', ...KEY]

/** These ask no service, or only when a host calls a tool. */
const OFFLINE: Record<string, readonly string[]> = {
  verify: ['@/result.json', '--keys', '@/keys.json'],
  replay: ['@/package.wacz', '@/result.json', '--keys', '@/keys.json'],
  cite: ['@/result.json'],
  'wallet new': ['@/new.key'],
  'wallet address': ['@/wallet.key'],
  mcp: [...WALLET, '--budget', '1', '--journal', '@/journal'],
}

const callsOf = (table: Record<string, readonly string[]>, asks: boolean): Call[] =>
  Object.entries(table).map(([name, rest]) => ({ name, args: [...name.split(' '), ...rest], asks }))

/** One for each command; a test says so. */
export const CALLS: readonly Call[] = [...callsOf(ASKING, true), ...callsOf(OFFLINE, false)]

/** Every command by its name. */
export const COMMANDS: ReadonlyMap<string, SingleCommand> = new Map(singles(all, ''))

function* singles(command: Command, name: string): Generator<[string, SingleCommand]> {
  if (!('commands' in command)) yield [name, command]
  else for (const [word, one] of Object.entries(command.commands)) yield* singles(one, `${name} ${word}`.trim())
}

/** The options that name a file or folder to be read, and never to be written. */
export const READ_OPTIONS: ReadonlySet<string> = new Set([
  ...['key', 'wallet', 'keys', 'introduced', 'token', 'file', 'timestamps', 'timestamp-ca', 'weights'],
])

/** A new folder with the files of all calls. A test has one. */
export async function makeFiles(t: Test): Promise<string> {
  const folder = t.testdir({})
  await fillFolder(folder)
  return folder
}

/** Puts the files of all calls into a folder that is there. */
export async function fillFolder(folder: string): Promise<void> {
  mkdirSync(join(folder, 'folder'))
  const secret = { mode: 0o600 }
  const put = (name: string, text: string) => writeFileSync(join(folder, name), text, secret)
  put('result.json', JSON.stringify(issueResult()))
  put('keys.json', JSON.stringify({ keys: keys.map((key) => ({ ...key, use: 'receipt', status: 'active' })) }))
  put('key.txt', 'ctk_key')
  put('wallet.key', (await createWalletKey('evm')).text)
  put('token.txt', 'crt_token')
  put('claims.csv', 'source_url,claim\nhttps://example.org/,x\n')
  put('report.md', 'It says ["three piers"](https://example.org/).\n')
  put('package.wacz', 'PK\u0003\u0004')
  put('other.json', '{"a":1}')
  put('empty', '')
}

/** The arguments for this service and folder. */
export function argumentsOf({ args }: Pick<Call, 'args'>, service: string, folder: string): string[] {
  return args.map((word) => word.replace('{service}', service).replace(/^@/, folder))
}
