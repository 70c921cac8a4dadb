// Limits the size of the replies of a model's server.

/** A fetch whose replies are cut off with an error when they are too long, so that no server can fill the memory. */
export const boundedFetch: typeof fetch = async (input, init) => {
  const reply = await fetch(input, init)
  if (!reply.body) return reply
  let bytes = 0
  const counted = reply.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.byteLength
        if (bytes > LONGEST_REPLY_BYTES) controller.error(new RangeError('the reply is too long'))
        else controller.enqueue(chunk)
      },
    }),
  )
  const { status, statusText, headers } = reply
  return new Response(counted, { status, statusText, headers })
}

const LONGEST_REPLY_BYTES = 4 * 1024 * 1024
