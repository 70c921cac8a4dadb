// Alerts to chats: what Slack, Discord and Google Chat get is a message of the form that each of them takes.
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { bodyFor } from '../../server/alerts/chat.ts'
import { ALERT_TYPES } from '../../server/alerts/format.ts'
import { openAlertHarness } from './harness.ts'

const SLACK = 'https://hooks.slack.com/services/T0/B0/x'
const DISCORD = 'https://discord.com/api/webhooks/1/x'
const GOOGLE = 'https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=t'
const ACCOUNT = 'https://countersign.test/account'

const alertOf = (type: string, data: object) =>
  JSON.stringify({ type, timestamp: '2026-11-20T10:00:00.123456Z', data: { event_seq: 1, ...data }, receipt: {} })
const messageTo = (url: string, type: string, data: object, account?: string) =>
  JSON.parse(bodyFor(url, alertOf(type, data), account).toString())

t.test('a chat gets its own form, with the signatures of every alert; the history keeps the alert', async (t) => {
  const harness = await openAlertHarness(['hooks.slack.com', 'discord.com', 'chat.googleapis.com', 'hook.test'])
  t.teardown(() => harness[Symbol.asyncDispose]())
  const { receiver } = harness
  for (const [host, path, member] of [
    ['hooks.slack.com', '/services/T0/B0/x', 'text'],
    ['discord.com', '/api/webhooks/1/x', 'content'],
    ['chat.googleapis.com', '/v1/spaces/A/messages', 'text'],
  ] as const) {
    const hook = await harness.makeHook({ url: receiver.url(path, host) })
    await harness.raise(hook, 1, 'watchdog.test')
    await harness.deliver()
    const [item] = receiver.received.filter((one) => one.host === host)
    const message = new Webhook(hook.secret).verify(item!.body.toString(), item!.headers as Record<string, string>)
    t.match(message, { [member]: /^A test alert of the watchdog “nächtlich \u{1F6A2}”/u }, host)
    const [row] = await harness.alerts(hook)
    t.equal(row?.state, 'delivered')
    t.match(JSON.parse(row!.body), { type: 'watchdog.test', data: { event_seq: 1 }, receipt: {} }, 'the alert is kept')
  }
})

t.test('every other receiver gets the alert itself', (t) => {
  const alert = alertOf('watchdog.test', { watchdog: 'nightly' })
  for (const url of [
    'https://hook.test/',
    'https://hooks.slack.com.evil.test/services/x',
    'https://slack.com/services/x',
    'https://evil.test/https://discord.com/api/webhooks/1/x',
    'https://discord.com/channels/1',
    'https://mail.googleapis.com/v1/spaces/A/messages',
  ])
    t.equal(bodyFor(url, alert, ACCOUNT).toString(), alert, url)
  t.end()
})

t.test('Discord takes the form of Slack at its path for that', (t) => {
  t.same(Object.keys(messageTo(`${DISCORD}/slack`, 'watchdog.test', { watchdog: 'nightly' })), ['text'])
  t.end()
})

t.test('a sentence for each kind of alert', (t) => {
  const watchdog = { watchdog: 'nightly', interval_s: 86_400, last_heartbeat_at: '2026-11-19T09:00:00.5Z' }
  const citation = { citation: 'harbour', source_url: 'https://page.test/' }
  const said = (type: string, data: object) => messageTo(SLACK, type, data).text as string
  t.equal(
    said('watchdog.missed', { ...watchdog, reason: 'overdue' }),
    'Watchdog “nightly” is down: no heartbeat, the last was at 2026-11-19 09:00:00 UTC, one was expected every 1 d.',
  )
  t.equal(
    said('watchdog.missed', { ...watchdog, interval_s: 90, last_heartbeat_at: null, reason: 'overdue' }),
    'Watchdog “nightly” is down: no heartbeat, there was none yet, one was expected every 1 min 30 s.',
  )
  t.equal(
    said('watchdog.missed', { ...watchdog, reason: 'failed', coalesced: 2 }),
    'Watchdog “nightly” is down: a heartbeat reported a failure at 2026-11-20 10:00:00 UTC. ' +
      'It was down 3 times since the last alert.',
  )
  const down = { ...watchdog, down_ms: 7_385_400 }
  t.equal(said('watchdog.reminder', down), 'Watchdog “nightly” is still down, for 2 h 3 min.')
  t.equal(said('watchdog.recovered', { ...down, down_ms: 200 }), 'Watchdog “nightly” is up again, after 0 s.')
  t.equal(said('citation.changed', citation), 'The quote of “harbour” on https://page.test/ was changed.')
  t.match(said('citation.vanished', citation), /is not there any more, or the page cannot be read\.$/)
  t.match(said('citation.restored', citation), /is there again\.$/)
  t.equal(said('citation.test', citation), 'A test alert of the citation watch “harbour”. Nothing happened.')
  const sentences = ALERT_TYPES.map((type) => said(type, { ...down, ...citation }))
  t.equal(new Set(sentences).size, ALERT_TYPES.length - 1, 'only the two tests say the same here')
  for (const sentence of sentences) t.notMatch(sentence, /undefined|null|NaN/)
  t.equal(
    messageTo(SLACK, 'watchdog.reminder', { ...down, note: 'call Ada' }, ACCOUNT).text,
    `Watchdog “nightly” is still down, for 2 h 3 min.\nNote: call Ada\nAll alerts: ${ACCOUNT}`,
  )
  t.end()
})

t.test('a name or a note calls nobody and is no link', (t) => {
  const data = { watchdog: '<!channel> & @everyone <users/all>' }
  t.equal(
    messageTo(SLACK, 'watchdog.test', data).text,
    'A test alert of the watchdog “&lt;!channel&gt; &amp; @everyone &lt;users/all&gt;”. Nothing happened.',
  )
  t.same(messageTo(DISCORD, 'watchdog.test', data).allowed_mentions, { parse: [] })
  t.notMatch(messageTo(GOOGLE, 'watchdog.test', data).text, /[<>]/)
  const { content } = messageTo(DISCORD, 'watchdog.test', { ...data, note: '\u{1F6A2}'.repeat(3000) })
  t.ok(content.length <= 2000 && content.isWellFormed(), 'a message fits into Discord')
  t.end()
})
