// Asks the service for a free look, as lines: the stages as they are entered, then the answer. What takes longer than one call is
// asked for again.

export type LookState =
  | { kind: 'stage'; stage: string }
  /** `answer`: the parsed body. */
  | { kind: 'completed'; answer: Record<string, unknown> }
  /** `retryable`: the same question may get an answer later. */
  | { kind: 'failed'; code: string; message: string; retryable: boolean }

export interface LookQuestion {
  source_url: string
  claim: string
}

/** Calls for one answer: each waits up to 25 seconds. */
const MAX_CALLS = 8
const PAUSE_MS = 2000

/** Ends with one state that is no stage. Rejects when the signal aborts. */
export async function* askLook(question: LookQuestion, signal: AbortSignal): AsyncGenerator<LookState, void> {
  for (let calls = 0; calls < MAX_CALLS; calls++) {
    const response = await fetch('/try', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/x-ndjson; failures=lines' },
      body: JSON.stringify(question),
      signal,
    })
    for await (const line of linesOf(response)) {
      const state = stateOf(line)
      if (state) yield state
      if (state && state.kind !== 'stage') return
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    signal.throwIfAborted()
  }
  yield {
    kind: 'failed',
    code: 'processing',
    message: 'It takes longer than usual. Ask again in a minute: it is not counted again.',
    retryable: true,
  }
}

async function* linesOf({ body }: Response): AsyncGenerator<unknown, void> {
  if (!body) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value = '' } = await reader.read()
    const lines = `${rest}${value}`.split('\n')
    rest = done ? '' : (lines.pop() ?? '')
    for (const line of lines) if (line !== '') yield JSON.parse(line)
    if (done) return
  }
}

/** Null while the work goes on after the longest wait of a call. */
function stateOf(line: unknown): LookState | null {
  const { stage, claim_support, status, error } = line as Record<string, unknown>
  if (typeof stage === 'string') return { kind: 'stage', stage }
  if (typeof claim_support === 'string') return { kind: 'completed', answer: line as Record<string, unknown> }
  if (status === 'pending') return null
  const { code, message, retryable } = (error ?? {}) as { code?: unknown; message?: unknown; retryable?: unknown }
  return {
    kind: 'failed',
    code: String(code ?? 'unexpected_response'),
    message: String(message ?? 'The answer cannot be read.'),
    retryable: retryable === true,
  }
}
