// `countersign buy --evidence` against the whole service: the package of a purchase, how to fetch it again, and that asking for it never
// pays.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openMarket } from './buy-harness.ts'
import { countersign } from './command-line.ts'

const market = await openMarket(t, { SOURCE_CAPTURE: 'on' })
const { gateway, page, path, settled } = market
const env = { COUNTERSIGN_SERVICE: gateway.baseUrl, COUNTERSIGN_WALLET: path('wallet.key') }
const buy = (claim: string, args: string[] = []) =>
  countersign(['buy', page, claim, '--journal', path('journal'), '--yes', ...args], { env })
const json = (stdout: string) => JSON.parse(stdout)

t.test('the evidence package, and how to fetch it again', async (t) => {
  const claim = 'Three piers, with evidence.'
  const withEvidence = (name: string, ...args: string[]) =>
    buy(claim, ['--out', path(`${name}.json`), '--evidence', path(`${name}.wacz`), ...args])
  const before = await settled()
  const tokens = () =>
    readdirSync(path('journal'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.token'))
      .map((name) => path(join('journal', name)))
  const bought = await withEvidence('first')
  t.equal(bought.code, 0, bought.stderr)
  t.match(bought.stderr, /\nEvidence: [\d,]+ bytes in \S+first\.wacz; countersign replay redoes it\.\n$/)
  t.equal(statSync(path('first.wacz')).mode & 0o777, 0o600)
  const keys = await (await fetch(`${gateway.baseUrl}/v1/keys`)).json()
  const replayed = await countersign(['replay', path('first.wacz'), path('first.json'), '--keys', '-'], {
    input: JSON.stringify(keys),
  })
  t.equal(replayed.code, 0, replayed.stdout + replayed.stderr)

  const [file = ''] = tokens()
  t.equal(statSync(file).mode & 0o777, 0o600)
  const token = readFileSync(file, 'utf8').trim()
  t.match(token, /^\S{20,}$/)
  const [, said = ''] = /^To fetch it again: countersign (recover .*)$/m.exec(bought.stderr) ?? []
  const recovered = await countersign([...said.split(' '), '--evidence', path('recovered.wacz')])
  t.equal(recovered.code, 0, recovered.stderr)
  t.equal(recovered.stdout, readFileSync(path('first.json'), 'utf8'))
  t.ok(readFileSync(path('recovered.wacz')).equals(readFileSync(path('first.wacz'))))

  await t.test('of a purchase that was made before, for nothing', async (t) => {
    const again = await withEvidence('second', '--json')
    t.equal(again.code, 0, again.stderr)
    t.same(Object.keys(json(again.stdout)), ['result', 'verified', 'cost_usd', 'receipt_serial'])
    t.match(again.stderr, new RegExp(`To fetch it again: countersign ${said}\n`))
    t.ok(readFileSync(path('second.wacz')).equals(readFileSync(path('first.wacz'))))
    t.notMatch(bought.stdout + bought.stderr + again.stdout + again.stderr, token)
    t.equal(await settled(), before + 1)
  })

  await t.test(
    'a service that is too busy for it: the same command tries again, and --again buys nothing',
    async (t) => {
      const own = 'Three piers, with late evidence.'
      const args = ['--evidence', path('late.wacz')]
      gateway.hook = async (one, forward) => {
        if (!one.path.endsWith('/evidence')) return forward()
        throw new Error('away')
      }
      const late = await buy(own, args)
      t.match(late, { code: 6, stdout: /^supports/, stderr: /evidence_pending: .* pays nothing\.\n$/ })
      t.match(await buy(own, [...args, '--json']), { code: 6, stderr: /"code":"evidence_pending"/ })
      gateway.hook = (_, forward) => forward()
      const next = await buy(own, [...args, '--again'])
      t.match(next, { code: 0, stdout: /bought before, nothing is paid now/, stderr: /Evidence: / })
      t.equal(await settled(), before + 2)
    },
  )

  await t.test('several claims', async (t) => {
    const claims = ['Three piers, with a package.', 'Two towers, with a package.']
    const args = ['--journal', path('journal'), '--yes', '--out', path('many-kept.json')]
    const many = ['buy', page, ...claims, ...args, '--evidence', path('many.wacz')]
    const done = await countersign(many, { env })
    t.match(done.stderr, /\nEvidence: /)
    const all = await countersign(['replay', path('many.wacz'), path('many-kept.json'), '--keys', '-'], {
      input: JSON.stringify(keys),
    })
    t.equal(all.code, 0, all.stdout + all.stderr)
    t.equal(await settled(), before + 3)
  })

  await t.test('a service that has none says so; the exit status is that of the verdict', async (t) => {
    await market.system.sql('delete from captures')
    const none = await withEvidence('none')
    t.match(none, {
      code: 0,
      stdout: /^supports/,
      stderr: /no_evidence: The service has no evidence .* is not written\./,
    })
    t.notOk(existsSync(path('none.wacz')))
    t.match(await withEvidence('none', '--json', '--expect', 'mixed'), { code: 1, stderr: /"code":"no_evidence"/ })
    t.equal(await settled(), before + 3)
  })
})
