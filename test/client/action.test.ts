// The GitHub Action. Its shell steps run as on a GitHub runner: each with the variables of action.yml, and with files for
// outputs and summary. The registry is not called: `npm install` links the packages of this checkout.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { generatePrivateKey } from 'viem/accounts'
import { modelEnv, openMessagesServer, verdictOn } from '../assessment/semantic/messages-server.ts'
import { register } from '../quotes/harness.ts'
import { startSystem } from '../system.ts'

const ROOT = join(import.meta.dirname, '../..')
const ACTION = readFileSync(join(ROOT, 'action.yml'), 'utf8')

/**
 * Replaces npm: records the dependencies of package.json, and links them if each is a package of this checkout. LOCK_EDIT may change
 * the lock file, as npm does where a range does not fit it.
 */
const NPM = `#!/usr/bin/env bash
set -e
node -p "Object.entries(JSON.parse(fs.readFileSync('package.json')).dependencies).map((one) => one.join('@')).join('\\n')" > asked.txt
while read -r word; do [ -d "$MODULES/\${word%@*}" ] || exit 1; done < asked.txt
node -e "
  const lock = JSON.parse(fs.readFileSync('package-lock.json'))
  const { packages } = lock
  lock.packages = { '': {}, 'node_modules/parse5': packages['node_modules/parse5'] }
  $LOCK_EDIT
  fs.writeFileSync('package-lock.json', JSON.stringify(lock))
"
ln -s "$MODULES" node_modules
`

interface Step {
  run: string
  env: Record<string, string>
}

/** The inputs' defaults, and the steps that run a shell, as written. */
function readAction(): { defaults: Record<string, string>; steps: Step[] } {
  const [inputs = '', rest = ''] = ACTION.split(/^outputs:$/m)
  const defaults = inputs.matchAll(/^ {2}([a-z-]+):\n(?: {4}(?!default).*\n)* {4}default: "?(.*?)"?$/gm)
  const steps = rest.split(/^ {4}- /m).flatMap((step): Step[] => {
    const run = /^ *run: (.*)$/m.exec(step)?.[1]
    const env = step.matchAll(/^ {8}([A-Z_]+): (.*)$/gm)
    return run === undefined ? [] : [{ run, env: Object.fromEntries([...env].map(([, name, value]) => [name, value])) }]
  })
  return { defaults: Object.fromEntries([...defaults].map(([, name, value]) => [name, value])), steps }
}

/** Runs the action in a workspace and a temporary folder. Stops at the first step that fails, as a job does. */
async function runAction(t: Test, folder: string, given: Record<string, string>, lockEdit = '') {
  const path = (name: string) => join(folder, name)
  for (const name of ['bin', 'temp', 'workspace']) mkdirSync(path(name), { recursive: true })
  writeFileSync(path('bin/npm'), NPM, { mode: 0o755 })
  for (const name of ['output', 'summary.md']) writeFileSync(path(name), '')
  const { defaults, steps } = readAction()
  t.equal(steps.length, 2)
  const values: Record<string, string> = { 'github.action_path': ROOT, 'runner.temp': path('temp') }
  for (const [name, value] of Object.entries({ ...defaults, ...given })) values[`inputs.${name}`] = value
  const fill = (template: string) =>
    template.replace(/\$\{\{ (.*?) \}\}/g, (_, name: string) => {
      if (values[name] === undefined) throw new Error(`action.yml names ${name}, which is not there.`)
      return values[name]
    })
  const own = {
    PATH: `${path('bin')}:${process.env.PATH}`,
    MODULES: join(ROOT, 'node_modules'),
    LOCK_EDIT: lockEdit,
    HOME: path('temp'),
    RUNNER_TEMP: path('temp'),
    GITHUB_OUTPUT: path('output'),
    GITHUB_STEP_SUMMARY: path('summary.md'),
  }
  let log = ''
  for (const { run, env } of steps) {
    const filled = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value)]))
    const options = { cwd: path('workspace'), env: { ...own, ...filled } }
    const child = spawn('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', fill(run)], options)
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    log += stdout + stderr
    if (code !== 0) return { code, log }
  }
  return { code: 0, log }
}

const model = await openMessagesServer((asked) =>
  verdictOn(asked, 'three piers', asked.claim.includes('two piers') ? 'contradicts' : 'supports'),
)
t.teardown(() => model[Symbol.asyncDispose]())
const system = await startSystem({ env: modelEnv(model) })
t.teardown(() => system[Symbol.asyncDispose]())
const reader = await register(system, 'pro')
const page = system.site.url('/harbour')
const inputs = { service: system.url('/'), 'api-key': reader.key }
const outputsOf = (folder: string) => readFileSync(join(folder, 'output'), 'utf8')
const fresh = (folder: string) => {
  for (const name of readdirSync(join(folder, 'temp')))
    if (name === 'countersign-client') writeFileSync(join(folder, 'temp', name, 'asked.txt'), '')
}

t.test('the free check: exit status, SARIF, outputs, summary, cache', async (t) => {
  const folder = t.testdir({ workspace: {} })
  writeFileSync(join(folder, 'workspace/good.md'), `It has "three piers and a lighthouse" [there](${page}).\n`)
  writeFileSync(join(folder, 'workspace/bad.md'), `It has "four piers and a lighthouse" [there](${page}).\n`)
  const { code, log } = await runAction(t, folder, { ...inputs, report: 'good.md\nbad.md\n' })
  t.equal(code, 1, log)
  t.equal(outputsOf(folder), 'sarif=countersign-sarif\nfailed=1\n')
  t.match(readFileSync(join(folder, 'summary.md'), 'utf8'), /good\\?\.md: all hold[\s\S]*bad\\?\.md: some do not hold/)
  const results = (n: number) =>
    JSON.parse(readFileSync(join(folder, `workspace/countersign-sarif/${n}.sarif`), 'utf8')).runs[0].results
  t.same([results(1).length, results(2)[0].ruleId], [0, 'wrong'])
  t.ok(existsSync(join(folder, 'temp/countersign-cache/answers.json')))
  t.notMatch(log, reader.key)
  const asked = readFileSync(join(folder, 'temp/countersign-client/asked.txt'), 'utf8')
  t.match(asked, /^mdast-util-gfm@\^/m)
  t.notMatch(asked, /x402|viem/, 'what pays is installed for verdicts only')
})

t.test('every action that it uses is named by its commit, because a tag can be moved', async (t) => {
  const used = [...ACTION.matchAll(/^ *(?:- )?uses: (.*)$/gm)]
  t.equal(used.length, 3)
  for (const [, name = ''] of used) t.match(name, /^actions\/[\w/-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/)
})

t.test('what is not in the lock file of the checkout is not run', async (t) => {
  const edits = {
    'another version': "lock.packages['node_modules/parse5'].version = '99.0.0'",
    'other bytes': "lock.packages['node_modules/parse5'].integrity = 'sha512-AAAA'",
    'without a digest': "delete lock.packages['node_modules/parse5'].integrity",
    'another package': "lock.packages['node_modules/stranger'] = { version: '1.0.0', integrity: 'sha512-AAAA' }",
  }
  for (const [name, edit] of Object.entries(edits)) {
    const folder = t.testdir({ workspace: { 'one.md': 'Nothing.\n' } })
    const { code, log } = await runAction(t, folder, { ...inputs, report: 'one.md' }, edit)
    t.equal(code, 1, name)
    t.match(log, /Not in the lock file of the action: node_modules\/(parse5|stranger)/, name)
    t.equal(outputsOf(folder), '', `${name}: the step with the key did not run`)
  }
})

t.test('with verdicts: one budget for all reports, and nothing bought twice', async (t) => {
  const folder = t.testdir({ workspace: {} })
  writeFileSync(join(folder, 'workspace/one.md'), `Ships find [three piers](${page}) there.\n`)
  writeFileSync(
    join(folder, 'workspace/two.md'),
    `Ships find [two piers](${page}).\n\nNo [lighthouse](${page}) is there.\n`,
  )
  const wallet = generatePrivateKey()
  const buying = { ...inputs, report: 'one.md\ntwo.md', verify: 'true', wallet, budget: '0.06' }
  const settled = async () => (await system.sql('select count(*)::int from payment_ledger'))[0]?.count
  const first = await runAction(t, folder, buying)
  t.equal(first.code, 1, first.log)
  t.match(first.log, /2 verdicts at 0\.03 USDC: 0\.06 USDC/)
  t.match(first.log, 'There is no verdict: the budget is reached.')
  t.equal(await settled(), 2)
  t.notMatch(first.log, wallet.slice(2))
  t.match(readFileSync(join(folder, 'summary.md'), 'utf8'), /\| contradicted \|/)
  t.match(readFileSync(join(folder, 'temp/countersign-client/asked.txt'), 'utf8'), /^@x402\/fetch@\^[\s\S]*^viem@/m)

  // The next run of the workflow: a new machine that has the cache of the first.
  const next = t.testdir({ workspace: {}, temp: {} })
  t.equal(next, folder)
})

t.test('an input without a file, and a key that is refused, are wrong usage', async (t) => {
  const folder = t.testdir({ workspace: {} })
  t.match(await runAction(t, folder, { ...inputs, report: '\n' }), { code: 2, log: /names no file/ })
  fresh(folder)
})
