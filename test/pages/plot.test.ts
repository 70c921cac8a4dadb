// A point between two gaps of a plot is drawn, because a line through one point cannot be seen.
import { renderToStaticMarkup } from 'preact-render-to-string'
import t from 'tap'
import { html } from '../../client/page/html.ts'
import { Plot, type PlotProps } from '../../server/pages/plot.ts'

t.test('a point between two gaps is a dot, and one of a line is not', async (t) => {
  const dotsOf = (values: (number | null)[]) => {
    const points = values.map((value, n) => ({ at: n * 60_000, value }))
    const props: PlotProps = { id: 'p', title: 'A', description: 'B', shape: 'line', series: [{ name: 'a', points }] }
    const [, drawn = ''] = renderToStaticMarkup(html`<${Plot} ...${props} />`).match(/"plot-dot" d="([^"]*)"/) ?? []
    return [...drawn.matchAll(/M/g)].length
  }
  t.equal(dotsOf([5, null, 3, 4, null, 7, null]), 2)
  t.equal(dotsOf([3, 4, 5]), 0)
  t.equal(dotsOf([3]), 1)
})

/** The texts of the axes, without those of the title and the numbers. */
function axesOf(points: PlotProps['series'][number]['points']): string[] {
  const props: PlotProps = { id: 'p', title: 'A', description: 'B', shape: 'bars', series: [{ name: 'a', points }] }
  const drawn = renderToStaticMarkup(html`<${Plot} ...${props} />`)
  return [...drawn.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text = '']) => text)
}

t.test('beside other days a Sunday has its name, and a count has no halves', (t) => {
  const day = 86_400_000
  // A Saturday.
  const from = Date.UTC(2026, 7, 1)
  const week = (of: (n: number) => number) =>
    Array.from({ length: 7 }, (_, n) => ({ at: from + n * day, value: of(n) }))
  t.same(axesOf(week(() => 2)), ['0', '1', '2', 'Aug 01', 'Sun 02', 'Mon 03', 'Tue 04', 'Wed 05', 'Thu 06', 'Fri 07'])
  t.same(axesOf(week(() => 1)).slice(0, 2), ['0', '1'])
  t.ok(axesOf(week(() => 0.5)).includes('0.2'), 'what is no count keeps its parts')
  const quarter = Array.from({ length: 90 }, (_, n) => ({ at: from + n * day, value: 3 }))
  t.notOk(
    axesOf(quarter).some((text) => text.startsWith('Sun')),
    'weeks have their dates',
  )
  t.end()
})
