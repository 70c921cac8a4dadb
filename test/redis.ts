// The Redis of this machine. Tests that need it are skipped without it, except in CI.
import { connect } from 'node:net'

const URL = 'redis://127.0.0.1:6379'

const there = await new Promise<boolean>((answer) => {
  const socket = connect(6379, '127.0.0.1', () => {
    socket.destroy()
    answer(true)
  })
  socket.once('error', () => answer(false))
})

/** Its URL, or null if there is no Redis. */
export function redisUrl(): string | null {
  return there ? URL : null
}
