// The operator's dashboard: sign-in, what it shows of a service in trouble, its actions with their log, and 10,000 requests.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { noBrowser, overflow, picture, seriousFindings, sharedBrowser, shown, type Visit, visit } from '../browser.ts'
import { payingFetch, startSystem } from '../system.ts'
import { until } from '../until.ts'

const TOKEN = 'a-token-for-the-operator'
const ROWS = 10_000

t.test('signing in to the dashboard', async (t) => {
  let skew = 0
  const system = await startSystem({ env: { OPERATOR_TOKEN: TOKEN }, overrides: { now: () => Date.now() + skew } })
  t.teardown(() => system[Symbol.asyncDispose]())
  const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    fetch(system.url(path), {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(fields).toString(),
    })
  const get = (path: string, cookie = '') => fetch(system.url(path), { redirect: 'manual', headers: { cookie } })

  const wrong = await post('/operator/sign-in', { token: `${TOKEN}x` })
  t.equal(wrong.status, 403)
  t.match(await wrong.text(), /That is not the token/)
  t.equal(wrong.headers.get('set-cookie'), null)
  t.equal(
    (await post('/operator/sign-in', { token: TOKEN }, { 'sec-fetch-site': 'cross-site' })).status,
    403,
    'another site cannot sign in',
  )
  t.equal((await post('/operator/sign-in', { token: TOKEN }, { 'content-type': 'text/plain' })).status, 415)

  const signed = await post('/operator/sign-in', { token: TOKEN })
  t.match(signed, { status: 303 })
  const given = signed.headers.get('set-cookie') ?? ''
  t.match(given, /; Max-Age=28800; Path=\/operator; HttpOnly; Secure; SameSite=Strict$/)
  t.notOk(given.includes(TOKEN))
  const cookie = given.split(';')[0] ?? ''
  const page = await get('/operator', cookie)
  t.equal(page.status, 200)
  t.match(Object.fromEntries(page.headers), {
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
    'content-security-policy': /form-action 'self'/,
  })
  t.equal(page.headers.get('access-control-allow-origin'), null, 'no other site may read it')
  const text = await page.text()
  t.match(
    text,
    /Plots of completed verifications, failed verifications, [\s\S]* will be here\./,
    'one sentence for the empty plots',
  )
  t.notMatch(text, /<figcaption>Completed verifications/)
  const formToken = /name="form_token" value="([\w-]+)"/.exec(text)?.[1] ?? ''

  const altered = cookie.replace(/=(\d)/, (_, digit) => `=${(Number(digit) + 1) % 10}`)
  for (const [name, other] of [
    ['an altered expiry', altered],
    ['an altered mac', `${cookie.slice(0, -2)}AA`],
    ['the token itself', `countersign_operator=${TOKEN}`],
    ['nothing', ''],
  ] as const) {
    t.match(await (await get('/operator', other)).text(), /Sign in/, name)
    for (const path of [
      '/operator/requests',
      '/operator/actions',
      `/operator/requests/${randomUUID()}`,
      '/operator/act?action=redrive_job&subject=1',
    ])
      t.equal((await get(path, other)).headers.get('location'), '/operator', `${path} with ${name}`)
    t.equal((await get('/operator/events', other)).status, 403)
  }
  const act = { action: 'redrive_job', subject: '1' }
  t.equal(
    (await post('/operator/act', { ...act, form_token: formToken })).headers.get('location'),
    '/operator',
    'no session',
  )
  t.equal((await post('/operator/act', act, { cookie })).status, 403, 'no form token')
  t.equal((await post('/operator/act', { ...act, form_token: 'x'.repeat(43) }, { cookie })).status, 403)
  t.equal(
    (await post('/operator/act', { ...act, form_token: formToken }, { cookie, 'sec-fetch-site': 'cross-site' })).status,
    403,
  )
  t.equal(
    (await post('/operator/act', { action: 'drop', subject: '1', form_token: formToken }, { cookie })).status,
    400,
  )
  t.match(await post('/operator/act', { ...act, form_token: formToken }, { cookie }), { status: 303 })
  t.match(await system.sql('select action, outcome from operator_actions order by action_id'), [
    { action: 'sign_in', outcome: 'signed_in' },
    { action: 'redrive_job', outcome: 'not_found' },
  ])
  t.match(
    await system.sql('select refused from operator_refusals'),
    [{ refused: '1' }],
    'counted, and not stored one by one',
  )
  t.match(await (await get('/operator/actions', cookie)).text(), /with a wrong token in the last seven days: 1,/)
  t.equal((await get('/operator/requests?after=nonsense', cookie)).status, 400)

  const other = (await post('/operator/sign-in', { token: TOKEN })).headers.get('set-cookie')?.split(';')[0] ?? ''
  await using second = await system.openTwin({}, { OPERATOR_TOKEN: TOKEN })
  const atTwin = (given: string) => fetch(new URL('/operator', second.address), { headers: { cookie: given } })
  t.match(await (await atTwin(other)).text(), /<h1>Now/)
  const stream = await fetch(system.url('/operator/events'), {
    headers: { cookie: other },
    signal: AbortSignal.timeout(30_000),
  })
  t.equal(stream.status, 200)
  const otherForm = /name="form_token" value="([\w-]+)"/.exec(await (await get('/operator', other)).text())?.[1] ?? ''
  t.equal((await post('/operator/sign-out', { form_token: formToken }, { cookie: other })).status, 403)
  t.match(await post('/operator/sign-out', { form_token: otherForm }, { cookie: other }), { status: 303 })
  t.match(await (await get('/operator', other)).text(), /Sign in/, 'a cookie that was kept is worth nothing')
  t.match(await (await atTwin(other)).text(), /Sign in/, 'in no process')
  t.equal((await get('/operator/events', other)).status, 403)
  t.equal(
    (await post('/operator/act', { ...act, form_token: otherForm }, { cookie: other })).headers.get('location'),
    '/operator',
  )
  t.match(await (await get('/operator', cookie)).text(), /<h1>Now/, 'another session goes on')
  // Something changes, so that there is an event.
  await system.sql('update processes set pid = pid + 1')
  t.notMatch(await stream.text(), 'event: changed', 'an open stream ends')

  const statuses = []
  for (let n = 0; n < 10; n++) statuses.push((await post('/operator/sign-in', { token: 'guess' })).status)
  t.equal(statuses.at(-1), 429, 'attempts are limited, also where no other limit is in force')

  skew = 8 * 3600 * 1000
  t.match(await (await get('/operator', cookie)).text(), /Sign in/, 'a session ends')
  t.notOk(JSON.stringify(system.logged).includes(TOKEN), 'the token is in no log')

  await using twin = await system.openTwin({}, { OPERATOR_TOKEN: 'another-operator-token' })
  skew = 0
  const elsewhere = await fetch(new URL('/operator', twin.address), { headers: { cookie } })
  t.match(await elsewhere.text(), /Sign in/, 'another token ends every session')
  await using closed = await system.openTwin({}, { OPERATOR_TOKEN: '' })
  const answer = await fetch(new URL('/operator', closed.address), { headers: { cookie } })
  t.equal(answer.status, 404)
  t.match(await answer.text(), /It is closed here\.[\s\S]*OPERATOR_TOKEN=/)
})

t.test('the dashboard in a browser', { skip: noBrowser }, async (t) => {
  const system = await startSystem({ env: { OPERATOR_TOKEN: TOKEN } })
  t.teardown(() => system[Symbol.asyncDispose]())
  const browser = await sharedBrowser()
  const { host } = new URL(system.service.address)
  const signIn = async ({ page }: Visit) => {
    await page.fill('#token', TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForSelector('h1:text-is("Now")')
  }
  /** A paid request without a job, like one whose worker died: a copy of one that was bought. */
  const order = async (like: string): Promise<string> => {
    const [row] = await system.sql(
      `insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at, payment, payment_sealed, accepted_at)
       select gen_random_uuid(), sha256(gen_random_uuid()::text::bytea), body_hash, 'accepted', body, quote_expires_at, payment, '\\x00', now()
       from verification_requests where id = $1 returning id`,
      [like],
    )
    return String(row?.id)
  }

  // Before the first page is asked for: the figures of the week are kept for half a minute.
  // The minutes that the service itself records would end the sums: its counters are below those of these rows.
  await system.sql(`create function leave_out() returns trigger language plpgsql as 'begin return null; end';
    create trigger leave_out before insert on minute_figures for each row
      when (new.minute > now() - interval '2 hours') execute function leave_out();
    delete from minute_figures`)
  const minute = Math.floor(Date.now() / 60_000) * 60_000
  const times = (count: number) => ({ buckets: { '0.1': count / 2, 1: count, '+Inf': count }, sum: count / 4, count })
  for (const [ago, count] of [
    [50, 40],
    [26, 90],
    [3, 160],
  ] as const)
    await system.sql(
      `insert into minute_figures (minute, well, queue_depth, oldest_seconds, counters, payments)
       values (to_timestamp($1 / 1000.0), true, $2, 1.5, $3, $4)`,
      [
        minute - ago * 3_600_000,
        count % 7,
        JSON.stringify({
          admitted: count,
          completed: { supports: count, mixed: count / 2 },
          failed: { source_timeout: count / 4 },
          stages: { observe: times(count), assess: times(count) },
          admission: times(count),
          result: times(count),
          alerts: { delivered: count },
          probes: { ready: count },
          model: { calls: { ok: count }, tokens: { input: count * 1000, output: count * 20 }, usd: count / 1000 },
        }),
        JSON.stringify([
          { outcome: 'settled', mode: 'offline', network: 'eip155:84532', count: 10, amount_atomic: '300000' },
        ]),
      ],
    )
  await system.sql(
    `insert into day_figures (day, first_minute, recorded, well) values (current_date - 3, now() - interval '3 days', 1, 1) on conflict do nothing`,
  )

  await t.test('an empty house, without JavaScript', async (t) => {
    await using opened = await visit(browser, system.url('/operator'), {
      viewport: { width: 360, height: 740 },
      javaScriptEnabled: false,
    })
    const { page } = opened
    await picture(page, 'operator-sign-in-360-light')
    await signIn(opened)
    // The first check of deadlines may still be to come, and what the page says may be a second old.
    const calm = await until(async () => {
      await page.reload()
      const said = await shown(page, 'main')
      return said.includes('Nothing needs you.') && said
    })
    t.match(calm, /Nothing needs you\.[\s\S]*Payments that are not resolved[\s\S]*There are none/)
    t.equal(await overflow(page), 0)
    await page.getByRole('link', { name: 'Requests' }).click()
    await page.getByText('No request matches').waitFor()
    t.match(await shown(page, 'main'), /No request matches/)
    await page.getByRole('link', { name: 'Actions' }).click()
    await page.getByText('signed in').first().waitFor()
    t.match(await shown(page, 'main'), /sign in\s+signed in/)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForSelector('#token', { state: 'visible' })
  })

  const key = 'a-purchase-that-is-done'
  const done = ((await (await system.ask({ key, fetch: payingFetch() })).json()) as { request_id: string }).request_id
  while ((await system.ask({ key, headers: { prefer: 'wait=20' } })).status !== 200);
  const stuck = await order(done)

  await t.test('now, the week, and it is live', async (t) => {
    await using opened = await visit(browser, system.url('/operator'))
    const { page, requests, complaints, transferred } = opened
    await signIn(opened)
    await page.waitForSelector('text=Live.')
    // The figures are read anew every few seconds, and may still be those of the empty house.
    await page.waitForFunction(() => /at work\s*1(?!\d)/.test(document.querySelector('.figures')?.textContent ?? ''))
    const week = await shown(page, '[data-live=week]')
    for (const words of [
      'Completed verifications',
      'supports',
      'Failed verifications',
      'Revenue in USDC',
      'Time to the result',
      'Tokens of the model',
      'Cost of the model in USD',
      'Last day',
      '0.0700 USD',
    ])
      t.ok(week.includes(words), words)
    t.equal(
      await page.locator('figure:has(#verdicts-title) .plot-bars.series-supports rect').count(),
      3,
      'a verdict has the colour that its card has',
    )
    t.same(await seriousFindings(page), [])
    await picture(page, 'operator-1440-light')
    t.ok(transferred() < 100_000, `${transferred()} bytes`)
    await order(done)
    await page.waitForFunction(() => document.querySelector('.figures dd')?.textContent === '2')
    t.pass('another request appears without a reload')
    t.same(
      requests.filter((line) => new URL(line.slice(line.indexOf(' ') + 1)).host !== host),
      [],
    )
    t.same(complaints, [])
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize({ width: 360, height: 740 })
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'operator-360-dark')
  })

  await t.test('what is listed as open is said at the top', async (t) => {
    await system.sql(
      `update verification_requests set state = 'settling', observation = '{}', assessment = '{}', settlement_intent = json_build_object('at', extract(epoch from now()))
       where id = $1`,
      [await order(done)],
    )
    await using opened = await visit(browser, system.url('/operator'), { javaScriptEnabled: false })
    await signIn(opened)
    // What the page says may be a second old.
    const now = await until(async () => {
      await opened.page.reload()
      const said = await shown(opened.page, '[data-live=now]')
      return said.includes('Nothing needs you') ? null : said
    })
    t.match(now, /Not everything is done\. Payments that are not resolved: 1\./)
  })

  await t.test('one request as a timeline; an action asks first and is logged', async (t) => {
    await using opened = await visit(browser, system.url('/operator'), { javaScriptEnabled: false })
    const { page } = opened
    await signIn(opened)
    await page.goto(system.url(`/operator/requests?q=${done.slice(0, 9)}`))
    await page.locator('tbody a').first().click()
    t.match(
      await shown(page, 'main'),
      /quoted[\s\S]*accepted[\s\S]*observed[\s\S]*settling[\s\S]*settled[\s\S]*completed/,
    )
    t.match(await shown(page, 'main'), new RegExp(`:${process.pid}\\b[\\s\\S]*settled[\\s\\S]*0\\.03`))
    t.match(await shown(page, 'main'), /nothing to repeat or cancel/)
    await picture(page, 'operator-request-1440-light')

    await page.goto(system.url(`/operator/requests/${stuck}`))
    await page.getByRole('link', { name: 'Cancel it…' }).click()
    t.match(await shown(page, 'main'), /Cancel this request\?[\s\S]*cannot be taken back/)
    await page.getByRole('link', { name: 'Leave it' }).click()
    t.match(await system.sql('select state from verification_requests where id = $1', [stuck]), [{ state: 'accepted' }])
    await page.getByRole('link', { name: 'Cancel it…' }).click()
    await page.getByRole('button', { name: 'Cancel it' }).click()
    t.match(await shown(page, 'main'), /cancel request: cancelled\.[\s\S]*cancel request/)
    t.match(await system.sql(`select state, error ->> 'code' code from verification_requests where id = $1`, [stuck]), [
      { state: 'failed', code: 'cancelled' },
    ])
    t.match(
      await system.sql(`select outcome from operator_actions where action = 'cancel_request' and subject = $1`, [
        stuck,
      ]),
      [{ outcome: 'cancelled' }],
    )
    await picture(page, 'operator-actions-1440-light')
    const question = (id: string) => page.goto(system.url(`/operator/act?action=cancel_request&subject=${id}`))
    await question(done)
    t.match(await shown(page, 'main'), /completed[\s\S]*nothing to repeat or cancel/, 'what is done stays done')
    t.equal(await page.getByRole('button', { name: 'Cancel it' }).count(), 0)

    // From here on the payment may be charged: no page offers what would change nothing.
    const charging = await order(done)
    const charge = () =>
      system.sql(
        `update verification_requests set state = 'settling', observation = '{}', assessment = '{}', settlement_intent = json_build_object('at', extract(epoch from now()))
         where id = $1`,
        [charging],
      )
    await question(charging)
    await charge()
    await page.getByRole('button', { name: 'Cancel it' }).click()
    t.match(await shown(page, '.notice'), /chargeable/, 'it began to settle while the question was open')
    await page.goto(system.url(`/operator/requests/${charging}`))
    t.match(
      await shown(page, 'main'),
      /Its payment may be charged already, so it cannot be cancelled\.\s+Give it a new job…/,
    )
    t.equal(await page.getByRole('link', { name: 'Cancel it…' }).count(), 0)
    await question(charging)
    t.match(await shown(page, 'main'), /settling[\s\S]*may be charged already[\s\S]*Back to the request/)
    t.equal(await page.getByRole('button', { name: 'Cancel it' }).count(), 0)
    t.equal((await question(randomUUID()))?.status(), 404)
  })

  await t.test('10,000 requests: pages, search, quick', async (t) => {
    await system.sql(
      `insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at, created_at, changed_at, error)
       select gen_random_uuid(), sha256(i::text::bytea), sha256(i::text::bytea), 'failed',
              json_build_object('source_url', 'https://host-' || i % 50 || '.test/page', 'claim', 'c'), now(),
              now() - i * interval '1 second', now() - i * interval '1 second',
              json_build_object('code', 'source_timeout', 'message', 'm', 'retryable', true)
       from generate_series(1, $1::int) i`,
      [ROWS],
    )
    await using opened = await visit(browser, system.url('/operator'), {
      viewport: { width: 360, height: 740 },
      colorScheme: 'dark',
    })
    const { page, complaints } = opened
    await signIn(opened)
    const late = AbortSignal.timeout(10_000)
    await page.goto(system.url('/operator/requests'))
    t.equal(await page.locator('tbody tr').count(), 50)
    const first = await page.locator('tbody th').first().textContent()
    await page.getByRole('link', { name: 'Older' }).click()
    await page.waitForURL(/after=/)
    t.not(await page.locator('tbody th').first().textContent(), first)
    t.notOk(late.aborted, 'two pages within ten seconds')
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'operator-requests-360-dark')
    await page.fill('#q', 'host-7.test')
    await page.selectOption('#state', 'failed')
    await page.getByRole('button', { name: 'Find' }).click()
    await page.waitForURL(/q=host-7/)
    t.same([...new Set(await page.locator('tbody tr td:nth-child(3)').allInnerTexts())], ['host-7.test'])
    t.same(complaints, [])
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.emulateMedia({ colorScheme: 'light' })
    await picture(page, 'operator-requests-1440-light')
  })
})
