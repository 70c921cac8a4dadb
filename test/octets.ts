// Answers that arrive octet by octet: how many of their pieces a reader keeps.
import { queryObjects } from 'node:v8'

/**
 * Runs with a `fetch` that answers so many octets, each as a piece of its own.
 * @returns how many pieces are kept when the last one has been read
 */
export async function keptOfOctets(octets: number, run: () => Promise<unknown>): Promise<number> {
  const before = Number(queryObjects(Uint8Array))
  let pieces = 0
  let kept = Number.POSITIVE_INFINITY
  const body = new ReadableStream({
    pull(controller) {
      if (pieces++ < octets) return controller.enqueue(Uint8Array.of(0x20))
      kept = Number(queryObjects(Uint8Array)) - before
      controller.close()
    },
  })
  const { fetch } = globalThis
  globalThis.fetch = async () => new Response(body)
  try {
    await run()
  } finally {
    globalThis.fetch = fetch
  }
  return kept
}
