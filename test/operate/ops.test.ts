// The dashboard and the alarms in ops/ use metrics that exist, and docs/operations.md explains every alarm.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openMetrics } from '../../server/telemetry.ts'

const read = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')

interface Target {
  expr: string
}
interface Panel {
  id: number
  type: string
  title: string
  targets?: Target[]
}

const { registry, shared } = openMetrics({ process: true })
const metrics = [...(await registry.getMetricsAsJSON()), ...(await shared.getMetricsAsJSON())]
/** Metrics as the library keeps them, with the names of their labels. */
const labelsOf = (name: string) =>
  (registry.getSingleMetric(name) ?? shared.getSingleMetric(name)) as unknown as { labelNames: string[] } | undefined

const dashboard = JSON.parse(read('ops/grafana-dashboard.json')) as { panels: Panel[] }
const rules = [...read('ops/prometheus-rules.yaml').matchAll(/- alert: (\w+)\n +expr: (.*)\n/g)].map(
  ([, name = '', text = '']) => ({ name, expr: text.replace(/^(['"])(.*)\1$/, '$2') }),
)
const panels = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ name: title, expr })))

/** What is wrong with an expression. */
function faultsOf(expr: string): string[] {
  const faults: string[] = []
  const open = (bracket: string) => expr.split(bracket).length
  if (open('(') !== open(')') || open('{') !== open('}') || open('[') !== open(']')) faults.push('brackets')
  for (const [, used = '', selector = ''] of expr.matchAll(/\b((?:countersign|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)) {
    const name = metrics.some((one) => one.name === used) ? used : used.replace(/_(bucket|sum|count)$/, '')
    const metric = metrics.find((one) => one.name === name)
    if (!metric) faults.push(`${used} is no metric`)
    else if ((String(metric.type) === 'histogram') !== (name !== used)) faults.push(`${used} is no sample`)
    const known = [...(labelsOf(name)?.labelNames ?? []), 'process', 'le']
    for (const [, label = ''] of selector.matchAll(/(\w+)[=!]/g))
      if (!known.includes(label)) faults.push(`${used}: ${label}`)
    for (const [, by = ''] of expr.matchAll(/ by \(([^)]*)\)/g))
      for (const label of by.split(', ')) if (!known.includes(label)) faults.push(`${used}: by ${label}`)
  }
  return faults
}

t.test('a test of names finds a wrong one', async (t) => {
  t.same(faultsOf('rate(countersign_lost_total[5m])'), ['countersign_lost_total is no metric'])
  t.same(faultsOf('rate(countersign_requests_total{code="5"}[5m])'), ['countersign_requests_total: code'])
  t.same(faultsOf('rate(countersign_stage_seconds[5m])'), ['countersign_stage_seconds is no sample'])
  t.same(faultsOf('sum by (stage) (countersign_stage_seconds_count'), ['brackets'])
})

t.test('names of metrics follow the conventions of Prometheus', async (t) => {
  const units = /_(seconds|bytes|tokens|usd)$/
  for (const { name, type, help } of metrics.filter((metric) => metric.name.startsWith('countersign_'))) {
    t.match(name, /^[a-z][a-z_]+$/)
    t.equal(/_total$/.test(name), String(type) === 'counter', `${name} is a ${type}`)
    if (String(type) === 'histogram') t.match(name, units)
    t.notMatch(name, /_(ms|sec|milliseconds|minutes|kb|mb|info_total)$/, 'base units')
    t.notMatch(help, /\.$/)
  }
})

t.test('the dashboard and the alarms use metrics and labels that there are', async (t) => {
  t.ok(rules.length >= 15 && panels.length >= 40, `${rules.length} alarms, ${panels.length} expressions`)
  for (const { name, expr } of [...rules, ...panels]) t.same(faultsOf(expr), [], `${name}: ${expr}`)
  const ids = dashboard.panels.map(({ id }) => id)
  t.equal(new Set(ids).size, ids.length, 'panels have ids of their own')
})

t.test('every metric of the service is on the dashboard', async (t) => {
  const shown = panels.map(({ expr }) => expr).join('\n')
  t.same(
    metrics.filter(({ name }) => name.startsWith('countersign_') && !shown.includes(name)).map(({ name }) => name),
    [],
  )
})

t.test('docs/operations.md has cause and cure of every alarm, and of no other', async (t) => {
  const [, section = ''] = read('docs/operations.md').match(/## Alarms\n([\s\S]*?)\n## /) ?? []
  const explained = [...section.matchAll(/^\| `(Countersign\w+)` \| [^|]+ \| [^|]+ \|$/gm)].map(([, name]) => name)
  t.same(
    explained,
    rules.map(({ name }) => name),
  )
})
