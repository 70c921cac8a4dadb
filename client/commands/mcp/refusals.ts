// Which lines of standard input are messages of MCP. The SDK gets these alone: it leaves out every other line without a word, and closes
// the connection, also without a word, at a line that is longer than its buffer.
import { PassThrough } from 'node:stream'
import { deserializeMessage, ProtocolErrorCode, STDIO_DEFAULT_MAX_BUFFER_SIZE } from '@modelcontextprotocol/server'

/** The longest line, with its end. */
const MOST_BYTES = STDIO_DEFAULT_MAX_BUFFER_SIZE

/**
 * The messages of a stream, one for each line. It calls `refuse` with an error of JSON-RPC for each line that is neither blank nor a
 * message, and goes on with the next one.
 */
export function messagesOf(input: NodeJS.ReadableStream, refuse: (line: string) => void): PassThrough {
  const messages = new PassThrough({ highWaterMark: MOST_BYTES })
  let parts: Buffer[] = []
  let bytes = 0
  const keep = (part: Buffer) => {
    const wasWithin = bytes < MOST_BYTES
    bytes += part.length
    if (bytes < MOST_BYTES) return void parts.push(part)
    parts = []
    if (wasWithin) refuse(lineOf(errorOf(ProtocolErrorCode.InvalidRequest, TOO_LONG)))
  }
  const end = () => {
    if (bytes < MOST_BYTES) {
      const line = Buffer.concat(parts).toString().trim()
      const refusal = refusalOf(line)
      if (refusal) refuse(lineOf(refusal))
      else if (line !== '') messages.write(`${line}\n`)
    }
    parts = []
    bytes = 0
  }
  input.on('data', (chunk: Buffer) => {
    let from = 0
    for (let stop = chunk.indexOf(NEWLINE); stop !== -1; stop = chunk.indexOf(NEWLINE, from)) {
      keep(chunk.subarray(from, stop))
      end()
      from = stop + 1
    }
    if (from < chunk.length) keep(chunk.subarray(from))
  })
  const close = () => void messages.end()
  input.once('end', close).once('close', close)
  return messages
}

const TOO_LONG = `The line has ${MOST_BYTES.toLocaleString('en')} bytes or more, and is not read.`
const lineOf = (error: object) => `${JSON.stringify(error)}\n`

/** Null for what needs no answer. The line is not repeated: it may hold a secret. */
function refusalOf(line: string): object | null {
  if (line === '') return null
  try {
    deserializeMessage(line)
    return null
  } catch (error) {
    if (error instanceof SyntaxError)
      return errorOf(ProtocolErrorCode.ParseError, 'The line is not JSON. A message is one line of JSON.')
    const { id, method, result, error: other } = (JSON.parse(line) ?? {}) as Record<string, unknown>
    // Two sides that answer each other's broken answers would never end.
    if (result !== undefined || other !== undefined) return null
    const isKnown = typeof method === 'string' && (typeof id === 'string' || Number.isSafeInteger(id))
    return errorOf(
      ProtocolErrorCode.InvalidRequest,
      'The line is not one message of JSON-RPC 2.0.',
      isKnown ? id : null,
    )
  }
}

const errorOf = (code: number, message: string, id: unknown = null) => ({
  jsonrpc: '2.0',
  error: { code, message },
  id,
})

const NEWLINE = 0x0a
