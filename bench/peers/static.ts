// A process that answers every GET with the bytes it was given: what Fastify alone can do. `node bench/peers/static.ts FILE`
import { readFileSync } from 'node:fs'
import Fastify from 'fastify'

const bytes = readFileSync(process.argv[2]!)
const app = Fastify()
app.get('/', (_request, reply) => reply.header('content-type', 'application/json; charset=utf-8').send(bytes))
const address = await app.listen({ host: '127.0.0.1', port: 0 })
process.once('SIGTERM', () => app.close())
console.log(JSON.stringify({ event: 'static_ready', address }))
