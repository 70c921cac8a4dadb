// Ten claims on one page in one purchase, beside ten purchases of one claim each on the same page, and beside one. The worker's own
// code runs here, one request at a time, so all CPU time of the process belongs to what is measured.
import { readConfig } from '../../server/config.ts'
import { openCore } from '../../server/context.ts'
import { transact } from '../../server/db/pool.ts'
import type { PurchaseBody } from '../../server/interface/claims.ts'
import { MOST_CLAIMS } from '../../server/interface/price.ts'
import { openLog } from '../../server/telemetry.ts'
import { admitBatch } from '../../server/verification/admission/admission.ts'
import { verifyRequest } from '../../server/verification/stages/stages.ts'
import { openWork } from '../../workers/context.ts'
import type { Lab } from '../lab.ts'
import { buildAdmission } from '../orders.ts'
import { figure, printHeading, printNote, printRows } from '../table.ts'
import { openSource } from '../worker-harness.ts'

/** What a buyer of ten claims may take, in purchases of one claim. */
const AIM = 2.5
const CLAIMS = Array.from(
  { length: MOST_CLAIMS },
  (_, n) => `The harbour was opened in ${1870 + n} by the county engineer.`,
)
const [FIRST = ''] = CLAIMS

export async function benchClaims(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const source = opened.use(await openSource(lab))
  const config = readConfig({ ...lab.env, ASSESSMENT: 'literal', ...source.env })
  const core = opened.use(await openCore(config, url, { log: openLog('warn') }))
  const work = opened.use(await openWork(core, { slowMs: 60_000 }))
  let calls = 0
  const counting = {
    ...work,
    outbound: {
      ...work.outbound,
      connect: (...given: Parameters<typeof work.outbound.connect>) => {
        calls++
        return work.outbound.connect(...given)
      },
    },
    facilitator: {
      ...work.facilitator,
      settle: (...given: Parameters<typeof work.facilitator.settle>) => {
        calls++
        return work.facilitator.settle(...given)
      },
    },
  }
  const signal = new AbortController().signal
  async function buy(body: PurchaseBody) {
    const admission = buildAdmission(core.secrets.payload, body)
    await transact(core.db, (tx) => admitBatch(tx, [admission], config.maxInFlightPerPayer))
    await verifyRequest({ request_id: admission.id }, counting, { signal, attemptsLeft: 4 })
  }
  const ways = {
    'ten claims in one purchase': (source_url: string) => buy({ source_url, claims: CLAIMS }),
    'ten purchases of one claim': async (source_url: string) => {
      for (const claim of CLAIMS) await buy({ source_url, claim })
    },
    'one purchase of one claim': (source_url: string) => buy({ source_url, claim: FIRST }),
  }
  const count = lab.quick ? 20 : 60

  printHeading(
    'claims',
    `ten claims on one page of ${(source.bytes.long / 1000).toFixed(1)} kB, literal, means of ${count}`,
  )
  const means = new Map<string, { cpu: number; wall: number; calls: number }>()
  for (const [name, run] of Object.entries(ways)) {
    for (let n = 0; n < 5; n++) await run(source.nextUrl('/long/'))
    calls = 0
    const [cpu, began] = [process.cpuUsage(), performance.now()]
    for (let n = 0; n < count; n++) await run(source.nextUrl('/long/'))
    const { user, system } = process.cpuUsage(cpu)
    const wall = (performance.now() - began) / count
    means.set(name, { cpu: (user + system) / 1000 / count, wall, calls: calls / count })
  }
  printRows([
    ['', 'CPU ms', 'wall ms', 'outside calls'],
    ...[...means].map(([name, { cpu, wall, calls }]): [string, ...string[]] => [
      name,
      figure(cpu),
      figure(wall),
      figure(calls),
    ]),
  ])
  const [ten, , one] = [...means.values()]
  if (!ten || !one) throw new Error('nothing was measured')
  for (const kind of ['cpu', 'wall', 'calls'] as const) {
    const share = ten[kind] / one[kind]
    printNote(`${kind} of ten claims: ${figure(share)} of one, aim ${AIM} at most: ${share <= AIM ? 'met' : 'MISSED'}`)
  }
}
