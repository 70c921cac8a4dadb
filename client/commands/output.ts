// Output of the command line: results on standard output, notes and errors on standard error, colours on a terminal.
import { MissingError, UsageError, visible } from '../arguments.ts'
import { CountersignError } from '../client.ts'

let closed = false
let full = false
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // The reader has closed the pipe, as `head` does. The command continues, because its exit status still gives the
    // outcome.
    if (error.code === 'EPIPE') closed = true
    if (closed || full || stream === process.stderr) return
    // As of a full disk. The command continues here too: it may have paid, and must write that down.
    full = true
    const reason = error.message.replace(/^[A-Z]+: |, write$/g, '')
    process.stderr.write(
      described(new Error(`cannot write standard output: ${reason}`), process.argv.includes('--json')),
    )
    process.once('exit', (status) => {
      if (status === 0) process.exitCode = UNWRITTEN
    })
  })

/** The exit status of a command that succeeded but could not write its results: EX_IOERR of sysexits.h. */
export const UNWRITTEN = 74

/** Whether there may be a reader of the output. */
export function isHeard(): boolean {
  return !closed && !full
}

export function print(text: string | Uint8Array): 0 {
  heard = Date.now()
  if (isHeard()) process.stdout.write(text)
  return 0
}

export function note(text: string): void {
  heard = Date.now()
  if (!closed) process.stderr.write(text)
}

let heard = Number.NEGATIVE_INFINITY

/** When something was last written to either stream, as `Date.now` counts. */
export function heardAt(): number {
  return heard
}

/** Whether standard error is for a program, which expects JSON alone. */
export function isQuiet(): boolean {
  return process.argv.includes('--json') && !process.stderr.isTTY
}

/** JSON, in which characters that would act on a terminal are escaped. */
export function json(value: unknown): string {
  return `${escaped(JSON.stringify(value, null, 2))}\n`
}

/** The same on one line. */
export function jsonLine(value: unknown): string {
  return `${escaped(JSON.stringify(value))}\n`
}

/** JSON itself escapes only those below U+0020; the line ends between members stay. */
function escaped(text: string): string {
  return text.replace(/[\p{Cf}\p{Zl}\p{Zp}\x7f-\x9f]/gu, (char) =>
    Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  )
}

const COLOURS = { green: 32, red: 31, yellow: 33, bold: 1 } as const

/** In colour where standard output is a terminal that has colours, and NO_COLOR does not forbid it. */
export function paint(colour: keyof typeof COLOURS, text: string): string {
  const hasColours = process.stdout.isTTY && process.stdout.hasColors()
  return hasColours ? `\x1b[${COLOURS[colour]}m${text}\x1b[0m` : text
}

/** What went wrong first: where the closing of a file fails too, the language hides the first error in the later one. */
export function firstError(error: unknown): unknown {
  let first = error
  while (first instanceof Error && first.name === 'SuppressedError' && 'suppressed' in first) first = first.suppressed
  return first
}

/** Prints an error and returns the exit status. */
export function explain(thrown: unknown, asJson: boolean): 1 | 2 {
  const error = firstError(thrown)
  note(described(error, asJson))
  return error instanceof UsageError ? 2 : 1
}

function described(error: unknown, asJson: boolean): string {
  const message = error instanceof Error ? error.message : String(error)
  const isUsage = error instanceof UsageError
  if (asJson) return jsonLine({ error: { ...bodyOf(error, isUsage), message } })
  if (error instanceof CountersignError) return `${visible(error.code)}: ${visible(message)}\n`
  const hint = isUsage && !(error instanceof MissingError) ? 'See countersign --help.\n' : ''
  return `countersign: ${visible(message)}\n${hint}`
}

function bodyOf(error: unknown, isUsage: boolean) {
  if (!(error instanceof CountersignError)) return { code: isUsage ? 'wrong_usage' : 'failed', retryable: false }
  const { code, retryable, status, retryAfter, requestId, idempotencyKey } = error
  return { code, retryable, status, retry_after: retryAfter, request_id: requestId, idempotency_key: idempotencyKey }
}
