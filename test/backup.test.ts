// A `pg_dump` of a running system, restored as docs/operations.md says: it has the chain and the ledger of one moment, and
// both verify.
import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { runCli } from './cli-process.ts'
import { openTestDatabase } from './database.ts'
import { payingFetch, query, type System, startSystem } from './system.ts'

const run = promisify(execFile)

/** Why the backup cannot be made here, or false: pg_dump must be as new as the server. */
async function findObstacle(): Promise<string | false> {
  const dumps = await run('pg_dump', ['--version']).catch(() => null)
  if (!dumps) return 'no pg_dump on this machine'
  await using database = await openTestDatabase({ template: false })
  const [row] = await query(database.url, 'show server_version')
  const [client, server] = [dumps.stdout.replace(/^\D+/, ''), String(row?.server_version)].map((text) =>
    Number.parseInt(text, 10),
  )
  return client! < server! && `pg_dump is of Postgres ${client}, and the server of ${server}`
}

const buy = async (system: System) => {
  const answer = await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=25' } })
  return answer.status
}

t.test('a dump of a running system is consistent', { skip: await findObstacle() }, async (t) => {
  const env = { SIGNING_SEED: randomBytes(32).toString('hex'), RATE_LIMIT_PER_MINUTE: '0' }
  await using system = await startSystem({ env })
  const folder = await mkdtemp(join(tmpdir(), 'countersign-backup-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const file = join(folder, 'countersign.dump')
  await Promise.all([buy(system), buy(system), buy(system)])

  // Purchases go on while it is made, and after it.
  const under = Array.from({ length: 4 }, () => buy(system))
  await run('pg_dump', ['--format=custom', `--file=${file}`, system.databaseUrl])
  t.same(await Promise.all(under), [200, 200, 200, 200])
  t.equal(await buy(system), 200)
  const head = async (url: string) => Number((await query(url, 'select serial from chain_head'))[0]?.serial)
  const last = await head(system.databaseUrl)

  await using restored = await openTestDatabase({ template: false })
  await run('pg_restore', ['--no-owner', '--exit-on-error', `--dbname=${restored.url}`, file])
  const kept = await head(restored.url)
  t.ok(kept >= 3 && kept < last, `${kept} of ${last} receipts`)
  const settings = { ...env, DATABASE_URL: restored.url }
  const chain = await runCli(settings, 'chain', 'verify', 'signatures')
  t.match(chain, { code: 0 }, chain.stdout + chain.stderr)
  const audit = await runCli(settings, 'audit', '--signatures')
  t.match(audit, { code: 0 }, audit.stdout + audit.stderr)
  t.match(await runCli(settings, 'migrate'), { code: 0, stdout: /up to date/ })
})
