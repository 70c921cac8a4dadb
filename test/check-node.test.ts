// The message for a user who starts without the packages, or with an old Node.
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startOf } from '../bench/start-of.ts'

const ROOT = join(import.meta.dirname, '..')

/** Runs the check of a checkout as this version of Node would. */
const check = (root: string, version = process.versions.node) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const script = join(root, 'server/check-node.cjs')
    const run = `Object.defineProperty(process.versions, 'node', { value: '${version}' }); require('${script}')`
    execFile(process.execPath, ['-e', run], (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })

t.test('a wrong version of Node gives one sentence, a right one gives nothing', async (t) => {
  t.same(await check(ROOT), { code: 0, stdout: '', stderr: '' })
  const old = await check(ROOT, '20.20.2')
  t.match(old, { code: 1, stdout: '', stderr: /^Node 24 or newer is needed, and this is 20\.20\.2\. .*\n$/ })
  const empty = t.testdir({})
  mkdirSync(join(empty, 'server'))
  cpSync(join(ROOT, 'server/check-node.cjs'), join(empty, 'server/check-node.cjs'))
  t.match(await check(empty, '18.0.0'), {
    code: 1,
    stderr: /^The packages are not installed yet: run `npm install` first\..*\n$/,
  })
})

t.test('the check runs before the commands of the first steps, and has the version of package.json', async (t) => {
  const { scripts, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  // The first file that Node loads, and in the same process, because one more takes a twentieth of a second.
  for (const name of ['start', 'demo']) t.match(scripts[name], /\bnode --require \.\/server\/check-node\.cjs /, name)
  t.equal(scripts.pretest, 'node server/check-node.cjs')
  const needed = /NEEDED = (\d+)/.exec(readFileSync(join(ROOT, 'server/check-node.cjs'), 'utf8'))?.[1]
  t.equal(engines.node, `>=${needed}`)
})

t.test('tests and benches start web and worker as their scripts do', async (t) => {
  const limits = ['--max-semi-space-size=16', '--max-old-space-size=192']
  for (const file of ['server/main.ts', 'workers/main.ts']) {
    const { flags, env } = startOf(file)
    t.ok(
      limits.every((limit) => flags.includes(limit)),
      `${file}: ${flags}`,
    )
    t.same(env, { MALLOC_ARENA_MAX: '2' })
  }
  t.same(startOf('test/crash-worker.ts'), { flags: [], env: {} })
})
