// Every risk flag and every methodology version of a result can be looked up.
import { randomUUID } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { configuredMethodologies, explain } from '../../server/verification/offer/methodology.ts'
import { semanticProcedure } from '../../workers/assessment/procedure.ts'
import { literalFlagMeanings, semanticFlagMeanings } from '../../workers/assessment/risk-flags.ts'
import { pageFlagMeanings, retrievalRiskFlags } from '../../workers/retrieval/risk-flags.ts'
import { riskFlagMeanings as textFlagMeanings } from '../../workers/text/page/risk-flags.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { expectCompleted } from '../interface.schema.ts'
import { payingFetch, startSystem } from '../system.ts'

interface Flag {
  name: string
  raised_by: string
  meaning: string
  advice: string
}

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())

const listed = (await office.call('GET', '/risk-flags')).body?.risk_flags as Flag[]
const names = new Set(listed?.map(({ name }) => name))

t.test('every risk flag that code can raise is explained at /risk-flags, with what to do', async (t) => {
  const tables = { retrievalRiskFlags, textFlagMeanings, pageFlagMeanings, literalFlagMeanings, semanticFlagMeanings }
  const meanings = new Map(listed.map(({ name, meaning }) => [`${name}: ${meaning}`, true]))
  for (const [table, flags] of Object.entries(tables))
    for (const [name, meaning] of Object.entries(flags)) t.ok(meanings.has(`${name}: ${meaning}`), `${table}: ${name}`)
  for (const { name, meaning, advice } of listed) {
    t.match(name, /^[a-z][a-z0-9_]*$/)
    t.match(meaning, /^[A-Z].{20,}\.$/, name)
    t.match(advice, /^[A-Z].{20,}\.$/, name)
  }
  t.equal(new Set(listed.map(({ name, raised_by }) => `${raised_by} ${name}`)).size, listed.length, 'each once')
})

t.test('workers raise only flags that are in a table', async (t) => {
  const root = join(import.meta.dirname, '../..')
  const raising = /(?:flags?\.(?:add|push)\(|flag: |risk_flags, )'([a-z0-9_]+)'/g
  const raised = globSync('workers/**/*.ts', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(raising)].map(([, name = '']) => ({ file, name })),
  )
  t.ok(raised.length > 10, `${raised.length} are raised by name`)
  t.same(
    raised.filter(({ name }) => !names.has(name)),
    [],
  )
})

t.test('the flags of a result are explained', async (t) => {
  const body = { source_url: system.site.url('/harbour'), claim: 'The harbour was opened in 1911.' }
  const bought = await system.ask({ key: randomUUID(), body, fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  const { result } = await expectCompleted(t, bought)
  const flags = result.risk_flags as string[]
  t.ok(flags.length > 0)
  for (const flag of flags) t.ok(names.has(flag), flag)
})

const at = (version: string) => `/methodology/${encodeURIComponent(version)}`

t.test('the methodology_version of a result is explained', async (t) => {
  const bought = await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  const { result } = await expectCompleted(t, bought)
  const version = String(result.methodology_version)
  const response = await fetch(system.url(at(version)))
  t.equal(response.status, 200)
  const { methodology_version, in_force, parts } = await response.json()
  t.equal(methodology_version, version)
  t.equal(in_force, true)
  t.same(
    parts.map(({ part }: { part: string }) => part),
    version.split(/[ +]/),
    'part by part',
  )
  for (const { part, meaning } of parts) t.match(meaning, /^[A-Z].{15,}\.$/, part)
  const { methodologies } = await (await fetch(system.url('/methodology'))).json()
  t.ok(methodologies.some((one: { methodology_version: string }) => one.methodology_version === version))
})

t.test('without a worker the version follows from the configuration, and is explained', async (t) => {
  const model = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9', ANTHROPIC_MODEL: 'org/model@1' }
  for (const env of [{ ASSESSMENT: 'literal' }, { ASSESSMENT: 'local' }, model, { ...model, ASSESSMENT: 'literal' }]) {
    await using desk = await office.openApiProcess(env)
    const { methodology_version: version } = (await desk.call('GET', '/api/agent/v1/capabilities')).body
    t.match(version, /^retrieval-\d+\+text-\d+\S* (literal|local|semantic)-\d+\S*\+gate-\d+$/)
    t.equal(version, configuredMethodologies(readConfig(env))[0])
    const { status, body } = await desk.call('GET', at(version))
    t.equal(status, 200, version)
    t.match(body, { methodology_version: version, in_force: true })
  }
  await using desk = await office.openApiProcess({ ...model, ASSESSMENT_FALLBACK: 'literal' })
  const { methodologies } = (await desk.call('GET', '/methodology')).body
  t.match(methodologies, [
    { in_force: true, methodology_version: / semantic-/ },
    { in_force: true, methodology_version: / literal-/ },
  ])
})

t.test('a version of an earlier result is explained as not in force; an unknown one is 404', async (t) => {
  const [version] = configuredMethodologies(readConfig({ ASSESSMENT: 'literal' }))
  const earlier = version.replace(/icu-[\d.]+/, 'icu-1.0')
  t.match((await office.call('GET', at(earlier))).body, { methodology_version: earlier, in_force: false })
  for (const unknown of [
    'countersign',
    'nope',
    ' ',
    `${version}+more`,
    `${version} more`,
    version.replace('gate-', 'gate-9'),
    version.replace(/\+gate-\d+/, ''),
    version.replace(/literal-\d+/, 'literal-999'),
    version.replace(/literal-\d+/, 'semantic-1'),
    'x'.repeat(300),
  ]) {
    const { status, body } = await office.call('GET', at(unknown))
    t.equal(status, 404, unknown.slice(0, 80))
    t.equal(body.error.code, 'not_found')
  }
})

t.test('any model name can be part of a version', (t) => {
  const [version] = configuredMethodologies(readConfig({ ASSESSMENT: 'literal' }))
  const observation = version.split(' ')[0]
  for (const model of ['claude-haiku-5-5', 'org/model:tag@1', 'a b+c', 'x'.repeat(200), 'ünï']) {
    const parts = explain(`${observation} ${semanticProcedure(model, 24_000)}+gate-1`)
    t.ok(parts, model)
    t.equal(parts?.length, 11)
  }
  t.end()
})
