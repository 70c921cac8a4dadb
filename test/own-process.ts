// Runs a command line within this process as if it had its own process: it has its own environment, standard streams and
// terminal, also during other runs. A real process costs half a second of CPU, most of it for loading.
import { AsyncLocalStorage } from 'node:async_hooks'
import { PassThrough, Writable } from 'node:stream'
import { format } from 'node:util'

export interface Ran {
  code: number
  stdout: string
  stderr: string
  /** Standard output, byte for byte. */
  bytes: Buffer
}

export interface RunOptions {
  /** All of its environment. */
  env?: Readonly<Record<string, string>>
  /** The text on standard input. */
  input?: string | Uint8Array
  /** Standard input is a terminal, and this is typed once the command has asked a question; `\u0004` closes it. */
  typed?: string
}

/** What a run has of its own. */
interface Own {
  env: Record<string, string>
  stdin: PassThrough
  stdout: Writable
  stderr: Writable
}

const running = new AsyncLocalStorage<Own>()

/** Runs `main` until it returns its exit status. Signals and the working folder are those of this process. */
export async function runHere(
  main: (args: string[]) => Promise<number>,
  args: readonly string[],
  { env = {}, input = '', typed }: RunOptions = {},
): Promise<Ran> {
  const stdin = new PassThrough()
  if (typed === undefined) stdin.end(input)
  else Object.assign(stdin, { isTTY: true })
  const out: Buffer[] = []
  const notes: Buffer[] = []
  let isAsked = false
  const stderr = collector(notes, (text) => {
    // Typed only after the command has asked, as a person does.
    if (typed === undefined || isAsked || !/\[y\/N\] $|Type yes to go on: $/.test(text)) return
    isAsked = true
    if (typed === '\u0004') stdin.end()
    else stdin.write(typed)
  })
  const code = await within({ env: { ...env }, stdin, stdout: collector(out), stderr }, () => main([...args]))
  const bytes = Buffer.concat(out)
  return { code, stdout: bytes.toString(), stderr: Buffer.concat(notes).toString(), bytes }
}

/** Calls it as the command of this run does. What is written to its standard input belongs here: listeners run where it is written. */
export function within<T>(own: Own, call: () => T): T {
  return running.run(own, call)
}

function collector(chunks: Buffer[], heard: (text: string) => void = () => {}): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk)
      heard(chunk.toString())
      done()
    },
  })
}

// During a run these names lead to the values of the command, otherwise to those of the test.
for (const name of ['env', 'stdin', 'stdout', 'stderr'] as const) {
  const { get, value } = Object.getOwnPropertyDescriptor(process, name)!
  const own = { get: () => running.getStore()?.[name] ?? (get ? get.call(process) : value) }
  Object.defineProperty(process, name, { ...own, configurable: true, enumerable: true })
}
for (const [name, stream] of [
  ['log', 'stdout'],
  ['error', 'stderr'],
] as const) {
  const ours = console[name]
  console[name] = (...words: unknown[]) => {
    const own = running.getStore()
    if (own) own[stream].write(`${format(...words)}\n`)
    else ours(...words)
  }
}
