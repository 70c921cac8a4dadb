// The operator's commands for keys and chain, beside a service that continues to sign.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { askCli, runCli as cli } from '../cli-process.ts'
import { openTestLog } from './log.ts'

t.test('keys rotate, chain verify', async (t) => {
  await using log = await openTestLog()
  const env = { DATABASE_URL: log.url, SIGNING_SEED: log.seed.toString('hex') }
  const [before] = await log.append(1)
  const [silent, declined] = await Promise.all([
    cli(env, 'keys', 'rotate', 'receipt'),
    askCli(env, 'no\n', 'keys', 'rotate', 'receipt'),
  ])
  t.match(silent, {
    code: 2,
    stdout: '',
    stderr: /^Replace the receipt key\?.*\nThere is no terminal to ask this.*--yes\./,
  })
  t.match(declined, { code: 2, stdout: '', stderr: /Nothing was changed\.\n$/ })
  t.equal((await log.head()).serial, 1, 'no key was introduced')
  const rotated = await cli(env, 'keys', 'rotate', 'receipt', '--yes')
  t.match(rotated, { code: 0, stderr: '' })
  const [after] = await log.append(1)
  t.not(after!.key_id, before!.key_id)
  t.ok(rotated.stdout.includes(`${after!.key_id}:${after!.pubkey_hex}\n`))
  t.match(rotated.stdout, /introduced by receipt 2\n/)
  t.match(await askCli(env, 'yes\n', 'keys', 'rotate', 'checkpoint'), { code: 0, stdout: /introduced by receipt 4\n/ })

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
    cli({ ...env, SIGNING_SEED: randomBytes(32).toString('hex') }, 'keys', 'rotate', 'receipt', '--yes'),
  ])
  t.match(use, { code: 2, stderr: '"recovery" is not one of receipt, lease, webhook, checkpoint.\n' })
  t.match(mode, { code: 2, stderr: '"everything" is not one of links, signatures.\n' })
  t.match(missing, { code: 2, stderr: /^chain verify takes <links\|signatures>, and none was given\./ })
  t.match(seed, { code: 1, stderr: /is not the active one of this database/ })
  t.equal((await log.head()).serial, 0)
})
