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

t.test('the answers of a lookup are its own, not those of a purchase', async (t) => {
  const lookups = catalog.filter(({ method, family }) => method === 'GET' && family === 'verification')
  for (const { name } of lookups) t.notMatch(pageOf(name), /the same POST/, name)
  for (const name of ['find_payment', 'get_payment', 'get_evidence', 'get_claims_evidence', 'get_terms'])
    t.notMatch(/<code>503<\/code>.*?<br/s.exec(pageOf(name))?.[0], /same key|request_id/, name)
  for (const name of ['get_evidence', 'get_claims_evidence'])
    t.match(pageOf(name), /<code>404<\/code> [^<]*nothing was kept/, name)
  const found = pageOf('find_payment')
  t.match(found, /<code>404<\/code> No request here has this payment</)
  t.match(found, /<dt><code>PAYMENT-SIGNATURE<\/code> <span class="detail">string<\/span>/, 'required')
  t.match(pageOf('buy_source'), /<dt><code>PAYMENT-SIGNATURE<\/code> <span class="detail">string, optional/)
  t.match(pageOf('get_terms'), /<dt>Answers<\/dt><dd><bdi><span><code>402<\/code> The terms of payment/)
})

t.test('the version in the call of get_methodology is percent-encoded everywhere', async (t) => {
  const page = operationPage(site, { document, catalog, examples, canTry: true }, 'get_methodology') ?? ''
  const paths = [...page.matchAll(/\/methodology\/(retrieval[^'"&<]*)/g)].map(([, version]) => version)
  const version = examples.get_methodology?.path.replace('/methodology/', '') ?? ''
  t.equal(paths.length, 4, 'three languages and the form')
  for (const path of paths) t.equal(path, encodeURIComponent(version))
})

t.test('an answer begins with its body, and one that cannot be read has no box to copy', async (t) => {
  const boxOf = (page: string) => /<figcaption>Answer, as recorded.*?<pre[^>]*><code>(.*?)<\/code>/s.exec(page)?.[1]
  for (const { name, statuses } of catalog) {
    const page = pageOf(name)
    if (statuses?.includes(204)) t.match(page, /<p>Answer, as recorded: <code>HTTP 204<\/code>\. No body\.<\/p>/, name)
    else if (/evidence$/.test(name))
      t.match(
        page,
        /<p>Answer, as recorded: <code>HTTP 200<\/code>\. A file: to keep it, give curl <code>--output FILE<\/code>\.<\/p>/,
        name,
      )
    else {
      t.match(boxOf(page), /^[^\n]/, name)
      t.notMatch(boxOf(page), /^(HTTP|[a-z-]+:)/, name)
      continue
    }
    t.equal(boxOf(page), undefined, name)
    t.notMatch(page, 'the bytes of the file')
  }
  const token = examples.verify_source?.answerHeaders['x-service-recovery-token'] ?? ''
  t.ok(token.length > 40)
  t.match(pageOf('verify_source'), new RegExp(`<summary>Headers of this answer</summary>.*${token}</code>`, 's'))
})

t.test('the reference says things in short sentences of plain words', async (t) => {
  for (const { name, description = '' } of catalog) {
    const long = description.split(/(?<=[.:;]) /).filter((sentence) => sentence.split(/\s+/).length > 30)
    t.same(long, [], name)
    const words = pageOf(name).replaceAll(/<[^>]+>/g, ' ')
    t.notMatch(words, /Pin serial|settlement outcome|provably not settled|bearer credential|Unpredictable\./, name)
  }
})

t.test(
  'the verdict is among the first lines of an answer, and no word of an answer is longer than a line',
  async (t) => {
    for (const { name } of catalog) {
      const [box = ''] =
        /(?<=<figcaption>Answer, as recorded.*?<pre[^>]*><code>).*?(?=<\/code>)/s.exec(pageOf(name)) ?? []
      const long = box.replaceAll('&quot;', '').match(/[^\s,&]{80,}/)
      t.equal(long, null, name)
      if (/^(verify|buy)_source$/.test(name)) {
        const lines = box.split('\n')
        const at = lines.findIndex((line) => line.includes('claim_support'))
        t.ok(at > 0 && at < 12, `${name}: line ${at} of ${lines.length}`)
      }
    }
  },
)

t.test('each page names its operation, has a heading of its own and leads to the errors first', async (t) => {
  const summaries = catalog.map(({ summary }) => summary)
  t.same(summaries, [...new Set(summaries)], 'no two operations have the same heading')
  for (const { name } of catalog) {
    const page = pageOf(name)
    t.match(page, new RegExp(`</h1><p class="named"><code>${name}</code></p>`), name)
    t.match(
      page,
      /<a href="\/docs">All operations<\/a><br\/><a href="\/docs\/errors">All errors<\/a><\/p><details class="group"/,
    )
    t.notMatch(page, /list of (string|object|integer|number|boolean)\b/, name)
  }
  t.match(errorsPage(site, catalog), /<a href="\/docs\/errors" aria-current="page">All errors<\/a>/)
  t.match(pageOf('check_quotes'), /list of strings/)
  t.match(
    pageOf('put_journal_slot'),
    /<h2>Request body<\/h2><p><code>application\/octet-stream<\/code>, at most 65,536 bytes\.<\/p>/,
  )
})

t.test(
  'a page that sells says what the payment and the recovery token are, and which of two operations to take',
  async (t) => {
    const plainOf = (name: string) =>
      pageOf(name)
        .replaceAll(/<[^>]+>/g, '')
        .replaceAll(/\s+/g, ' ')
    for (const name of ['verify_source', 'buy_source', 'verify_claims']) {
      const page = plainOf(name)
      t.match(
        page,
        /PAYMENT-SIGNATUREThe header with which you pay\. .*402 has the terms in PAYMENT-REQUIRED\. A wallet signs/,
        name,
      )
      t.match(
        page,
        /Recovery tokenThe secret in X-Service-Recovery-Token of each 202 and 200 of a purchase\. .*to get request, it gets/,
        name,
      )
    }
    t.match(plainOf('get_request'), /Recovery tokenThe secret in X-Service-Recovery-Token .*to this address, it gets/)
    t.notMatch(plainOf('get_request'), 'The header with which you pay')
    t.notMatch(plainOf('create_receipt'), 'Recovery token')
    for (const [name, other] of [
      ['verify_source', 'buy_source'],
      ['buy_source', 'verify_source'],
    ] as const) {
      const first = new RegExp(`</code></p><p class="which">.*?<a href="/docs/${other}">`, 's')
      t.match(pageOf(name), first, 'before anything else is said')
      t.match(plainOf(name), 'Result and price are the same.')
    }
    t.notMatch(pageOf('verify_claims'), 'class="which"')
  },
)
