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
