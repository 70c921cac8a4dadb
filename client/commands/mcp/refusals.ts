// What `countersign mcp` answers to a line that is no message: an error of JSON-RPC. The SDK leaves out such lines without a word.
import { deserializeMessage, ProtocolErrorCode, STDIO_DEFAULT_MAX_BUFFER_SIZE } from '@modelcontextprotocol/server'

/**
 * Returns a listener for the chunks of standard input. It calls `refuse` with an error for each whole line that is neither blank nor
 * a message.
 */
export function refuseLines(refuse: (line: string) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let bytes = 0
  return (chunk) => {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      parts.push(chunk.subarray(from, end))
      // The SDK closes the connection at a longer one.
      const refusal =
        bytes + end - from > STDIO_DEFAULT_MAX_BUFFER_SIZE ? null : refusalOf(Buffer.concat(parts).toString().trim())
      if (refusal) refuse(`${JSON.stringify(refusal)}\n`)
      parts = []
      bytes = 0
      from = end + 1
    }
    const rest = chunk.subarray(from)
    bytes += rest.length
    if (bytes > STDIO_DEFAULT_MAX_BUFFER_SIZE) parts = []
    else if (rest.length > 0) parts.push(rest)
  }
}

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
