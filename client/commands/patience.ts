// What a command says while it waits for a service: no wait is without a word, so that a person can tell it from a fault. The clients
// of commands are opened here, and nowhere else.
import { visible } from '../arguments.ts'
import { Countersign, type CountersignOptions, type Fetch } from '../client.ts'
import { type Clock, systemClock } from '../clock.ts'
import { networkFailure, originOf } from '../network-failure.ts'
import { OPERATIONS } from '../operations/operations.ts'
import { checkAnswer } from './answers.ts'
import { heardAt, isQuiet, note } from './output.ts'

/** A client that says what it waits for, and takes no answer of another program. It pays nothing. */
export function openClient(
  options: Omit<CountersignOptions, 'fetch' | 'plainFetch' | 'clock'>,
  patience = patienceWith(String(options.baseUrl)),
): Countersign {
  const baseUrl = String(options.baseUrl)
  const client = new Countersign({ ...options, ...patience })
  for (const name of Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[]) {
    const call = client[name] as (...given: unknown[]) => Promise<unknown>
    const value = async (...given: unknown[]) => {
      const answer = await call.apply(client, given)
      checkAnswer(name, answer, originOf(baseUrl))
      return answer
    }
    Object.defineProperty(client, name, { value })
  }
  return client
}

/** The fetch and the clock of a client: they say what is waited for. */
export function patienceWith(baseUrl: string): { plainFetch: Fetch; clock: Clock } {
  const origin = originOf(baseUrl)
  const begun = Date.now()
  /** How the last request ended, unless it was answered. */
  let fault: string | null = null
  const words = () => `Waiting for ${origin}.${fault ? ` Before: ${fault}` : ''}`
  return {
    plainFetch: (url, init) =>
      patiently(begun, words, async () => {
        const broken = (error: unknown) => {
          fault = networkFailure(url, error)
        }
        try {
          const response = await globalThis.fetch(url, init)
          fault = response.status >= 500 ? `${origin} answered with status ${response.status}.` : null
          return watchBody(response, { remind: () => remind(begun, words), broken })
        } catch (error) {
          broken(error)
          throw error
        }
      }),
    clock: {
      ...systemClock,
      sleep: (ms, signal) =>
        patiently(
          begun,
          () => `${fault ?? `${origin} asks to wait.`} It is asked again.`,
          () => systemClock.sleep(ms, signal),
        ),
    },
  }
}

/** The same answer, whose body is waited for with words too. @param watch.broken is called where it breaks off */
function watchBody(
  response: Response,
  { remind, broken }: { remind: () => () => void; broken: (error: unknown) => void },
): Response {
  const reader = response.body?.getReader()
  if (!reader) return response
  let stop: (() => void) | undefined
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        stop ??= remind()
        try {
          const { value, done } = await reader.read()
          if (!done) return controller.enqueue(value)
          stop()
          controller.close()
        } catch (error) {
          stop()
          broken(error)
          throw error
        }
      },
      cancel(reason) {
        stop?.()
        return reader.cancel(reason)
      },
    },
    // What is not read is not waited for.
    { highWaterMark: 0 },
  )
  return Object.defineProperty(new Response(body, response), 'url', { value: response.url })
}

/** Says the words when nothing was said for some seconds, and again at longer intervals, until the work is done. */
export async function patiently<T>(begun: number, words: () => string, work: () => Promise<T>): Promise<T> {
  const stop = remind(begun, words)
  try {
    return await work()
  } finally {
    stop()
  }
}

/** The same, until the function that it returns is called. */
function remind(begun: number, words: () => string): () => void {
  if (isQuiet()) return () => {}
  let said = 0
  const timer = setInterval(() => {
    const now = Date.now()
    if (now - Math.max(begun, heardAt()) < (said === 0 ? FIRST_MS : NEXT_MS)) return
    said += 1
    note(`${process.stderr.isTTY ? '\r\x1b[K' : ''}${visible(words())}\n`)
  }, TICK_MS)
  return () => clearInterval(timer)
}

const TICK_MS = 500
/** Less than the ten seconds after which people think that a program hangs. */
const FIRST_MS = 4000
const NEXT_MS = 15_000
