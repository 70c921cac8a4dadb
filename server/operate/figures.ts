// The metrics of all processes as one. Each process publishes its counts with its beat (see presence.ts); the process that
// answers adds the published figures. Counters never decrease: the counts of ended processes are kept in one row of sums.
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { AggregatorRegistry, Registry } from 'prom-client'
import { z } from 'zod'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import type { Metrics } from '../telemetry.ts'

/** Metrics with their values, as prom-client describes them. */
export type Figures = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** Seconds after its last beat in which a process counts as alive. */
export const ALIVE_SECONDS = 20

/** What a process counted since its start, and its gauges. */
export async function takeFigures({ registry }: Pick<Metrics, 'registry'>): Promise<Figures> {
  // Copied, because the library continues to count in the same objects.
  return (await registry.getMetricsAsJSON()).map((metric) => ({
    ...metric,
    values: metric.values.map((one) => ({ ...one })),
  }))
}

/** Some kilobytes. The work is done outside the event loop. */
export async function packFigures(figures: Figures): Promise<Buffer> {
  return promisify(gzip)(JSON.stringify(figures))
}

export async function unpackFigures(packed: Buffer): Promise<Figures> {
  // The cast is safe: packFigures wrote it. A check of each of the thousands of values would cost more than to read them.
  const figures = JSON.parse(String(await promisify(gunzip)(packed))) as Figures
  // JSON has no NaN; prom-client gives it for quantiles without observations.
  return figures.map((metric) => ({ ...metric, values: metric.values.filter(({ value }) => value !== null) }))
}

/** The sums by name and labels. The first figures decide the description of a metric. */
export function addFigures(all: Figures[]): Promise<Figures> {
  return AggregatorRegistry.aggregate(all).getMetricsAsJSON()
}

/** What was counted after `earlier`, which the same process took; gauges keep their current values. */
export function subtractFigures(now: Figures, earlier: Figures): Promise<Figures> {
  const negative = lasting(earlier).map((metric) => ({
    ...metric,
    values: metric.values.map((one) => ({ ...one, value: -one.value })),
  }))
  return addFigures([now, negative])
}

/** Figures that stay valid when their process has ended: counters and histograms of the service. */
function lasting(figures: Figures): Figures {
  return figures.filter((metric) => !isOfProcess(metric))
}

/** Gauges, and Node's metrics of one process, cannot be added. */
function isOfProcess({ name, type }: Figures[number]): boolean {
  return String(type) === 'gauge' || /^(process|nodejs)_/.test(name)
}

const publishedRow = z.object({
  id: z.string().nullable(),
  kind: z.string().nullable(),
  alive: z.boolean(),
  figures: z.instanceof(Buffer),
})

/**
 * The figures of all processes, ended ones included. Figures of a single living process have the label `process`: its kind
 * and the first digits of its id.
 */
export async function readFigures(db: Pick<Database, 'any'> | Tx): Promise<Figures> {
  // One statement, so that a process that ends meanwhile is counted once.
  const rows = await db.any(sql.type(publishedRow)`
    select id::text, kind, beat_at > now() - ${ALIVE_SECONDS} * interval '1 second' alive, figures
    from processes where figures is not null
    union all
    select null, null, false, figures from ended_figures where figures is not null`)
  const parts = rows.map(async ({ id, kind, alive, figures: packed }) => {
    const figures = await unpackFigures(packed)
    return id && kind && alive ? labelled(figures, processLabel(kind, id)) : lasting(figures)
  })
  return addFigures(await Promise.all(parts))
}

export function processLabel(kind: string, id: string): string {
  return `${kind}-${id.slice(0, 8)}`
}

function labelled(figures: Figures, process: string): Figures {
  return figures.map((metric) =>
    isOfProcess(metric)
      ? { ...metric, values: metric.values.map((one) => ({ ...one, labels: { ...one.labels, process } })) }
      : metric,
  )
}

/**
 * Text for Prometheus: figures, then the gauges of `shared`. Names that this release does not know are left out; an ended
 * process of another release may have counted under them.
 */
export async function renderFigures(figures: Figures, { registry, shared }: Metrics): Promise<string> {
  const known = figures.filter(({ name }) => registry.getSingleMetric(name))
  const parts = [AggregatorRegistry.aggregate([known]), shared]
  return (await Promise.all(parts.map((part) => part.metrics()))).join('\n')
}

/** The figures of this process without a database. They contain no sums over processes. */
export async function renderOwnFigures(metrics: Metrics, process: string): Promise<string> {
  const own = (await takeFigures(metrics)).filter(isOfProcess)
  const away = new Registry()
  away.registerMetric(metrics.databaseUp)
  metrics.databaseUp.set(0)
  return [await AggregatorRegistry.aggregate([labelled(own, process)]).metrics(), await away.metrics()].join('\n')
}

/**
 * Deletes processes and keeps what they counted.
 * @param which a condition on their rows
 */
export async function endProcesses(tx: Tx, which: ReturnType<typeof sql.fragment>): Promise<void> {
  const [sums] = await tx.anyFirst(sql.type(z.object({ figures: z.instanceof(Buffer).nullable() }))`
    select figures from ended_figures for update`)
  const ended = await tx.anyFirst(sql.type(z.object({ figures: z.instanceof(Buffer).nullable() }))`
    delete from processes where ${which} returning figures`)
  const packed = [sums ?? null, ...ended].filter((one) => one !== null)
  if (packed.length === (sums ? 1 : 0)) return
  const all = await Promise.all(packed.map(unpackFigures))
  const added = await packFigures(await addFigures(all.map(lasting)))
  await tx.query(sql.type(nothing)`update ended_figures set figures = ${sql.binary(added)}`)
}
