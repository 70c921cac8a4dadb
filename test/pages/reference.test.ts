// The pages of the reference, made without a service.
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { readConfig } from '../../server/config.ts'
import { buildDocument } from '../../server/http/openapi.ts'
import { findExamples } from '../../server/pages/examples/examples.ts'
import { openSite } from '../../server/pages/layout.ts'
import { operationPage } from '../../server/pages/reference/reference-page.ts'

const document = buildDocument({ config: readConfig({}) }, catalog)
const site = await openSite({ baseUrl: 'https://service.test' })
const examples = await findExamples()
const pageOf = (name: string) => operationPage(site, { document, catalog, examples, canTry: false }, name) ?? ''

t.test('each error of an operation is listed once', async (t) => {
  for (const { name } of catalog) {
    const codes = [...pageOf(name).matchAll(/href="\/docs\/errors#error-(\w+)"/g)].map(([, code]) => code)
    t.same(codes, [...new Set(codes)], name)
  }
  t.match(pageOf('test_watchdog'), /#error-rate_limited/)
})
