// Downloads of large files take turns: in each turn of the event loop one piece of one download is sent, so that many of them at once do
// not hold up the calls of others.

let last: Promise<unknown> = Promise.resolve()

/** The same pieces, each in a turn of its own among all downloads of this process. */
export async function* inTurns<T>(pieces: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const piece of pieces) {
    last = last.then(() => new Promise((resolve) => setImmediate(resolve)))
    await last
    yield piece
  }
}
