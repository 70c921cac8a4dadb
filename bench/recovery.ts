// Recovery GETs per second of a completed result, beside a static Fastify route that returns the same bytes.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { deriveSecret } from '../server/receipts/keys.ts'
import { recoveryToken } from '../server/verification/recovery.ts'
import { openChild } from './child.ts'
import { openMill } from './completion.ts'
import { openGenerator } from './generator.ts'
import type { Lab } from './lab.ts'
import { compete } from './rounds.ts'
import { printHeading, printNote, printStandings } from './table.ts'
import { openWatch } from './watch.ts'

const AIM = 0.5
const CALLERS = 32

export async function benchRecovery(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const { url, id, bytes } = await completeOne(lab)
  const file = join(lab.folder, 'result.json')
  await writeFile(file, bytes)
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env: { DATABASE_URL: url } }))
  const plain = opened.use(await openChild(lab, 'bench/static.ts', { event: 'static_ready', args: [file] }))
  const generator = opened.use(await openGenerator(lab))
  const watch = opened.use(await openWatch(url, { API: api.pid, load: generator.pid }))
  const plainWatch = opened.use(await openWatch(url, { static: plain.pid, load: generator.pid }))
  const token = recoveryToken(deriveSecret(Buffer.from(lab.env.SIGNING_SEED!, 'hex'), 'recovery token'), id)
  const ask = (address: unknown, path: string, milliseconds = lab.quick ? 700 : 2000) =>
    generator.run({
      origin: String(address),
      path,
      method: 'GET',
      requests: [{ headers: { authorization: `Bearer ${token}` } }],
      connections: CALLERS,
      milliseconds,
      status: 200,
    })
  const askApi = (ms?: number) => ask(api.ready.address, `/api/agent/v1/requests/${id}`, ms)
  const askPlain = (ms?: number) => ask(plain.ready.address, '/', ms)

  printHeading(
    'recovery',
    `GETs of a result of ${(bytes.length / 1000).toFixed(1)} kB over HTTP, ${CALLERS} connections`,
  )
  await askApi(500)
  await askPlain(500)
  printStandings(
    await compete(lab.rounds, [
      { what: 'recovery GET, one API process', run: () => watch.during(() => askApi()) },
      { what: 'static Fastify route, the same bytes', run: () => plainWatch.during(() => askPlain()), aim: AIM },
    ]),
  )
  printNote(watch.heldBack())
}

async function completeOne(lab: Lab) {
  await using mill = await openMill(lab)
  await mill.grind('/', 1)
  const client = new pg.Client({ connectionString: mill.url })
  await client.connect()
  const { rows } = await client.query<{ id: string; result: Buffer }>('select id, result from verification_requests')
  await client.end()
  return { url: mill.url, id: rows[0]!.id, bytes: rows[0]!.result }
}
