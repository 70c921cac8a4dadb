// The official conformance suites, run against the service and against its endpoint with the features that the suites
// expect. Exit code 0 means that exactly the scenarios in the baseline failed.
import Fastify from 'fastify'
import t from 'tap'
import { mountMcp } from '../../server/mcp/endpoint.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { conformanceFeature } from './conformance-feature.ts'
import { failuresOf, type Run, runSuite } from './conformance-suites.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())
const service = new URL('/mcp', office.api.baseUrl).href

const app = Fastify()
t.teardown(() => app.close())
await mountMcp(app, office.api, [conformanceFeature])
const endpoint = new URL('/mcp', await app.listen({ host: '127.0.0.1', port: 0 })).href

const MODERN = ['--requirements', '2026-07-28', '--timeout', '8000']

function passed(run: Run): string[] {
  return [...run.scenarios]
    .filter(([, checks]) => checks.every(({ status }) => status !== 'FAILURE'))
    .map(([name]) => name)
}

function check(t: import('tap').Test, run: Run, needed: string[], least: number) {
  t.equal(run.code, 0, 'as expected')
  if (run.code !== 0) t.comment([...failuresOf(run), run.output.slice(-2000)].join('\n'))
  t.ok(run.scenarios.size >= least, `${run.scenarios.size} scenarios were run`)
  for (const name of needed) t.ok(passed(run).includes(name), name)
}

t.test('the service passes the suite up to 2025-11-25 but for its baseline', async (t) => {
  const run = await runSuite('until2025', service, { baseline: 'baseline-service.yml' })
  const needed = [
    'server-initialize',
    'ping',
    'tools-list',
    'resources-list',
    'prompts-list',
    'dns-rebinding-protection',
  ]
  check(t, run, needed, 30)
})

t.test('the service passes the suite of 2026-07-28 but for its baseline', async (t) => {
  const run = await runSuite('since2026', service, { baseline: 'baseline-service-2026.yml', args: MODERN })
  const needed = [
    'tools-list',
    'resources-list',
    'prompts-list',
    'caching',
    'http-header-validation',
    'dns-rebinding-protection',
    'sep-2164-resource-not-found',
    'input-required-result-unsupported-methods',
    'server-sse-multiple-streams',
  ]
  check(t, run, needed, 45)
  const stateless = run.scenarios.get('server-stateless') ?? []
  const failed = stateless.filter(({ status }) => status === 'FAILURE')
  t.equal(stateless.length - failed.length >= 21, true, 'all that can be tested of server-stateless')
  for (const { id, errorMessage } of failed) t.match(errorMessage, /^Not testable/, id)
})

t.test('the endpoint passes the suite up to 2025-11-25 but for its baseline', async (t) => {
  check(
    t,
    await runSuite('until2025', endpoint, { baseline: 'baseline-fixtures.yml' }),
    ['tools-call-with-progress'],
    30,
  )
})

t.test('the endpoint passes everything that 2026-07-28 requires', async (t) => {
  check(t, await runSuite('since2026', endpoint, { args: MODERN }), ['server-stateless', 'json-schema-2020-12'], 45)
})
