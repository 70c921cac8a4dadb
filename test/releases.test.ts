// Two releases beside each other, as during a deployment: processes of the code before the newest migration work on the new schema,
// together with those of this code. The code before comes from the history of git.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { listMigrations } from '../server/db/migrate.ts'
import { audit, openApiHarness } from './api-harness.ts'
import { startChild } from './children.ts'
import { buy } from './crash-harness.ts'

const ROOT = join(import.meta.dirname, '..')
const CODE = ['client', 'docs', 'package.json', 'server', 'sql', 'workers']
const AT_ONCE = 8
const run = promisify(execFile)
const git = async (...args: string[]) => (await run('git', args, { cwd: ROOT })).stdout.trim()

/** The commit before the one that added the newest migration; null where the history does not reach as far. */
async function findCommitBefore(): Promise<string | null> {
  const newest = `sql/${listMigrations().at(-1)?.name}`
  try {
    const added = await git('log', '--diff-filter=A', '--format=%H', '--', newest)
    // A migration that is not committed is of the release to come.
    if (added === '') return await git('rev-parse', '--verify', 'HEAD')
    return await git('rev-parse', '--verify', `${added.split('\n').at(-1)}^`)
  } catch {
    return null
  }
}

async function openCode(commit: string): Promise<AsyncDisposable & { root: string }> {
  const root = await mkdtemp(join(tmpdir(), 'countersign-release-'))
  const archive = join(root, 'code.tar')
  await git('archive', '--output', archive, commit, ...CODE)
  await run('tar', ['-xf', archive, '-C', root])
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) }
}

const before = await findCommitBefore()

t.test(
  'processes of the release before work on the new schema, alone and beside new ones',
  { skip: before === null && 'the history of git does not reach to the commit before the newest migration' },
  async (t) => {
    await using code = await openCode(before!)
    await using front = await openApiHarness()
    const { root } = code
    await using oldWeb = startChild('server/main.ts', front.env, { root })
    await using oldWorker = startChild('workers/main.ts', front.env, { root })
    await using newWorker = startChild('workers/main.ts', front.env)
    newWorker.kill('SIGSTOP')
    const old = String((await oldWeb.logs('listening')).address)
    await oldWorker.logs('worker_started')
    const load = (webs: (string | undefined)[]) =>
      Promise.all(Array.from({ length: AT_ONCE }, (_, n) => buy(front, undefined, webs[n % webs.length]).result))
    const both = [old, undefined]

    const alone = await load(both)
    newWorker.kill('SIGCONT')
    await newWorker.logs('worker_started')
    const beside = await load(both)
    const last = load([undefined])
    for (const process of [oldWeb, oldWorker]) process.kill('SIGTERM')
    t.same([await oldWeb.ended, await oldWorker.ended], Array(2).fill({ code: 0, signal: null }))

    const results = [...alone, ...beside, ...(await last)]
    t.same(
      results.map(({ status }) => status),
      results.map(() => 'completed'),
    )
    t.same(await audit(front, results), { badResults: {}, badLinks: [], receipts: results.length })
    for (const child of [oldWeb, oldWorker, newWorker])
      t.same(
        child.heard.filter(({ level }) => level === 'error' || level === 'fatal'),
        [],
      )
  },
)
