// A port that forwards to another one on this machine, and can be closed, which ends every connection through it.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface TcpProxy extends AsyncDisposable {
  port: number
  /** Ends every connection; new ones are accepted. */
  drop(): void
  /** Ends every connection, and refuses new ones. */
  close(): Promise<void>
  /** Undoes `close`. */
  open(): Promise<void>
}

/** @param target the port that it forwards to, called for each connection */
export async function openTcpProxy(target: () => number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(target(), '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far).pipe(near)
  })
  let port = 0
  const open = async () => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const drop = () => {
    for (const socket of sockets) socket.destroy()
  }
  const close = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    drop()
    await closed
  }
  await open()
  port = (server.address() as AddressInfo).port
  return { port, drop, close, open, [Symbol.asyncDispose]: close }
}
