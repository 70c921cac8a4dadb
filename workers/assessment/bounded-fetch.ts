// Limits the size of the replies of a model provider.
/** A fetch whose replies are cut off with an error beyond so many bytes, so that no server can fill the memory. */
export function boundedFetch(mostBytes: number): typeof fetch {
  return async (input, init) => {
    const reply = await fetch(input, init)
    if (!reply.body) return reply
    let bytes = 0
    const counted = reply.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          bytes += chunk.byteLength
          if (bytes > mostBytes) controller.error(new RangeError(`the reply is longer than ${mostBytes} bytes`))
          else controller.enqueue(chunk)
        },
      }),
    )
    const { status, statusText, headers } = reply
    return new Response(counted, { status, statusText, headers })
  }
}
