// What a chat is sent. Slack, Discord and Google Chat take messages of their own form only, so an alert to one of them is a
// sentence for people. It is signed like every alert, and the alert itself stays in the history, where it can be checked.

/** Makes the message of a chat from a text. */
type Form = (text: string) => unknown

/** What is read of an alert's body. Each kind of alert has some of the members. */
interface Reported {
  type: string
  timestamp: string
  data: {
    watchdog?: string
    reason?: string
    last_heartbeat_at?: string | null
    interval_s?: number
    down_ms?: number
    coalesced?: number
    note?: string | null
    citation?: string
    source_url?: string
  }
}

/**
 * The bytes to post for an alert: its own body, or a message that the chat at this address shows.
 * @param url where the alert is sent
 * @param body the alert's JSON, as it is stored
 * @param account the page where the account's alerts are; undefined where the service has no address of its own
 */
export function bodyFor(url: string, body: string, account?: string): Buffer {
  const form = formOf(new URL(url))
  return Buffer.from(form ? JSON.stringify(form(textOf(JSON.parse(body) as Reported, account))) : body)
}

/** By the hosts that take nothing but chat messages; undefined for every other receiver. */
function formOf({ hostname, pathname }: URL): Form | undefined {
  if (hostname === 'hooks.slack.com' || hostname === 'hooks.slack-gov.com') return slack
  if (hostname === 'chat.googleapis.com') return google
  if (!DISCORD.has(hostname) || !pathname.startsWith('/api/')) return undefined
  // Discord takes messages of Slack's form at this path.
  return pathname.endsWith('/slack') ? slack : discord
}

const DISCORD: ReadonlySet<string> = new Set(['discord.com', 'discordapp.com', 'canary.discord.com', 'ptb.discord.com'])

/** In Slack these three characters begin links and mentions of everyone. */
const slack: Form = (text) => ({
  text: text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
})
const discord: Form = (text) => ({ content: text, allowed_mentions: { parse: [] } })
/** `<users/all>` would call everyone, and there is no way to escape it. */
const google: Form = (text) => ({ text: text.replaceAll('<', '‹').replaceAll('>', '›') })

/** At most LONGEST characters, which fits into a message of every chat. */
function textOf(alert: Reported, account: string | undefined): string {
  const { note } = alert.data
  const lines = [sentenceOf(alert), note && `Note: ${note}`, account && `All alerts: ${account}`]
  return lines.filter(Boolean).join('\n').slice(0, LONGEST).toWellFormed()
}

/** Discord takes 2,000 characters. */
const LONGEST = 1900

function sentenceOf({ type, timestamp, data }: Reported): string {
  const watchdog = `Watchdog “${data.watchdog}”`
  const quote = `The quote of “${data.citation}” on ${data.source_url}`
  switch (type) {
    case 'watchdog.missed': {
      const others = data.coalesced ? ` It was down ${data.coalesced + 1} times since the last alert.` : ''
      if (data.reason === 'failed')
        return `${watchdog} is down: a heartbeat reported a failure at ${utc(timestamp)}.${others}`
      const last = data.last_heartbeat_at ? `the last was at ${utc(data.last_heartbeat_at)}` : 'there was none yet'
      const expected = inWords((data.interval_s ?? 0) * 1000)
      return `${watchdog} is down: no heartbeat, ${last}, one was expected every ${expected}.${others}`
    }
    case 'watchdog.reminder':
      return `${watchdog} is still down, for ${inWords(data.down_ms ?? 0)}.`
    case 'watchdog.recovered':
      return `${watchdog} is up again, after ${inWords(data.down_ms ?? 0)}.`
    case 'citation.changed':
      return `${quote} was changed.`
    case 'citation.vanished':
      return `${quote} is not there any more, or the page cannot be read.`
    case 'citation.restored':
      return `${quote} is there again.`
    default:
      return `A test alert of the ${data.citation === undefined ? `watchdog “${data.watchdog}”` : `citation watch “${data.citation}”`}. Nothing happened.`
  }
}

/** To the second: what an alert says has microseconds. */
const utc = (iso: string) => `${iso.slice(0, 19).replace('T', ' ')} UTC`

/** The two largest units of a time, e.g. `2 h 5 min`. */
function inWords(ms: number): string {
  let left = Math.round(ms / 1000)
  const parts = UNITS.flatMap(([name, length]) => {
    const count = Math.floor(left / length)
    left -= count * length
    return count > 0 ? [`${count} ${name}`] : []
  })
  return parts.slice(0, 2).join(' ') || '0 s'
}

const UNITS: readonly [name: string, seconds: number][] = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
]
