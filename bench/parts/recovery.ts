// Recovery GETs per second of a completed result, beside a static Fastify route that returns the same bytes.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { deriveSecret } from '../../server/receipts/keys.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { openChild } from '../child.ts'
import { openGenerator } from '../generator.ts'
import { type Lab, openClient } from '../lab.ts'
import type { Load } from '../load.ts'
import { compete } from '../rounds.ts'
import { figure, printHeading, printNote, printRows, printStandings } from '../table.ts'
import { openWatch, type Watch } from '../watch.ts'
import { openSource, openWorkerHarness } from '../worker-harness.ts'

const AIM = 0.5
const CALLERS = 32

export async function benchRecovery(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const { url, id, bytes } = await completeOne(lab)
  const file = join(lab.folder, 'result.json')
  await writeFile(file, bytes)
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env: { DATABASE_URL: url } }))
  const plain = opened.use(await openChild(lab, 'bench/peers/static.ts', { event: 'static_ready', args: [file] }))
  const generator = opened.use(await openGenerator(lab))
  const watch = opened.use(await openWatch(url, { API: api.pid, load: generator.pid }))
  const plainWatch = opened.use(await openWatch(url, { static: plain.pid, load: generator.pid }))
  const token = recoveryToken(deriveSecret(Buffer.from(lab.env.SIGNING_SEED!, 'hex'), 'recovery token'), id)
  const request = { headers: { authorization: `Bearer ${token}` } }
  const load = { method: 'GET' as const, requests: [request], connections: CALLERS, status: 200 }
  const milliseconds = lab.quick ? 700 : 2000
  const asked: Record<'API' | 'static', Load> = {
    API: { ...load, milliseconds, origin: String(api.ready.address), path: `/api/agent/v1/requests/${id}` },
    static: { ...load, milliseconds, origin: String(plain.ready.address), path: '/' },
  }
  const answered = { API: 0, static: 0 }
  const timed = async (name: keyof typeof asked, around: Watch) => {
    const rate = await around.during(() => generator.run(asked[name]))
    answered[name] += (rate * milliseconds) / 1000
    return rate
  }

  printHeading(
    'recovery',
    `GETs of a result of ${(bytes.length / 1000).toFixed(1)} kB over HTTP, ${CALLERS} connections`,
  )
  await generator.run({ ...asked.API, milliseconds: WARM_UP_MS })
  await generator.run({ ...asked.static, milliseconds: WARM_UP_MS })
  printStandings(
    await compete(lab.rounds, [
      { what: 'recovery GET, one API process', run: () => timed('API', watch) },
      {
        what: 'static Fastify route, the same bytes',
        run: () => timed('static', plainWatch),
        aim: AIM,
      },
    ]),
  )
  const cpu = (name: keyof typeof answered, by: Watch) =>
    `${name} ${figure((1000 * by.cpuMs(name)) / answered[name])} us`
  printRows([['CPU of one GET', cpu('API', watch), cpu('static', plainWatch)]])
  printNote(watch.heldBack())
}

const WARM_UP_MS = 700

async function completeOne(lab: Lab) {
  await using opened = new AsyncDisposableStack()
  const source = opened.use(await openSource(lab))
  const harness = opened.use(await openWorkerHarness(lab, source))
  await harness.measureRate('/', 1)
  const client = await openClient(harness.url, opened)
  const { rows } = await client.query<{ id: string; result: Buffer }>('select id, result from verification_requests')
  return { url: harness.url, id: rows[0]!.id, bytes: rows[0]!.result }
}
