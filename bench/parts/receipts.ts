// Receipts per second over HTTP, beside a transaction for each, over HTTP too and on the same Postgres.
import { sha256 } from '../../server/receipts/format.ts'
import { type BenchAccount, openAccounts } from '../accounts.ts'
import { type Child, openChild } from '../child.ts'
import { type Generator, openGenerator } from '../generator.ts'
import { type Lab, openClient } from '../lab.ts'
import { CONNECTIONS } from '../peers/receipt-one-by-one.ts'
import { compete } from '../rounds.ts'
import { figure, printHeading, printNote, printRows, printStandings } from '../table.ts'
import { openWatch } from '../watch.ts'

const CALLERS = 64
const AIM_ONE_BY_ONE = 7

export async function benchReceipts(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env: { DATABASE_URL: url } }))
  const origin = String(api.ready.address)
  const accounts = await openAccounts(await openClient(url, opened), 'bench')
  const generator = opened.use(await openGenerator(lab))
  const watch = opened.use(await openWatch(url, { API: api.pid, load: generator.pid }))
  const peerEnv = { DATABASE_URL: await lab.makeDatabase() }
  const single = opened.use(await openChild(lab, 'bench/peers/receipt-peer.ts', { event: 'peer_ready', env: peerEnv }))
  const milliseconds = lab.quick ? 1500 : 3000
  const post = () => append(generator, origin, accounts, milliseconds)
  const postTo = (peer: Child) => append(generator, String(peer.ready.address), accounts, milliseconds)

  printHeading('receipts', `durable, proved and answered over HTTP, ${CALLERS} callers`)
  await post()
  await postTo(single)
  let answered = 0
  const timed = async () => {
    const rate = await watch.during(post)
    answered += (rate * milliseconds) / 1000
    return rate
  }
  printStandings(
    await compete(lab.rounds, [
      { what: 'POST /v1/receipt, one API process', run: timed },
      {
        what: `one transaction each, over HTTP, ${CONNECTIONS} connections`,
        run: () => postTo(single),
        aim: AIM_ONE_BY_ONE,
      },
    ]),
  )
  printRows([['CPU of one receipt, API process', `${figure((1000 * watch.cpuMs('API')) / answered)} us`]])
  printNote(watch.heldBack())
}

async function append(generator: Generator, origin: string, accounts: BenchAccount[], milliseconds: number) {
  const body = JSON.stringify({ subject_sha256: sha256('bench'), label: 'bench' })
  const requests = accounts.map(({ headers }) => ({
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  }))
  const target = { origin, path: '/v1/receipt', method: 'POST', status: 201 } as const
  return generator.run({ ...target, requests, connections: CALLERS, milliseconds })
}
