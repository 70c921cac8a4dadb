// The pages of the reference, made without a service.
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { readConfig } from '../../server/config.ts'
import { ERROR_CODES, errorTable } from '../../server/errors.ts'
import { buildDocument } from '../../server/http/openapi.ts'
import { findExamples } from '../../server/pages/examples/examples.ts'
import { openSite } from '../../server/pages/layout.ts'
import { errorsPage, operationPage } from '../../server/pages/reference/reference-page.ts'

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

t.test('the page of errors says of each whether a call may be repeated, as its meaning says', async (t) => {
  const page = errorsPage(site, catalog)
  const labelOf = (code: string) =>
    new RegExp(`id="error-${code}">.*?<span class="detail">(\\d+), ([a-z ]+)</span>`, 's').exec(page)?.[2]
  for (const code of ERROR_CODES) {
    const { retryable, about } = errorTable[code]
    const isEither = /retryable (if|after)/i.test(about)
    const usual = retryable ? 'retryable' : 'not retryable'
    t.equal(labelOf(code), isEither ? 'retryable in some cases' : usual, code)
  }
  for (const code of ['source_http_status', 'assessment_failed'])
    t.equal(labelOf(code), 'retryable in some cases', code)
  t.match(page, 'after a 402 it needs a payment as well')
})
