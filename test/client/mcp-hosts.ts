// Hosts of `countersign mcp`: the stock clients of both SDKs, over standard input and output of a program, or of a server in the process of
// the test, which costs a tenth of one.
import { AsyncResource } from 'node:async_hooks'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { Client, type JSONRPCMessage, type VersionNegotiationOptions } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { main } from '../../client/commands/main.ts'
import { BARE_ENV } from '../children.ts'
import { within } from '../own-process.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')

export interface Result {
  content: { type: string; text: string }[]
  structuredContent: Record<string, never>
  isError?: boolean
}

export interface Host {
  list(): Promise<{ name: string; annotations?: object }[]>
  call(name: string, args: Record<string, unknown>): Promise<Result>
  close(): Promise<void>
}

/** What a person answers, each time; null: the host cannot ask. */
export type Person = ((message: string) => 'accept' | 'decline') | null

/** What each kind of host speaks. */
export type Kind = 'SDK 1' | 'SDK 2, legacy' | 'SDK 2, auto' | 'SDK 2, pinned'

const MODES: Record<Exclude<Kind, 'SDK 1'>, VersionNegotiationOptions['mode']> = {
  'SDK 2, legacy': 'legacy',
  'SDK 2, auto': 'auto',
  'SDK 2, pinned': { pin: '2026-07-28' },
}
export const KINDS = ['SDK 1', ...Object.keys(MODES)] as Kind[]

const INFO = { name: 'a-host', version: '1.0.0' }

/** Everything that any of the servers has written, of both streams as far as the clients show them. */
export const heard: string[] = []

/** A host whose server is a program of its own. */
export async function openProgram(args: string[], person: Person, kind: Kind): Promise<Host & { kill(): void }> {
  const Transport = kind === 'SDK 1' ? TransportV1 : StdioClientTransport
  const transport = new Transport({
    command: process.execPath,
    args: [CLI, 'mcp', ...args],
    env: { ...BARE_ENV },
    stderr: 'pipe',
  })
  transport.stderr?.on('data', (chunk) => heard.push(String(chunk)))
  const host = await connect(transport, person, kind)
  return { ...host, kill: () => void process.kill(transport.pid ?? 0, 'SIGKILL') }
}

/** A host whose server runs in the process of the test. */
export function openHere(args: string[], person: Person, kind: Kind): Promise<Host> {
  return connect(new ServerHere(['mcp', ...args]), person, kind)
}

type Transport = TransportV1 | StdioClientTransport | ServerHere

async function connect(transport: Transport, person: Person, kind: Kind): Promise<Host> {
  const client = kind === 'SDK 1' ? buildV1(person) : buildV2(person, MODES[kind])
  await client.connect(transport)
  return {
    list: async () => (await client.listTools()).tools,
    async call(name, given) {
      const result = (await client.callTool({ name, arguments: given })) as unknown as Result
      heard.push(JSON.stringify(result))
      return result
    },
    close: () => client.close(),
  }
}

function buildV1(person: Person) {
  const client = new ClientV1(INFO, { capabilities: person ? { elicitation: {} } : {} })
  if (person) client.setRequestHandler(ElicitRequestSchema, ({ params }) => answerOf(person, params))
  return client
}

function buildV2(person: Person, mode: VersionNegotiationOptions['mode']) {
  const client = new Client(INFO, {
    versionNegotiation: { mode },
    capabilities: person ? { elicitation: { form: {} } } : {},
  })
  if (person) client.setRequestHandler('elicitation/create', ({ params }) => answerOf(person, params))
  return client
}

const answerOf = (person: NonNullable<Person>, { message }: { message: string }) => ({
  action: person(message),
  content: { pay: true },
})

/** The transport of a host to a command in this process, with the lines of standard input and output. */
class ServerHere {
  onmessage?: (message: JSONRPCMessage) => void
  onclose?: () => void
  onerror?: (error: Error) => void
  readonly #own = { env: {}, stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  readonly #args: string[]
  #ended: Promise<number> = Promise.resolve(0)

  constructor(args: string[]) {
    this.#args = args
  }

  async start() {
    const { stdout, stderr } = this.#own
    stderr.on('data', (chunk) => heard.push(String(chunk)))
    // What the host does belongs to the test, not to the command.
    const take = AsyncResource.bind((line: string) => this.onmessage?.(JSON.parse(line)))
    createInterface({ input: stdout }).on('line', take)
    this.#ended = within(this.#own, () => main(this.#args))
  }

  async send(message: JSONRPCMessage) {
    within(this.#own, () => this.#own.stdin.write(`${JSON.stringify(message)}\n`))
  }

  async close() {
    within(this.#own, () => this.#own.stdin.end())
    const status = await this.#ended
    if (status !== 0) throw new Error(`the server ended with ${status}`)
    this.onclose?.()
  }
}
