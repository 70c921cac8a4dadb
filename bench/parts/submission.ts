// Paid POSTs per second over HTTP: signature checked, request stored durably, 202 answered. Beside it the stock check of the signature
// alone, by viem on two threads, and as a ceiling the service's own check.
import { randomUUID } from 'node:crypto'
import { recoverSigner } from '../../server/payments/chains/signature-thread.ts'
import type { SignedTransfer } from '../../server/payments/chains/signed-transfer.ts'
import { openOfflineFacilitator } from '../../server/payments/facilitators/offline-facilitator.ts'
import { openThreads } from '../../server/threads/pool.ts'
import { openChild } from '../child.ts'
import { openGenerator } from '../generator.ts'
import type { Lab } from '../lab.ts'
import { bodyFor, signPayments, transferOf } from '../orders.ts'
import { closedLoop, compete } from '../rounds.ts'
import { figure, printHeading, printNote, printRows, printStandings } from '../table.ts'
import { openWatch } from '../watch.ts'

const CALLERS = 64
const VIEM_CHECK = new URL('../peers/viem-check.ts', import.meta.url)
/** The peers leave nothing for HTTP, the database and the callers, which share their cores. */
const AIM = 0.8
/** No worker runs here. Pages and addresses are many, so that no limit in flight is reached. */
const HOSTS = 256
const RESOURCE = { url: 'http://127.0.0.1/', description: 'bench', assessment: 'literal' } as const

export async function benchSubmission(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const count = lab.quick ? 200 : 500
  const payments = await signPayments(count * (2 * lab.rounds + 1))
  const url = await lab.makeDatabase()
  const hosts = Array.from({ length: HOSTS }, (_, index) => `h${index}.page.test`)
  const env = {
    DATABASE_URL: url,
    FIXTURE_HOSTS: hosts.map((host) => `${host}=127.0.0.1:9`).join(','),
    TRUST_PROXY: '1',
  }
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env }))
  const generator = opened.use(await openGenerator(lab))
  const watch = opened.use(await openWatch(url, { API: api.pid, load: generator.pid }))
  const facilitator = opened.use(openOfflineFacilitator())
  let posts = 0
  const post = (payment: string) => {
    posts++
    const body = JSON.stringify(bodyFor(`https://${hosts[posts % HOSTS]}/harbour`))
    const headers = {
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      'payment-signature': payment,
      'x-forwarded-for': `10.0.${Math.floor(posts / 250) % 256}.${posts % 250}`,
    }
    return { headers, body }
  }
  const send = (signed: string[]) =>
    generator.run({
      origin: String(api.ready.address),
      path: '/api/agent/v1/verify-source',
      method: 'POST',
      requests: signed.map(post),
      connections: CALLERS,
      status: 202,
    })
  const check = (signed: string[]) => {
    const rest = [...signed]
    return closedLoop(
      { callers: CALLERS },
      () => rest.pop(),
      (header) =>
        facilitator.verify(
          facilitator.read(header, randomUUID(), () => RESOURCE),
          '127.0.0.1',
        ),
    )
  }

  const threads = opened.use(openThreads({ minThreads: 2, maxThreads: 2 }))
  const checkByViem = (signed: string[]) => {
    const rest = signed.map(transferOf)
    return closedLoop(
      { callers: CALLERS },
      () => rest.pop(),
      (transfer) => threads.run(VIEM_CHECK, 'recoverByViem', transfer),
    )
  }

  printHeading('submission', `paid POSTs answered 202 over HTTP, fresh keys, offline mode, ${CALLERS} callers`)
  const warmUp = payments.splice(0, count)
  await send(warmUp)
  await check(warmUp)
  await checkByViem(warmUp)
  posts = 0
  const checked = payments.splice(0, count * lab.rounds)
  const stock = [...checked]
  const transfers = checked.slice(0, 100).map(transferOf)
  const standings = await compete(lab.rounds, [
    { what: 'POST, one API process', run: () => watch.during(() => send(payments.splice(-count))) },
    { what: "viem's signature check alone, 2 threads", run: () => checkByViem(stock.splice(-count)), aim: AIM },
    { what: 'ceiling: our signature check alone, 2 threads', run: () => check(checked.splice(-count)) },
  ])
  printStandings(standings)
  const { wall, cpu } = timeSignatureCheck(transfers)
  printRows([
    ['CPU of one POST, API process', `${figure(watch.cpuMs('API') / posts)} ms`],
    ['CPU of one signature check, on one thread alone', `${figure(cpu)} ms`, `${figure(wall)} ms wall`],
  ])
  printNote(watch.heldBack())
}

/** In this thread, one after the other. */
function timeSignatureCheck(transfers: SignedTransfer[]) {
  for (const transfer of transfers) recoverSigner(transfer)
  const started = performance.now()
  const before = process.threadCpuUsage()
  for (const transfer of transfers)
    if (recoverSigner(transfer) !== transfer.authorization.from.toLowerCase()) throw new Error('not its signer')
  const { user, system } = process.threadCpuUsage(before)
  return { cpu: (user + system) / 1000 / transfers.length, wall: (performance.now() - started) / transfers.length }
}
