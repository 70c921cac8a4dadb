// `npm run chaos -- alarms` provokes every alarm, and reads its rule as Prometheus does.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { holds, parse } from '../../bench/alarms/promql.ts'
import { PROVOCATIONS } from '../../bench/alarms/provocations.ts'
import { readRules } from '../../bench/alarms/rules.ts'
import { readSamples, Scrapes } from '../../bench/alarms/scrapes.ts'

t.test('every alarm of the rules is provoked by one provocation, and every rule is understood', async (t) => {
  const rules = readRules()
  const text = readFileSync(join(import.meta.dirname, '../../ops/prometheus-rules.yaml'), 'utf8')
  t.equal(rules.length, text.match(/- alert:/g)?.length)
  const provoked = PROVOCATIONS.flatMap(({ alarms }) => alarms)
  t.same(provoked.toSorted(), rules.map(({ alarm }) => alarm).toSorted())
  for (const { expr } of rules) t.doesNotThrow(() => parse(expr), expr)
})

/** Scrapes a second apart. */
function scraped(...texts: (string | null)[]): Scrapes {
  const scrapes = new Scrapes()
  for (const [at, text] of texts.entries()) scrapes.add(text, at)
  return scrapes
}

t.test('gauges: thresholds, labels, and series that are absent', async (t) => {
  const now = scraped('# HELP up x\nup{kind="web",note="a \\"b\\""} 1\nup{kind="worker"} 0\nlag{table="a"} 700\n')
  t.equal(holds('min(up) == 0', now), true)
  t.equal(holds('max(up) == 0', now), false)
  t.equal(holds('sum(up{kind=~"worker|all"}) == 0', now), true)
  t.equal(holds('sum(up{kind!="worker"}) == 0', now), false)
  t.equal(holds('max by (table) (lag) > 600', now), true)
  t.equal(holds('absent(up)', now), false)
  t.equal(holds('absent(up)', scraped('up 1', null)), true, 'a scrape that failed')
  t.same(readSamples('up{note="a \\"b\\""} 1')[0]?.labels, { note: 'a "b"' })
})

t.test('counters: increase within the window, after a restart, and of a series that comes late', async (t) => {
  const more = 'sum(increase(failed_total[5m])) > 2'
  t.equal(holds(more, scraped('failed_total 5', 'failed_total 8')), true)
  t.equal(holds(more, scraped('failed_total 5', 'failed_total 7')), false)
  t.equal(holds(more, scraped('failed_total 5', 'failed_total 1', 'failed_total 3')), true, 'it began anew')
  t.equal(holds(more, scraped('', 'failed_total 9', 'failed_total 9')), false, 'Prometheus sees no increase either')
  t.equal(
    holds('sum(increase(failed_total[1s])) > 2', scraped('failed_total 1', 'failed_total 9', 'failed_total 9')),
    false,
  )
  const share = 'sum(rate(all_total{status=~"5.."}[5m])) > 0.05 * sum(rate(all_total[5m]))'
  const answers = (ok: number, bad: number) => `all_total{status="200"} ${ok}\nall_total{status="503"} ${bad}\n`
  t.equal(holds(share, scraped(answers(0, 0), answers(90, 10))), true)
  t.equal(holds(share, scraped(answers(0, 0), answers(96, 4))), false)
  t.equal(holds(`${more} and ${more}`, scraped('failed_total 5', 'failed_total 8')), true)
  t.equal(holds(`${more} and sum(increase(failed_total[5m])) > 3`, scraped('failed_total 5', 'failed_total 8')), false)
})

t.test('histograms: a quantile within its bucket, beyond the last bound, and of nothing', async (t) => {
  const slow = 'histogram_quantile(0.99, sum by (le) (rate(took_bucket[10m]))) > 1'
  const took = (one: number, five: number, all: number) =>
    `took_bucket{le="1"} ${one}\ntook_bucket{le="5"} ${five}\ntook_bucket{le="+Inf"} ${all}\n`
  t.equal(holds(slow, scraped(took(0, 0, 0), took(98, 100, 100))), true)
  t.equal(holds(slow, scraped(took(0, 0, 0), took(100, 100, 100))), false)
  t.equal(holds(slow.replace('> 1', '> 4.9'), scraped(took(0, 0, 0), took(0, 0, 9))), true)
  t.equal(holds(slow, scraped(took(7, 8, 9), took(7, 8, 9))), false)
})

t.test('what is not of the known part of PromQL is refused', async (t) => {
  for (const expr of ['avg(up) > 1', 'up offset 5m', 'sum(up) +', 'rate(up) > 1', 'up{a~"b"} > 1', 'up > > 1'])
    t.throws(() => holds(expr, scraped('up 1')), expr)
})
