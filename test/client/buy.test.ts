// `countersign buy` against the whole service with a model: verdict, quotes and exit status, the limits, the key of the first use, lying
// services, and that no kill at any point makes it pay twice.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { BARE_ENV } from '../children.ts'
import { type Answer, type Hook, openMarket } from './buy-harness.ts'
import { countersign } from './command-line.ts'
import { pubkeyHex } from './issuer.ts'

const market = await openMarket(t)
const { gateway, page, path, secret, settled } = market
const env = { COUNTERSIGN_SERVICE: gateway.baseUrl, COUNTERSIGN_WALLET: path('wallet.key') }
const plain: Hook = (_, forward) => forward()
t.beforeEach(() => {
  gateway.hook = plain
  gateway.received = []
})

const PIERS = 'The harbour has three piers.'
const buy = (claim: string, args: string[] = [], more: Parameters<typeof countersign>[1] = {}) =>
  countersign(['buy', page, claim, '--journal', path('journal'), '--yes', ...args], { env, ...more })
const json = (stdout: string) => JSON.parse(stdout)

t.test('verdict, quotes and receipt in words; shown again for nothing', async (t) => {
  const first = await buy(PIERS, ['--out', path('result.json')])
  t.equal(first.code, 0, first.stderr)
  t.match(first.stdout, /^supports: The page says so\n\nClaim: {3}The harbour has three piers\.\nPage: {4}https:/)
  t.match(first.stdout, /\n {2}supports: “.*three piers.*”\n {2}https:\S+#:~:text=/)
  t.match(
    first.stdout,
    /\nReceipt: serial \d+, offline mode: no money moved\nProved: {2}signed by key \d+, seen for the first time/,
  )
  t.match(first.stderr, /^One verification for 0\.03 USDC, paid to 0x\S+ on eip155:84532, from 0x/)
  t.match(first.stderr, /Waiting for the result/)
  t.equal(await settled(), 1)
  const again = await buy(PIERS)
  t.match(again, {
    code: 0,
    stdout: /bought before, nothing is paid now\nProved: {2}signed by key \d+, kept since the first use/,
  })
  t.notMatch(again.stderr, /paid to/)
  t.equal(await settled(), 1)
  const asJson = await buy(PIERS, ['--json'])
  const bytes = readFileSync(path('result.json'))
  t.same(Object.keys(json(asJson.stdout)), ['result', 'verified', 'cost_usd', 'receipt_serial'])
  t.same(json(asJson.stdout), {
    result: json(bytes.toString()),
    verified: true,
    cost_usd: '0.03',
    receipt_serial: json(bytes.toString()).receipt.attestation.serial,
  })
  const verified = await countersign(['verify', path('result.json'), '--keys', '-'], {
    env,
    input: JSON.stringify(await (await fetch(`${gateway.baseUrl}/v1/keys`)).json()),
  })
  t.equal(verified.code, 0, verified.stderr)
  t.match(await buy(PIERS, ['--again', '--json']), { code: 0 })
  t.equal(await settled(), 2)
  t.equal(statSync(path('journal')).mode & 0o777, 0o700)
})

t.test('exit status by verdict and --expect', async (t) => {
  t.match(await buy('The harbour was opened in 1901.'), {
    code: 1,
    stdout: /^contradicts: The page says otherwise/,
  })
  t.match(await buy('The harbour was opened in 1901.', ['--expect', 'contradicts']), { code: 0 })
  t.match(await buy('The harbour had a railway.'), { code: 1, stdout: /^insufficient_evidence/ })
  t.match(await buy(PIERS, ['--expect', 'mixed']), { code: 1 })
})

t.test('wrong usage buys nothing', async (t) => {
  const before = await settled()
  const none = { COUNTERSIGN_WALLET: path('wallet.key') }
  const cases: [args: string[], message: RegExp, own?: Record<string, string>][] = [
    [['buy', page], /It is: countersign buy URL CLAIM/],
    [['buy', 'http://example.org/', 'x', '--yes'], /not an https/],
    [['buy', page, ' ', '--yes'], /claim is missing/],
    [['buy', page, 'x', '--yes', '--expect', 'true'], /--expect true is none of supports/],
    [['buy', page, 'x', '--yes', '--max-price', '5 cents'], /--max-price 5 cents is not an amount/],
    [['buy', page, 'x', '--yes', '--budget-file', path('b')], /give --budget/],
    [['buy', page, 'x', '--yes', '--pin', '1:zz'], /--pin/],
    [['buy', page, 'x'], /Buy 1 verification\? Repeat with --yes/],
    [['buy', page, 'x', '--yes'], /Which service\?/, none],
  ]
  for (const [args, message, own = env] of cases) {
    const { code, stdout, stderr } = await countersign([...args, '--journal', path('journal')], { env: own })
    t.same([code, stdout], [2, ''], args.join(' '))
    t.match(stderr, message)
    t.notMatch(stderr, secret.slice(2))
  }
  const asked = await countersign(['buy', page, 'x', '--journal', path('journal')], { env, typed: 'n\n' })
  t.match(asked, { code: 2, stderr: /Nothing was done/ })
  t.equal(await settled(), before)
})

t.test('price and budget', async (t) => {
  const before = await settled()
  t.match(await buy('Three piers, it says.', ['--max-price', '0.02']), {
    code: 3,
    stderr: /costs 0\.03 USDC, more than/,
  })
  t.match(await buy('Three piers, it says.', ['--budget', '0.02']), { code: 3, stderr: /budget is reached/ })
  const file = ['--budget', '0.07', '--budget-file', path('money.jsonl')]
  t.match(await buy('Three piers are there.', file), { code: 0 })
  t.match(await buy('Its three piers stand.', file), { code: 0 })
  t.match(await buy('Three piers, it says.', file), { code: 3, stderr: /budget is reached/ })
  t.match(await buy('Its three piers stand.', file), { code: 0 }, 'what is bought is shown')
  t.equal(await settled(), before + 2)
})

t.test('a page that cannot be read is not charged, and can be bought later', async (t) => {
  const before = await settled()
  const missing = (args: string[]) =>
    countersign(['buy', market.system.site.url('/none'), 'x', '--journal', path('journal'), '--yes', ...args], { env })
  t.match(await missing(['--json']), { code: 4, stdout: '', stderr: /"error":\{"code":"\w+","message":".*charged/ })
  t.match(await missing([]), { code: 4 })
  t.equal(await settled(), before)
})

/** Of terms and of results. */
interface Body {
  accepts: [{ amount: string; payTo: string }]
  claim_support: string
}

/** The answer with another body, and with other terms in its header. */
function changed(answer: Answer, change: (body: Body) => void): Answer {
  const headers = new Headers(answer.headers)
  const terms = headers.get('payment-required')
  const edit = (text: string) => {
    const value = JSON.parse(text)
    change(value)
    return JSON.stringify(value)
  }
  if (terms)
    headers.set('payment-required', Buffer.from(edit(Buffer.from(terms, 'base64').toString())).toString('base64'))
  return { ...answer, headers, bytes: terms ? answer.bytes : Buffer.from(edit(answer.bytes.toString())) }
}

t.test('lying services', async (t) => {
  await t.test('another price than the published one: nothing is signed', async (t) => {
    const before = await settled()
    gateway.hook = async (_, forward) => {
      const answer = await forward()
      return answer.status === 402 ? changed(answer, (terms) => (terms.accepts[0].amount = '40000')) : answer
    }
    t.match(await buy('Three piers at a lie.'), {
      code: 4,
      stderr: /asks for 40000 atomic units and publishes a price of 30000/,
    })
    t.notOk(gateway.received.some(({ isPaid }) => isPaid))
    t.equal(await settled(), before)
  })

  await t.test('another recipient after the payment was agreed on: nothing is signed for it', async (t) => {
    const before = await settled()
    let asked = 0
    gateway.hook = async (request, forward) => {
      if (!request.isPaid) {
        const answer = await forward()
        if (answer.status === 402) asked++
        return answer
      }
      const bare = await fetch(`${gateway.baseUrl}/api/agent/v1/verify-source`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': 'cs_another-key-of-the-liar' },
        body: JSON.stringify({ source_url: page, claim: 'x' }),
      })
      const answer = { status: bare.status, headers: bare.headers, bytes: Buffer.from(await bare.arrayBuffer()) }
      return changed(answer, (terms) => (terms.accepts[0].payTo = `0x${'66'.repeat(20)}`))
    }
    const lied = await buy('Three piers, paid elsewhere.')
    t.match(lied, { code: 6, stderr: /asks for other terms/ })
    const payments = () => new Set(gateway.received.map(({ headers }) => headers['payment-signature']).filter(Boolean))
    t.equal(payments().size, 1)
    gateway.hook = plain
    t.match(await buy('Three piers, paid elsewhere.'), { code: 0 }, 'the same payment goes on')
    t.equal(payments().size, 1)
    t.equal(await settled(), before + 1)
    t.ok(asked > 0)
  })

  await t.test('a result that was changed, and one of another claim', async (t) => {
    const before = await settled()
    const lie = (change: (body: Body) => void) => {
      gateway.hook = async (_, forward) => {
        const answer = await forward()
        const isResult =
          answer.status === 200 && answer.bytes.includes('"claim_support"') && answer.bytes.includes('"receipt"')
        return isResult ? changed(answer, change) : answer
      }
    }
    lie((body) => (body.claim_support = 'contradicts'))
    const tampered = await buy('Three piers, in truth.', ['--json', '--expect', 'contradicts'])
    t.match(tampered, { code: 5, stderr: /not_verified/ })
    t.match(json(tampered.stdout), { verified: false })
    t.match(await buy('Three piers, in truth.'), { code: 5, stdout: /^This result does not verify\./ })
    const other = json(readFileSync(path('result.json'), 'utf8'))
    lie((body) => Object.assign(body, other))
    t.match(await buy('Three piers, in truth.'), { code: 5, stdout: /asked_claim: it is about another claim/ })
    gateway.hook = plain
    t.match(await buy('Three piers, in truth.'), { code: 0 }, 'the true result is fetched, not bought')
    t.equal(await settled(), before + 1)
  })

  await t.test('another key than that of the first use', async (t) => {
    const pin = `9:${pubkeyHex}`
    t.match(await buy(PIERS, ['--pin', pin]), { code: 5, stdout: /unknown key: it is signed by key \d+:/ })
    t.notMatch((await buy(PIERS, ['--pin', pin])).stdout, /Proved/)
  })
})

const CLI = join(import.meta.dirname, '../../client/cli.ts')

/** The command as a process, which the hook may kill. */
async function buyKilled(claim: string, hook: (kill: () => void) => Hook, args: string[]) {
  const child = spawn(process.execPath, [CLI, 'buy', page, claim, '--journal', path('killed'), '--yes', ...args], {
    env: { ...BARE_ENV, ...env },
  })
  gateway.hook = hook(() => child.kill('SIGKILL'))
  const [, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  gateway.hook = plain
  return { code, stderr }
}

function deadAfter(kill: () => void): Answer {
  kill()
  return { status: 500, headers: new Headers(), bytes: Buffer.from('') }
}

t.test('killed at any point and run again, it pays once', async (t) => {
  const isPost = ({ method }: { method: string }) => method === 'POST'
  const points: [name: string, hook: (kill: () => void) => Hook][] = [
    ['when it asks what is sold', (kill) => async () => deadAfter(kill)],
    ['when it asks for the terms', (kill) => async (one, forward) => (isPost(one) ? deadAfter(kill) : forward())],
    ['when it sends the payment', (kill) => async (one, forward) => (one.isPaid ? deadAfter(kill) : forward())],
    [
      'when the payment has arrived',
      (kill) => async (one, forward) => {
        const answer = await forward()
        if (one.isPaid) kill()
        return answer
      },
    ],
    [
      'when the result is on its way',
      (kill) => async (_, forward) => {
        const answer = await forward()
        if (answer.bytes.includes('"status":"completed"')) setImmediate(kill)
        return answer
      },
    ],
    [
      'when it reads the keys, before the result is kept',
      (kill) => async (one, forward) => (one.path === '/v1/keys' ? deadAfter(kill) : forward()),
    ],
  ]
  for (const [n, [name, hook]] of points.entries())
    await t.test(name, async (t) => {
      const [before, claim] = [await settled(), `Three piers, for the ${n + 1}th time.`]
      const args = ['--budget', '9.00', '--budget-file', path('killed.jsonl')]
      const file = () => readFileSync(path('killed.jsonl'), 'utf8').trim().split('\n').map(json)
      // The keys are read at the first use of a folder only.
      const own = name.includes('keys') ? ['--journal', path('fresh')] : []
      t.equal((await buyKilled(claim, hook, [...args, ...own])).code, null, 'it was killed')
      const run = (...more: string[]) => buy(claim, ['--journal', path('killed'), ...args, ...own, ...more])
      const next = await run('--again', '--json')
      t.equal(next.code, 0, next.stderr)
      t.match(json(next.stdout), { verified: true, cost_usd: '0.03' })
      t.match(await run(), { code: 0 })
      t.equal(await settled(), before + 1)
      const spent = new Map(file().map(({ payment, atoms }) => [payment, Number(atoms)]))
      t.equal(
        [...spent.values()].reduce((sum, atoms) => sum + atoms, 0),
        30_000 * (n + 1),
        'and counts once',
      )
    })
})

t.test('two at the same time pay once', async (t) => {
  const before = await settled()
  const both = await Promise.all([buy('Three piers, said twice.'), buy('Three piers, said twice.')])
  t.same(
    both.map(({ code }) => code),
    [0, 0],
  )
  t.equal(await settled(), before + 1)
})

t.test('a signal leaves the purchase, and the same command goes on', async (t) => {
  const before = await settled()
  const arrived = Promise.withResolvers<void>()
  const child = spawn(
    process.execPath,
    [CLI, 'buy', page, 'Three piers, waited for.', '--journal', path('left'), '--yes'],
    {
      env: { ...BARE_ENV, ...env },
    },
  )
  gateway.hook = async (one, forward) => {
    if (!one.isPaid) return forward()
    await forward()
    arrived.resolve()
    return new Promise(() => {})
  }
  const ended = once(child, 'close')
  await arrived.promise
  const asked = performance.now()
  child.kill('SIGTERM')
  const [code] = await ended
  t.equal(code, 130)
  t.ok(performance.now() - asked < 5000)
  gateway.hook = plain
  t.match(await buy('Three piers, waited for.', ['--journal', path('left')]), { code: 0 })
  t.equal(await settled(), before + 1)
})

t.test('a service that is away: 4 before a payment, 6 after one', async (t) => {
  gateway.hook = async () => {
    throw new Error('away')
  }
  t.match(await buy('Three piers, in silence.'), { code: 4, stderr: /Nothing was charged/ })
})

t.test('several claims on one page are one purchase', async (t) => {
  const claims = [
    'The harbour has three piers in all.',
    'Ships first came in 1901.',
    'A lighthouse and three piers stand.',
  ]
  const many = (args: string[], more: Parameters<typeof countersign>[1] = {}) =>
    countersign(['buy', page, ...claims, '--journal', path('many'), '--yes', ...args], { env, ...more })
  const before = await settled()

  await t.test('price, words and JSON, and every verdict must be the expected one', async (t) => {
    t.match(await many(['--max-price', '0.04']), { code: 3, stderr: /costs 0\.05 USDC, more than --max-price 0\.04/ })
    t.match(await many(['--budget', '0.04']), { code: 3, stderr: /budget is reached/ })
    const bought = await many(['--out', path('many.json'), '--context', 'The harbour of Kelby'])
    t.equal(bought.code, 1, bought.stderr)
    t.match(
      bought.stderr,
      /^3 claims in one purchase for 0\.05 USDC \(0\.03, and 0\.01 for each further claim\), paid to 0x/,
    )
    t.match(bought.stdout, /^3 claims: 2 supports, 1 contradicts\n\nPage: {4}https:/)
    t.match(
      bought.stdout,
      /\nContext: The harbour of Kelby\n\n1\. supports: The page says so\nClaim: {3}The harbour has/,
    )
    t.match(bought.stdout, /\n\n2\. contradicts: The page says otherwise\nClaim: {3}Ships first came in 1901\.\n/)
    t.match(bought.stdout, /\n {2}contradicts: “.*opened in 1874.*”\n {2}https:\S+#:~:text=/)
    t.match(bought.stdout, /\nReceipt: serial \d+, offline mode: no money moved\nProved: {2}signed by key/)
    t.equal(await settled(), before + 1)
    const result = json(readFileSync(path('many.json'), 'utf8'))
    t.match(result, { verification_type: 'source_claims', payment: { amount_atomic: '50000' } })
    const asJson = await many(['--json', '--context', 'The harbour of Kelby'])
    t.same(json(asJson.stdout), {
      result,
      verified: true,
      cost_usd: '0.05',
      receipt_serial: result.receipt.attestation.serial,
    })
    t.equal(await settled(), before + 1, 'shown again for nothing')
    const expected = (verdict: string, ...some: string[]) =>
      countersign(['buy', page, ...some, '--journal', path('many'), '--yes', '--expect', verdict], { env })
    const two = [claims[0], claims[2]] as string[]
    t.match(await expected('supports', ...two), { code: 0, stdout: /^2 claims: 2 supports\n/ })
    t.match(await expected('contradicts', ...two), { code: 1 })
    t.equal(await settled(), before + 2)
  })

  await t.test('wrong usage buys nothing', async (t) => {
    const paid = await settled()
    const eleven = Array.from({ length: 11 }, (_, n) => `Pier ${n} stands.`)
    const cases: [claims: string[], message: RegExp, args?: string[]][] = [
      [eleven, /there are 11 claims, and one purchase has at most 10/],
      [['Piers stand.', 'Ships come.', 'Piers stand.'], /claim 3 is claim 1 again/],
      [['Piers stand.', ' '], /claim 2: claim is missing/],
      [['Piers stand.'], /context is empty/, ['--context', ' ']],
      [['Piers stand.'], /context is longer than 1000/, ['--context', 'x'.repeat(1001)]],
    ]
    for (const [claims, message, args = []] of cases) {
      const { code, stdout, stderr } = await countersign(
        ['buy', page, ...claims, '--journal', path('many'), '--yes', ...args],
        { env },
      )
      t.same([code, stdout], [2, ''], String(message))
      t.match(stderr, message)
    }
    t.equal(await settled(), paid)
  })

  await t.test('killed with the payment sent, and run again: one payment', async (t) => {
    const paid = await settled()
    const args = ['--max-price', '0.12', '--budget', '1', '--budget-file', path('many-money.jsonl')]
    const child = spawn(
      process.execPath,
      [CLI, 'buy', page, ...claims, '--journal', path('many-killed'), '--yes', ...args],
      { env: { ...BARE_ENV, ...env } },
    )
    gateway.hook = async (one, forward) => {
      if (!one.isPaid) return forward()
      await forward()
      return deadAfter(() => child.kill('SIGKILL'))
    }
    const [code] = await once(child, 'close')
    t.equal(code, null, 'it was killed')
    gateway.hook = plain
    t.match(await many(['--journal', path('many-killed'), ...args]), { code: 1, stdout: /^3 claims: 2 supports/ })
    t.equal(await settled(), paid + 1)
    const spent = readFileSync(path('many-money.jsonl'), 'utf8').trim().split('\n').map(json)
    t.match(spent, [{ atoms: '50000' }])
    const paths = gateway.received.filter(({ isPaid }) => isPaid).map((one) => one.path)
    t.same([...new Set(paths)], ['/api/agent/v1/verify-claims'])
  })

  await t.test('a result of other claims is no answer', async (t) => {
    const other = json(readFileSync(path('many.json'), 'utf8'))
    gateway.hook = async (_, forward) => {
      const answer = await forward()
      const isResult = answer.status === 200 && answer.bytes.includes('"source_claims"')
      return isResult ? { ...answer, bytes: Buffer.from(JSON.stringify(other)) } : answer
    }
    const own = ['The three piers are old.', 'Its three piers are long.', 'Three piers, all in all.']
    const lied = await countersign(['buy', page, ...own, '--journal', path('many-lied'), '--yes'], { env })
    t.equal(lied.code, 6, 'not what was asked for, so no result')
    gateway.hook = plain
    const { code } = await countersign(['buy', page, ...own, '--journal', path('many-lied'), '--yes'], { env })
    t.equal(code, 0)
    gateway.hook = async (_, forward) => {
      const answer = await forward()
      const isResult = answer.status === 200 && answer.bytes.includes('"source_claims"')
      if (!isResult) return answer
      return {
        ...answer,
        bytes: Buffer.from(answer.bytes.toString().replace('"stance":"supports"', '"stance":"mentions"')),
      }
    }
    const changed = await countersign(['buy', page, ...own, '--journal', path('many-changed'), '--yes'], { env })
    t.match(changed, { code: 5, stdout: /^This result does not verify\..*\n.*result_sha256/ })
  })
})
