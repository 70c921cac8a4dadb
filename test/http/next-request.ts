// The requests of a process, as its server takes them.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

const STARTED = 'http.server.request.start'

/** The next request that the process takes, before its body. */
export function nextRequest(): Promise<IncomingMessage> {
  return new Promise((resolve) => {
    const take = (message: unknown) => {
      unsubscribe(STARTED, take)
      resolve((message as { request: IncomingMessage }).request)
    }
    subscribe(STARTED, take)
  })
}
