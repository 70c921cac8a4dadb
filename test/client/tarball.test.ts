// The packed client, installed by npm into an empty folder, on each version of Node that it names: it starts, verifies, reads reports,
// buys, and ends. Needs the registry of packages.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t from 'tap'
import { csvOf, openShop, rowsOf } from './batch-desk.ts'
import { issueResult, KEY_ID, pubkeyHex } from './issuer.ts'
import { installClient, MAJORS, nodeOf, ROOT, run } from './packing.ts'

t.test('the tarball in an empty folder', async (t) => {
  const { project, bin, code, stderr, isAway } = await installClient()
  if (!isAway) t.equal(code, 0, stderr)
  t.notMatch(stderr, /EBADENGINE|ERESOLVE/)
  writeFileSync(join(project, 'result.json'), JSON.stringify(issueResult()))
  writeFileSync(join(project, 'report.md'), '# A report\n\nNothing is cited.\n')
  writeFileSync(join(project, 'report.html'), '<!doctype html><p>Nothing is cited.</p>\n')
  writeFileSync(join(project, 'wallet.key'), `0x${'5b'.repeat(32)}`, { mode: 0o600 })
  writeFileSync(join(project, 'in.csv'), csvOf(rowsOf(3)))

  for (const major of MAJORS) {
    const node = isAway ? null : await nodeOf(major)
    const skip = node === null && `Node ${major} is not there, or the registry of packages cannot be reached`
    await t.test(`on Node ${major}`, { skip }, async (t) => {
      const shop = await openShop(t)
      const path = `${dirname(String(node))}:${process.env.PATH}`
      const countersign = (args: string[], env: NodeJS.ProcessEnv = {}) =>
        run(bin, args, project, { PATH: path, ...env })

      t.match(await countersign(['--help']), { code: 0, stderr: '', stdout: 'Examples:' })
      const pin = `${KEY_ID}:${pubkeyHex}`
      t.match(await countersign(['verify', 'result.json', '--pin', pin]), { code: 0, stderr: '', stdout: /\ngood\n$/ })
      const account = { COUNTERSIGN_SERVICE: shop.baseUrl, COUNTERSIGN_KEY: 'ctk_none' }
      for (const report of ['report.md', 'report.html'])
        t.match(await countersign(['check', report, '--html', 'check.html'], account), { code: 0, stderr: '' }, report)
      t.match(
        readFileSync(join(project, 'check.html'), 'utf8'),
        /^<!doctype html>[\s\S]* data-check="\{&quot;check&quot;/,
      )

      const out = `out${major}`
      const args = [
        'in.csv',
        '--service',
        shop.baseUrl,
        '--wallet',
        'wallet.key',
        '--budget',
        '0.06',
        '--yes',
        '--out',
        out,
      ]
      t.match(
        await countersign(['batch', ...args]),
        { code: 3, stdout: /2 completed, 0 failed/ },
        'a budget is reached',
      )
      t.match(await countersign(['batch', ...args.with(6, '0.09'), '--resume']), { code: 0, stdout: /3 completed/ })
      t.equal(shop.settled.size, 3)

      const serving = ['mcp', '--service', shop.baseUrl, '--wallet', 'wallet.key', '--budget', '0.09']
      const client = new Client({ name: 'a-host', version: '1.0.0' })
      const own = { PATH: path, HOME: project }
      await client.connect(new StdioClientTransport({ command: bin, args: serving, cwd: project, env: own }))
      t.equal((await client.listTools()).tools.length, 4)
      await client.close()
    })
  }
})

t.test('each manifest names the oldest version of Node that is tested', async (t) => {
  for (const folder of ['client', 'client/sdk', 'workers/assessment/local']) {
    const { engines } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'))
    t.equal(engines.node, `>=${Math.min(...MAJORS)}`, folder)
  }
})
