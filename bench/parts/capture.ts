// What it costs to keep evidence of pages: CPU of one purchase with captures and without, in turns in this process, and the octets that a
// thousand results take. The worker's own code runs here, one request at a time, so all CPU time of the process belongs to a purchase.

import { z } from 'zod'
import { readConfig } from '../../server/config.ts'
import { openCore } from '../../server/context.ts'
import { sql, transact } from '../../server/db/pool.ts'
import { measureCaptures } from '../../server/evidence/store.ts'
import { openLog } from '../../server/telemetry.ts'
import { admitBatch } from '../../server/verification/admission/admission.ts'
import { verifyRequest } from '../../server/verification/stages/stages.ts'
import { openWork } from '../../workers/context.ts'
import type { Lab } from '../lab.ts'
import { bodyFor, buildAdmission } from '../orders.ts'
import { median } from '../rounds.ts'
import { figure, printHeading, printNote, printRows } from '../table.ts'
import { openSource, type Source } from '../worker-harness.ts'

/** The CPU of a purchase with captures, in purchases without. */
const AIM = 1.25
const WARM_UP = 100

export async function benchCapture(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const source = opened.use(await openSource(lab))
  const sides = {
    off: await openSide(lab, source, 'off', opened),
    on: await openSide(lab, source, 'on', opened),
  }
  const count = lab.quick ? 50 : 200
  printHeading('capture', `purchases with evidence kept, and without; literal, means of ${count}`)
  const rows: [string, ...string[]][] = [['', 'off, CPU ms', 'on, CPU ms', 'ratio', 'kB of 1,000']]
  for (const [size, path] of [
    ['short', '/'],
    ['long', '/long/'],
  ] as const) {
    for (const { buy } of Object.values(sides)) for (let n = 0; n < WARM_UP; n++) await buy(path)
    const before = await sides.on.stored()
    const rounds: { off: number; on: number }[] = []
    for (let round = 0; round < lab.rounds; round++) {
      const off = await cpuOf(count, () => sides.off.buy(path))
      rounds.push({ off, on: await cpuOf(count, () => sides.on.buy(path)) })
    }
    const after = await sides.on.stored()
    const ratio = median(rounds.map(({ off, on }) => on / off))
    const each = (after.bytes - before.bytes) / (after.rows - before.rows)
    rows.push([
      `page of ${figure(source.bytes[size] / 1000)} kB`,
      figure(median(rounds.map(({ off }) => off))),
      figure(median(rounds.map(({ on }) => on))),
      figure(ratio),
      figure((each * 1000) / 1024),
    ])
    printNote(
      `CPU with captures: ${figure(ratio)} of that without, aim ${AIM} at most: ${ratio <= AIM ? 'met' : 'MISSED'}`,
    )
  }
  printRows(rows)
  const { rows: kept, bytes } = await sides.on.stored()
  printNote(
    `${kept} captures of ${figure(bytes / 1024)} kB; the table takes ${figure((await sides.on.onDisk()) / 1024)} kB on disk`,
  )
}

async function openSide(lab: Lab, source: Source, capture: 'on' | 'off', opened: AsyncDisposableStack) {
  const config = readConfig({ ...lab.env, ...source.env, SOURCE_CAPTURE: capture })
  const core = opened.use(await openCore(config, await lab.makeDatabase(), { log: openLog('warn') }))
  const work = opened.use(await openWork(core, { slowMs: 60_000 }))
  const signal = new AbortController().signal
  return {
    stored: () => measureCaptures(core.db),
    onDisk: () =>
      core.db.oneFirst(sql.type(z.object({ bytes: z.number() }))`select pg_total_relation_size('captures') bytes`),
    async buy(path: '/' | '/long/') {
      const admission = buildAdmission(core.secrets.payload, bodyFor(source.nextUrl(path)))
      await transact(core.db, (tx) => admitBatch(tx, [admission], config.maxInFlightPerPayer))
      await verifyRequest({ request_id: admission.id }, work, { signal, attemptsLeft: 4 })
    },
  }
}

/** Milliseconds of CPU of one call. */
async function cpuOf(count: number, run: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  for (let n = 0; n < count; n++) await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / count
}
