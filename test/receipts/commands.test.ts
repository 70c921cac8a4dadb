// The operator's commands for keys and chain, beside a service that continues to sign.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { BARE_ENV } from '../children.ts'
import { openTestLog } from './log.ts'

async function cli(env: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../server/cli.ts'), ...args], {
    env: { ...BARE_ENV, ...env },
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}

t.test('keys rotate, chain verify', async (t) => {
  await using log = await openTestLog()
  const env = { DATABASE_URL: log.url, SIGNING_SEED: log.seed.toString('hex') }
  const [before] = await log.append(1)
  const rotated = await cli(env, 'keys', 'rotate', 'receipt')
  t.match(rotated, { code: 0, stderr: '' })
  const [after] = await log.append(1)
  t.not(after!.key_id, before!.key_id)
  t.ok(rotated.stdout.includes(`${after!.key_id}:${after!.pubkey_hex}\n`))
  t.match(rotated.stdout, /introduced by receipt 2\n/)
  t.match(await cli(env, 'keys', 'rotate', 'checkpoint'), { code: 0, stdout: /introduced by receipt 4\n/ })

  const [links, signatures, keys] = await Promise.all([
    cli(env, 'chain', 'verify', 'links'),
    cli(env, 'chain', 'verify', 'signatures'),
    cli(env, 'keys'),
  ])
  t.match(links, { code: 0, stdout: 'ok   4 receipts: every hash, link and tree node, 2 signatures\n', stderr: '' })
  t.match(signatures, { code: 0, stdout: 'ok   4 receipts: every hash, link and tree node, 4 signatures\n' })
  t.equal((JSON.parse(keys.stdout) as unknown[]).length, 6)

  await log.damage(`update receipts set label = 'another' where serial = 3`)
  const found = await cli(env, 'chain', 'verify', 'links')
  t.match(found, { code: 1, stdout: /^FAIL hashes: serial 3 .*\nFAIL 4 receipts/ })
})

t.test('wrong calls and a wrong seed', async (t) => {
  await using log = await openTestLog()
  const env = { DATABASE_URL: log.url, SIGNING_SEED: log.seed.toString('hex') }
  const [use, mode, missing, seed] = await Promise.all([
    cli(env, 'keys', 'rotate', 'recovery'),
    cli(env, 'chain', 'verify', 'everything'),
    cli(env, 'chain', 'verify'),
    cli({ ...env, SIGNING_SEED: randomBytes(32).toString('hex') }, 'keys', 'rotate', 'receipt'),
  ])
  t.match(use, { code: 2, stderr: '"recovery" is not one of receipt, lease, webhook, checkpoint.\n' })
  t.match(mode, { code: 2, stderr: '"everything" is not one of links, signatures.\n' })
  t.match(missing, { code: 2, stderr: /is not one of the commands/ })
  t.match(seed, { code: 1, stderr: /is not the active one of this database/ })
  t.equal((await log.head()).serial, 0)
})
