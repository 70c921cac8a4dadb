// The account page in a browser: the key stays in the page, every section shows what the account has, actions ask before what cannot be
// undone, and each is an operation of the service.
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { VNode } from 'preact'
import { renderToStaticMarkup } from 'preact-render-to-string'
import t from 'tap'
import type { Watchdog } from '../../client/operations/watchdog.ts'
import type { AlertRecord, WebhookState } from '../../client/operations/webhook.ts'
import { Delivery } from '../../client/page/account/account-alerts.ts'
import { Trouble } from '../../client/page/account/account-webhooks.ts'
import { stateInWords } from '../../client/page/account/watchdog-words.ts'
import { type Html, html } from '../../client/page/html.ts'
import { noBrowser, overflow, picture, seriousFindings, sharedBrowser, shown, type Visit, visit } from '../browser.ts'
import { startSystem } from '../system.ts'

t.test('a watchdog says one thing in each state', async (t) => {
  const hourly: Watchdog = {
    name: 'hourly',
    interval_s: 3600,
    grace_s: 360,
    alert_after: 1,
    remind_every_s: null,
    state: 'new',
    due_at: '2026-11-20T10:55:00Z',
    last_heartbeat_at: null,
    beats: 0,
    recent_beats: [],
    note: null,
    down_since: null,
    paused_until: null,
    event_seq: 0,
    created_at: '2026-11-20T09:55:00Z',
    webhook_url: 'https://site.test/hook',
    webhook_state: 'active',
    server_now: '2026-11-20T10:00:00Z',
  }
  const heard = { last_heartbeat_at: '2026-11-20T09:55:00Z', beats: 1200 }
  const overdue = { due_at: '2026-11-20T09:50:00Z' }
  const down = { state: 'down', down_since: '2026-11-20T09:45:00Z' } as const
  const cases: readonly (readonly [Partial<Watchdog>, string])[] = [
    [{}, 'No heartbeat yet; the first is due within 55 min.'],
    [{ state: 'up', ...heard }, 'The last heartbeat came 5 min ago, 1,200 in all; the next is due within 55 min.'],
    [
      { state: 'late', ...heard, ...overdue },
      'A heartbeat was due 10 min ago; the last heartbeat came 5 min ago, 1,200 in all.',
    ],
    [{ state: 'late', ...overdue }, 'A heartbeat was due 10 min ago; none has come yet.'],
    [
      { ...down, ...overdue },
      'Down for 15 min: no heartbeat has ever come. The next heartbeat that says all is well ends it.',
    ],
    [
      { ...down, ...overdue, ...heard, recent_beats: ['in_time'] },
      'Down for 15 min: no heartbeat came in time, and the last heartbeat came 5 min ago, 1,200 in all. The next heartbeat that says all is well ends it.',
    ],
    [
      { ...down, ...heard, recent_beats: ['in_time', 'failed'] },
      'Down for 15 min: the job itself said 5 min ago that it failed. The next heartbeat that says all is well ends it.',
    ],
    [{ state: 'paused', due_at: null }, 'Paused: silence raises no alert; no heartbeat has come yet.'],
    [
      { state: 'paused', due_at: null, paused_until: '2026-11-20T12:30:00Z', ...heard },
      'Paused for another 3 h: silence raises no alert; the last heartbeat came 5 min ago, 1,200 in all.',
    ],
  ]
  for (const [known, words] of cases) t.equal(stateInWords({ ...hourly, ...known }), words)
})

t.test('an alert says what happened to it and what happens next', async (t) => {
  const [settled_at, next_attempt_at] = ['2026-11-20T10:00:05.000Z', '2026-11-20T10:04:00.000Z']
  const attempt = { attempt: 1, at: '2026-11-20T10:00:00.000Z', ms: 20, status: 500, error: 'refused' }
  const alert: AlertRecord = {
    id: 'msg_1',
    type: 'watchdog.test',
    event_seq: 1,
    serial: 7,
    state: 'pending',
    created_at: '2026-11-20T10:00:00.000Z',
    next_attempt_at: null,
    settled_at: null,
    body: '{}',
    attempts: [],
  }
  const failed = { attempts: [attempt, attempt, attempt] }
  const cases: readonly (readonly [Partial<AlertRecord>, string])[] = [
    [{ next_attempt_at }, 'It is being sent.'],
    [{}, 'It is sent after the alert before it, which is not delivered yet.'],
    [
      { next_attempt_at, attempts: [attempt] },
      'Your webhook did not accept it in 1 attempt so far. The next attempt is at 2026-11-20 10:04:00 UTC.',
    ],
    [{ state: 'delivered', settled_at }, 'Your webhook accepted it at 2026-11-20 10:00:05 UTC.'],
    [
      { state: 'failed', settled_at, ...failed },
      'Your webhook did not accept it in 3 attempts. There is no further attempt, unless you send it again.',
    ],
    [
      { state: 'failed', settled_at, next_attempt_at, ...failed },
      'Your webhook did not accept it in 3 attempts. It is sent once more, as you asked.',
    ],
    [
      { state: 'discarded', settled_at },
      'It was not delivered, because your webhook had asked for no more alerts. To get alerts again, set the webhook again.',
    ],
  ]
  for (const [known, words] of cases)
    t.equal(asText(html`<${Delivery} alert=${{ ...alert, ...known }} />`), words, JSON.stringify(known))
})

t.test('a webhook that takes no alert says what it answered', async (t) => {
  const at = '2026-11-20T10:00:00.000Z'
  const alert = (attempt: { status: number | null; error: string | null; at?: string }): AlertRecord => ({
    id: 'msg_1',
    type: 'watchdog.test',
    event_seq: 1,
    serial: 7,
    state: 'failed',
    created_at: at,
    next_attempt_at: null,
    settled_at: at,
    body: '{}',
    attempts: [{ attempt: 1, at, ms: 20, ...attempt }],
  })
  const cases: readonly (readonly [WebhookState, AlertRecord[], string])[] = [
    ['failing', [], 'The webhook did not accept an alert, which was then given up.'],
    [
      'failing',
      [alert({ status: 404, error: null }), alert({ status: 500, error: null, at: '2026-11-20T11:00:00.000Z' })],
      'The webhook answered 500 at 2026-11-20 11:00:00 UTC, and an alert was given up. An answer from 200 to 299 accepts one.',
    ],
    [
      'failing',
      [
        { ...alert({ status: 503, error: null, at: '2026-11-20T12:00:00.000Z' }), state: 'pending' },
        alert({ status: null, error: 'timeout' }),
      ],
      'The webhook could not be reached at 2026-11-20 10:00:00 UTC (timeout), and an alert was given up.',
    ],
    [
      'disabled',
      [alert({ status: 410, error: null })],
      'The webhook asked for no more alerts: it answered 410 at 2026-11-20 10:00:00 UTC. None is sent before it is saved again.',
    ],
  ]
  for (const [state, alerts, words] of cases)
    t.equal(asText(html`<${Trouble} state=${state} alerts=${alerts} />`), words)
})

/** What outlives the page, and its address. */
const keptIn = (page: Page) =>
  page.evaluate(async () => {
    const stores = [document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href]
    const others = [JSON.stringify(history.state), JSON.stringify(await indexedDB.databases()), await caches.keys()]
    return [...stores, ...others].join()
  })

const asText = (shown: Html) =>
  renderToStaticMarkup(shown as VNode)
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()

t.test('what cannot be undone is asked about first', async (t) => {
  const folder = join(import.meta.dirname, '../../client/page/account')
  const sources = await Promise.all(
    globSync('*.ts', { cwd: folder }).map((name) => readFile(join(folder, name), 'utf8')),
  )
  const acts = [...sources.join('\n').matchAll(/<\$\{Act\} label="([^"]+)"(.*?)\/>/gs)]
  const lasting = acts.filter(([, label = '']) => /^(Delete|End|New secret|Revoke)\b/.test(label))
  t.equal(lasting.length, 7)
  for (const [, label = '', props = ''] of lasting) t.match(props, / question=/, label)
})

t.test('the account page in a browser', { skip: noBrowser }, async (t) => {
  const system = await startSystem({ pages: { '/hook': { body: 'ok' } } })
  t.teardown(() => system[Symbol.asyncDispose]())
  const browser = await sharedBrowser()
  const { host } = new URL(system.service.address)
  const register = async (handle: string): Promise<string> => {
    const answer = await fetch(system.url('/v1/register'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ handle }),
    })
    return ((await answer.json()) as { api_key: string }).api_key
  }
  const key = await register('kelby')
  await system.sql(`update accounts set tier = 'dev', granted_tier = 'dev' where handle = 'kelby'`)
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(system.url(path), {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return answer.json()
  }
  const open = async ({ page }: Visit, given = key) => {
    await page.fill('#api-key', given)
    await page.getByRole('button', { name: 'Open the account' }).click()
  }
  const go = async ({ page }: Visit, name: string) => {
    await page.locator('.sections').getByRole('button', { name }).click()
    await page.waitForSelector(`h2:text-is("${name}")`)
    await page.waitForSelector('section:not(:has(p:text-is("Loading.")))')
  }

  await t.test('an empty account, a wrong key, no JavaScript', async (t) => {
    const other = await register('empty')
    await using opened = await visit(browser, system.url('/account'), { viewport: { width: 360, height: 740 } })
    const { page, complaints } = opened
    await open(opened, `${other.slice(0, -2)}xx`)
    await page.waitForSelector('.problem:not(:empty)')
    t.match(await shown(page, '.problem'), /valid API key/)
    complaints.length = 0
    await open(opened, other)
    await page.waitForSelector('.meters')
    t.match(await shown(page, '.meters'), /Active leases\s+0 of 1/)
    for (const name of ['Watchdogs', 'Leases', 'Citations', 'Receipts', 'Journal', 'API keys']) {
      await go(opened, name)
      if (name !== 'API keys') {
        t.match(await shown(page, 'main'), /will be here/, name)
        await page.waitForSelector('section p:has-text("; none is used")')
        t.match(await shown(page, 'section'), /The free tier has [\d,]+ [^;]+; none is used\./, `${name}: the limit`)
      }
      t.equal(await overflow(page), 0, name)
    }
    t.same(complaints, [])
    await page.reload()
    t.ok(await page.isVisible('#api-key'), 'a reload forgets the key')
    await using plain = await visit(browser, system.url('/account'), { javaScriptEnabled: false })
    t.match(await shown(plain.page, 'main'), /needs JavaScript[\s\S]*countersign account show/)
  })

  await t.test('from nothing: register, keep the key, a watchdog, its alert, an upgrade', async (t) => {
    const permissions = ['clipboard-read', 'clipboard-write']
    await using opened = await visit(browser, system.url('/account'), { permissions })
    const { page, complaints, requests } = opened
    await page.waitForSelector('#register')
    t.match(await shown(page, 'main'), /The free tier has 1 active lease, 1 watchdog[\s\S]*10 receipts a day/)
    t.same(await seriousFindings(page), [])
    await picture(page, 'account-doors-1440-light')
    const register = page.getByRole('button', { name: 'Make the account' })
    await page.fill('#handle', 'Not a handle')
    await register.click()
    t.match(await shown(page, '#handle-problem'), /1 to 64 of a-z/)
    await page.fill('#handle', 'kelby')
    await register.click()
    await page.waitForSelector('#handle-problem:has-text("taken")')
    complaints.length = 0
    await page.fill('#handle', 'newcomer')
    await register.click()
    await page.waitForSelector('#kept')
    const made = await shown(page, '.once pre')
    t.match(made, /^ctk_/)
    t.equal(await page.locator('#api-key').count(), 0, 'nothing else can be opened meanwhile')
    t.same(await seriousFindings(page), [])
    await picture(page, 'account-key-1440-light')
    await page.getByRole('button', { name: 'Go on to the account' }).click()
    t.match(await shown(page, '#kept-problem'), /Keep the API key of newcomer first/)
    await page.getByRole('button', { name: 'Copy it' }).click()
    await page.waitForSelector('[role=status]:text-is("Copied.")')
    t.equal(await page.evaluate(() => navigator.clipboard.readText()), made)
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save it as a file' }).click(),
    ])
    t.equal(file.suggestedFilename(), 'countersign-newcomer.key')
    t.equal(await readFile(await file.path(), 'utf8'), `${made}\n`)
    await page.click('#is-kept')
    await page.getByRole('button', { name: 'Go on to the account' }).click()
    await page.waitForSelector('.meters')

    await go(opened, 'Watchdogs')
    t.match(await shown(page, 'main'), /The free tier has 1 watchdog; none is used/)
    await picture(page, 'account-empty-1440-light')
    await page.click('text=Make or change a watchdog')
    await page.fill('#name', 'nightly')
    await page.fill('#webhook_url', system.site.url('/hook'))
    await page.getByRole('button', { name: 'Save it', exact: true }).click()
    await page.waitForSelector('.once pre:has-text("whsec_")')
    t.equal(await page.locator('.sections').count(), 0, 'nothing takes the place of the secret')
    await page.click('#is-kept')
    await page.getByRole('button', { name: 'Go on to watchdogs' }).click()
    await page.waitForSelector('text=There is no room for another one')
    t.match(await shown(page, 'main'), /There is no room for another one[\s\S]*The dev tier has 50, for 29 USD a month/)
    await system.sql(
      `update watchdogs set started_at = now() - interval '1 hour', check_at = now()
       where account_id = (select id from accounts where handle = 'newcomer')`,
    )
    await page.waitForSelector('.card h3 >> text=/^down$/', { timeout: 60_000 })
    await page.locator('.card summary', { hasText: 'Alerts of' }).click()
    await page.waitForSelector('.alert-record:has-text("watchdog.missed")')
    t.same(await seriousFindings(page), [])
    const receipt = await page.locator('.alert-record p a').first().getAttribute('href')
    await using proof = await visit(browser, new URL(receipt ?? '', system.service.address).href)
    t.match(await shown(proof.page, 'main'), /alert/i, 'the alert has a receipt with a page')

    await go(opened, 'Usage')
    await page.getByRole('button', { name: 'Subscribe to dev' }).click()
    const [checkout] = await Promise.all([
      page.context().waitForEvent('page'),
      page.getByRole('link', { name: /^Pay for dev: 29\S* USD a month, simulated$/ }).click(),
    ])
    await checkout.getByRole('button', { name: 'Pay (simulated)' }).click()
    await checkout.getByRole('heading', { name: 'Thank you' }).waitFor()
    await checkout.close()
    await page.getByRole('button', { name: 'Look again' }).click()
    await page.waitForSelector('.facts .tag:text-is("dev")')
    await go(opened, 'Watchdogs')
    t.match(await shown(page, 'main'), /The dev tier has 50 watchdogs; 1 is used/)
    t.notOk(requests.some((line) => line.includes('ctk_')))
    t.notMatch(await keptIn(page), 'ctk_', 'a key that is made here is in no store and no address')
    t.same(complaints, [])
    await page.setViewportSize({ width: 360, height: 740 })
    t.equal(await overflow(page), 0)
  })

  await t.test('what the account has, and what can be done with it', async (t) => {
    for (const name of ['nightly', 'hourly', 'paused-one'])
      await call('PUT', `/v1/watchdog/${name}`, { interval_s: 60, webhook_url: system.site.url('/hook') })
    await call('POST', '/v1/heartbeat/nightly')
    await call('POST', '/v1/watchdog/paused-one/pause', { paused: true })
    await system.sql(
      `update watchdogs set state = 'down', down_since = now() - interval '1 hour', check_at = null where name = 'hourly'`,
    )
    // In time, late, in time, after an outage was due, failed, in time.
    await system.sql(`update watchdogs set beats = 6, recent_beats = $1 where name = 'nightly'`, [0o121341])
    for (let n = 0; n < 60; n++)
      await call('POST', '/v1/receipt', { subject_sha256: String(n).padStart(64, '0'), label: `file ${n}` })

    await using opened = await visit(browser, system.url('/account'))
    const { page, requests, complaints, transferred } = opened
    await open(opened)
    await page.waitForSelector('.meters')
    t.match(await shown(page, '.meters'), /Receipts today\s+60 of 10,000/)
    t.ok(transferred() < 100_000, `${transferred()} bytes`)
    t.same(await seriousFindings(page), [])
    await picture(page, 'account-usage-1440-light')

    await go(opened, 'Watchdogs')
    t.match(await shown(page, '.figures'), /up\s+1\s+late\s+0\s+down\s+1\s+new\s+0\s+paused\s+1/)
    t.match(await page.locator('.card h3').allInnerTexts(), [/hourly down/, /nightly up/, /paused-one paused/])
    const card = (name: string) => shown(page, `.card:has(h3:has-text("${name}"))`)
    t.match(await card('hourly'), /Down for 60 min: no heartbeat has ever come\./)
    t.match(await card('nightly'), /The last heartbeat came \d+ s ago, 6 in all; the next is due within/)
    t.match(await card('paused-one'), /Paused: silence raises no alert/)
    const strip = page.locator('.card:has-text("nightly") .strip')
    t.equal(
      await strip.locator('desc').textContent(),
      'Of the last 6: 3 in time, 1 late, 1 after the time of the alert, 1 said that the job failed.',
    )
    t.equal(await strip.locator('rect').count(), 6)
    t.equal(await page.locator('.card:has-text("hourly") .strip').count(), 0, 'no beat, no strip')
    await page.getByRole('button', { name: 'Resume: paused-one' }).click()
    await page.waitForSelector('.card h3:has-text("paused-one") >> text=/^new$/')
    const figures = /up\s+1\s+late\s+0\s+down\s+1\s+new\s+1\s+paused\s+0/
    t.match(await shown(page, '.figures'), figures, 'one that never had a heartbeat is not up')
    // The list that is opened then is not read again.
    const tested = page.waitForResponse((answer) => answer.url().endsWith('/nightly/test'))
    await page.getByRole('button', { name: 'Send a test alert: nightly' }).click()
    await tested
    await page.locator('.card:has-text("nightly") summary', { hasText: 'Alerts of' }).click()
    await page.waitForSelector('.alert-record')
    t.match(
      await shown(page, '.alert-record'),
      /watchdog\.test[\s\S]*Made at [\d: -]+ UTC, with receipt \d+\. (It is being sent|Your webhook)/,
    )
    await page.locator('.alert-record summary').first().click()
    t.match(await shown(page, '.alert-record pre'), /"type": "watchdog\.test"/)
    const sent = page.waitForResponse((answer) => answer.url().endsWith('/redeliver'))
    await page.getByRole('button', { name: 'Send again: watchdog.test' }).click()
    t.equal((await sent).status(), 202)
    t.same(await seriousFindings(page), [])
    await picture(page, 'account-watchdogs-1440-light')
    await system.sql(
      `update webhooks set state = 'failing' where id = (select webhook_id from watchdogs where name = 'hourly')`,
    )
    const trouble = page.locator('.card:has(h3:has-text("hourly"))')
    await trouble.locator('.notice').waitFor()
    t.match(
      await shown(page, `.card:has(h3:has-text("hourly"))`),
      /webhook failing[\s\S]*Alerts do not arrive\. The webhook did not accept an alert/,
    )
    t.same(await seriousFindings(page), [])
    await trouble.getByLabel('Webhook of hourly').fill(system.site.url('/mended'))
    const mended = page.waitForResponse((answer) => answer.url().endsWith('/hourly/test'))
    await trouble.getByRole('button', { name: 'Save it and send a test alert' }).click()
    t.equal((await mended).status(), 200, 'it is tested at once')
    await trouble.locator('.notice').waitFor({ state: 'detached' })
    t.match(await call('GET', '/v1/watchdog/hourly'), {
      webhook_url: system.site.url('/mended'),
      webhook_state: 'active',
      interval_s: 60,
      state: 'down',
    })
    await page.getByRole('button', { name: 'Delete: paused-one' }).click()
    t.match(await shown(page, '.asking'), /^Delete: \S+\? .* are deleted/)
    await page.getByRole('button', { name: 'No', exact: true }).click()
    t.equal((await call('GET', '/v1/watchdog')).watchdogs.length, 3, 'nothing was done')
    await page.getByRole('button', { name: 'Delete: paused-one' }).click()
    await page.getByRole('button', { name: 'Yes, delete' }).click()
    await page.waitForSelector('.card:has-text("paused-one")', { state: 'detached' })
    t.equal((await call('GET', '/v1/watchdog')).watchdogs.length, 2)

    // It is to be renewed after half a minute.
    const { lease } = await call('POST', '/v1/lease', { agent: 'agent-7', action: 'pay', lim: 'usd<=20', ttl_s: 3600 })
    await go(opened, 'Leases')
    t.match(await shown(page, '.card'), /agent-7 active[\s\S]*pay, within usd<=20/)
    await page.getByRole('button', { name: 'Renew: agent-7' }).click()
    await page.getByRole('button', { name: 'Revoke: agent-7' }).click()
    await page.getByRole('button', { name: 'Yes, revoke' }).click()
    await page.waitForSelector('.empty:has-text("will be here")')
    const all = page.getByLabel('Expired and revoked ones too')
    const look = () => all.screenshot({ animations: 'disabled' })
    const empty = await look()
    await all.check()
    const { revoked_ms } = await call('GET', `/v1/lease/${lease.lease_id}`)
    const when = new Date(revoked_ms).toISOString().slice(0, 19).replace('T', ' ')
    await page.waitForSelector(`.card:has-text("Revoked ${when}")`)
    t.notOk(empty.equals(await look()), 'a ticked box differs from an empty one')
    await all.uncheck()
    t.equal((await call('GET', `/v1/lease/${lease.lease_id}`)).state, 'revoked')
    await page.click('text=Grant a lease')
    await page.fill('#agent', 'agent-8')
    await page.fill('#action', 'read')
    await page.getByRole('button', { name: 'Grant it' }).click()
    await page.waitForSelector('.card:has-text("agent-8")')

    await go(opened, 'Receipts')
    t.equal(await page.locator('tbody tr').count(), 50)
    await page.setViewportSize({ width: 360, height: 740 })
    const row = await page.locator('tbody tr').first().boundingBox()
    t.ok(row && row.height < 64, `a receipt takes two lines in a narrow window: ${row?.height} pixels`)
    t.equal(await overflow(page), 0)
    await picture(page, 'account-receipts-360-light', false)
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByRole('button', { name: 'Older' }).click()
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 10)
    await page.getByRole('button', { name: 'Newest' }).click()
    await page.click('text=Ask for a receipt')
    await page.getByRole('button', { name: 'Ask for it' }).click()
    await page.waitForSelector('text=Choose a file, or give its digest.')
    t.equal(await page.evaluate(() => document.activeElement?.id), 'file', 'the field that is to be filled in')
    t.equal(await page.getAttribute('#file', 'aria-invalid'), 'true')
    await page.fill('#subject_sha256', 'abc')
    t.equal(await page.locator('.entry .problem').count(), 0, 'it is not said of what was changed since')
    await page.getByRole('button', { name: 'Ask for it' }).click()
    await page.waitForSelector('text=This is no SHA-256')
    t.equal(await page.evaluate(() => document.activeElement?.id), 'subject_sha256')
    t.equal(await page.getAttribute('#file', 'aria-invalid'), null)
    const borderOf = (field: string) => page.locator(field).evaluate((one) => getComputedStyle(one).borderTopColor)
    t.not(await borderOf('#subject_sha256'), await borderOf('#label'), 'it is seen to be wrong')
    t.same(await seriousFindings(page), [])
    await page.setInputFiles('#file', { name: 'abc', mimeType: 'text/plain', buffer: Buffer.from('abc') })
    await page.getByRole('button', { name: 'Ask for it' }).click()
    // The digest of "abc", as FIPS 180 gives it.
    await page.waitForSelector('tbody tr:has-text("ba7816bf8f01cfea")')

    await go(opened, 'Journal')
    await page.click('text=Store a file in a slot')
    await page.fill('#slot', 'notes')
    await page.setInputFiles('#content', {
      name: 'n.bin',
      mimeType: 'application/octet-stream',
      buffer: Buffer.from([0, 1, 255]),
    })
    await page.getByRole('button', { name: 'Store it' }).click()
    await page.waitForSelector('tbody tr:has-text("notes")')
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as a file: notes' }).click(),
    ])
    t.equal(file.suggestedFilename(), 'notes')

    const stored = await call('GET', '/v1/journal')
    await page.fill('#slot', 'notes')
    await page.setInputFiles('#content', {
      name: 'o.bin',
      mimeType: 'application/octet-stream',
      buffer: Buffer.from([2]),
    })
    await page.getByRole('button', { name: 'Store it' }).click()
    t.match(await shown(page, '.asking'), /notes holds something\. Its bytes are replaced and lost/)
    await page.getByRole('button', { name: 'No', exact: true }).click()
    t.same(await call('GET', '/v1/journal'), stored, 'nothing was replaced')
    await page.getByRole('button', { name: 'Store it' }).click()
    const replaced = page.waitForResponse((answer) => answer.request().method() === 'PUT')
    await page.getByRole('button', { name: 'Yes, replace it' }).click()
    t.equal((await replaced).status(), 200)

    await go(opened, 'API keys')
    await page
      .locator('tbody tr:first-child')
      .getByRole('button', { name: /^End now/ })
      .click()
    t.match(
      await shown(page, '.asking'),
      /only key of this account that may do everything[\s\S]*Make another one first/,
    )
    await picture(page, 'account-last-key-1440-light')
    await page.getByRole('button', { name: 'No', exact: true }).click()
    await page
      .locator('tbody tr:first-child')
      .getByRole('button', { name: /^End in a day/ })
      .click()
    t.match(await shown(page, '.asking'), /stop working then\. It is the only key[\s\S]*Make another one before/)
    await page.getByRole('button', { name: 'No', exact: true }).click()
    await page.click('text=Make a key')
    await page.selectOption('#kind', 'heartbeat')
    await page.fill('#label', 'robot')
    await page.getByRole('button', { name: 'Make it' }).click()
    await page.waitForSelector('text=Save it now.')
    const newKey = await shown(page, '.code pre')
    t.match(newKey, /^ctk_/)
    t.equal(await page.locator('.sections').count(), 0, 'nothing takes the place of the key')
    t.same(await seriousFindings(page), [])
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save it as a file' }).click(),
    ])
    t.equal(saved.suggestedFilename(), 'countersign-robot.key')
    t.equal(await readFile(await saved.path(), 'utf8'), `${newKey}\n`)
    const goOn = page.getByRole('button', { name: 'Go on to API keys' })
    await goOn.click()
    t.match(await shown(page, '#kept-problem'), /Keep the new API key robot first/)
    await page.click('#is-kept')
    await goOn.click()
    t.equal(await page.locator('pre').count(), 0, 'it is shown once')
    await page.getByRole('button', { name: 'End now: robot' }).click()
    t.match(
      await shown(page, '.asking'),
      /^End now: robot\? Programs that use it stop working at once/,
      'a heartbeat key opens no account',
    )
    await page.getByRole('button', { name: 'No', exact: true }).click()
    await page.getByRole('button', { name: 'End in a day: robot' }).click()
    await page.getByRole('button', { name: 'Yes, end in a day' }).click()
    await page.waitForFunction(() =>
      /\d{4}-/.test(document.querySelector('tbody tr:last-child td:nth-last-child(2)')?.textContent ?? ''),
    )
    t.same(await seriousFindings(page), [])

    t.notMatch(await keptIn(page), 'ctk_', 'the key is in no store and no address')
    t.same(
      requests.filter((line) => /ctk_/.test(line)),
      [],
    )
    const calls = requests.filter((line) => !/ (blob|data):/.test(line))
    t.same(
      calls.filter((line) => new URL(line.slice(line.indexOf(' ') + 1)).host !== host),
      [],
    )
    t.same(complaints, [])
    await page.getByRole('button', { name: 'Forget the API key' }).click()
    t.ok(await page.isVisible('#api-key'))
  })

  await t.test('a section that is opened before the usage is read again has the limits of the tier', async (t) => {
    await using opened = await visit(browser, system.url('/account'))
    const { page } = opened
    let asked = 0
    // The first opens the account; the next are not answered.
    await page.route('**/v1/usage', (route) => (asked++ === 0 ? route.continue() : undefined))
    await open(opened)
    await go(opened, 'Watchdogs')
    t.match(await shown(page, 'main'), /The dev tier has 50 watchdogs/)
  })

  await t.test('a citation says what changed; narrow and dark', async (t) => {
    const [account] = await system.sql(`select id from accounts where handle = 'kelby'`)
    const digest = 'a'.repeat(64)
    const seen = {
      checked_at: '2026-11-20T10:00:00.000Z',
      content_sha256: digest,
      text_sha256: digest,
      start: 0,
      end: 10,
    }
    const nearest = {
      start: 0,
      end: 10,
      quote: 'The harbour was opened in 1875 by the county engineer.',
      quote_sha256: digest,
      similarity: 0.95,
    }
    const check = { ...seen, start: undefined, end: undefined, outcome: 'changed', nearest }
    await system.sql(
      `insert into webhooks (id, account_id, url) values ('00000000-0000-4000-8000-000000000001', $1, 'https://site.test/hook')`,
      [account?.id],
    )
    await system.sql(
      `insert into citation_watches (id, account_id, name, webhook_id, request_id, evidence_id, source_url, quote, every_hours, state, last_seen, last_check, check_at)
       values (gen_random_uuid(), $1, 'harbour', '00000000-0000-4000-8000-000000000001', gen_random_uuid(), 'e1', 'https://site.test/harbour',
               'The harbour was opened in 1874 by the county engineer.', 24, 'changed', $2, $3, now() + interval '1 day')`,
      [account?.id, JSON.stringify(seen), JSON.stringify(check)],
    )
    await using opened = await visit(browser, system.url('/account'), {
      viewport: { width: 360, height: 740 },
      colorScheme: 'dark',
    })
    const { page } = opened
    await open(opened)
    await page.waitForSelector('.meters')
    await picture(page, 'account-usage-360-dark')
    await go(opened, 'Citations')
    t.equal((await shown(page, 'blockquote.difference del')).trim(), '1874')
    t.equal((await shown(page, 'blockquote.difference ins')).trim(), '1875')
    t.match(
      await shown(page, '.card'),
      /It read otherwise on 2026-11-20 10:00:00 UTC\. Struck through is what stood there before,\s+underlined what stands there now:/,
    )
    const marks = await page.evaluate(() => {
      const names = ['good', 'bad', 'supports', 'contradicts'].flatMap((name) => [`--${name}`, `--${name}-bg`])
      const probe = document.body.appendChild(document.createElement('i'))
      const verdicts = names.map((name) => {
        probe.style.setProperty('color', `var(${name})`)
        return getComputedStyle(probe).color
      })
      probe.remove()
      return [...document.querySelectorAll('.difference :is(del, ins)')].map((mark) => {
        const { color, backgroundColor, textDecorationLine } = getComputedStyle(mark)
        return [verdicts.includes(color) || verdicts.includes(backgroundColor), textDecorationLine]
      })
    })
    const neutral = [
      [false, 'line-through'],
      [false, 'underline'],
    ]
    t.same(marks, [...neutral, ...neutral], 'lines, in no colour of a verdict')
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'account-citations-360-dark')
    await go(opened, 'Watchdogs')
    t.equal(await overflow(page), 0)
    t.same(await seriousFindings(page), [])
    await picture(page, 'account-watchdogs-360-dark')
  })
})
