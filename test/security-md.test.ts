// SECURITY.md agrees with the code: the numbers of its limits are those of the code, and the places that it names exist.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  ADDRESS_LIMITS,
  CALLER_LIMITS,
  PUBLIC_LIMITS,
  LIMITS as TIER_LIMITS,
  TIERS,
  type TierLimits,
} from '../server/accounts/tiers.ts'
import { KEEP_DAYS } from '../server/alerts/outbox.ts'
import { TIMEOUT_MS } from '../server/alerts/post.ts'
import { GIVE_UP_SECONDS, MAX_RETRY_AFTER_SECONDS, SCHEDULE_SECONDS } from '../server/alerts/schedule.ts'
import { OVERLAP_HOURS } from '../server/alerts/webhooks.ts'
import { GRACE_MS } from '../server/billing/entitlement.ts'
import { TOLERANCE_SECONDS } from '../server/billing/stripe.ts'
import { MAX_FAILURES } from '../server/citations/check.ts'
import { MAX_EVERY_HOURS, MIN_EVERY_HOURS } from '../server/citations/watch.ts'
import { readConfig, variables } from '../server/config.ts'
import { ORPHAN_SECONDS } from '../server/evidence/pruning.ts'
import { LIMITS, MAX_QUOTE_CHARS, MAX_SLOT_BYTES } from '../server/interface/limits.ts'
import { MAX_TTL_S, RECHECK_MS } from '../server/leases/terms.ts'
import { UNCHARGED_DAYS } from '../server/payments/ledger.ts'
import { MAX_TIMEOUT_SECONDS } from '../server/payments/x402.ts'
import { MAX_QUOTES, KEEP_SECONDS as QUOTE_CHECK_KEEP_SECONDS } from '../server/quotes/quote-check.ts'
import { BEAT_SECONDS, STALE_SECONDS } from '../workers/beat.ts'
import { KEEP_SECONDS } from '../workers/retrieval/cache.ts'
import { MAX_PAUSE_SECONDS } from '../workers/retrieval/origin-wait.ts'
import { matchingSteps, readingSteps } from '../workers/text/budget.ts'
import { LARGE_BYTES } from '../workers/text/page/length.ts'
import { maxAttributes, maxAttributesOfPage, maxDepth, maxNodes } from '../workers/text/page/markup.ts'

const root = join(import.meta.dirname, '..')
const page = readFileSync(join(root, 'SECURITY.md'), 'utf8')

/** A row of a table of limits. `toVerify` marks a limit that is not in the code yet. */
interface Row {
  limit: string
  number: string
  place: string
  toVerify: boolean
}

function readRows(): Row[] {
  const tables = page.matchAll(/^\| limit \| number \| set in \|\n\| --- \| --- \| --- \|\n((?:\|.*\n)+)/gm)
  return [...tables].flatMap(([, body = '']) =>
    body
      .trimEnd()
      .split('\n')
      .map((line) => {
        const [limit = '', number = '', place = ''] = line
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim())
        return { limit, number, place, toVerify: line.includes('<!-- verify -->') }
      }),
  )
}

const rows = readRows()
const config = readConfig({ PAYMENT_MODE: 'offline' })
const live = readConfig({
  PAYMENT_MODE: 'testnet',
  PAY_TO_EVM: `0x${'ab'.repeat(20)}`,
  SIGNING_SEED: 'ab'.repeat(32),
  BASE_URL: 'https://service.example',
})

const byTier = (limit: keyof TierLimits) => TIERS.map((tier) => TIER_LIMITS[tier][limit])

/** The numbers of each limit, in the order of its row. Every exported limit belongs here. */
const numbers: Record<string, readonly number[]> = {
  'Calls of one address in a minute': [live.rateLimitPerMinute],
  'Lifetime of an unpaid quote': [config.quoteTtlSeconds],
  'Time a result is kept': [config.resultRetentionSeconds],
  'Time a captured page is kept (`SOURCE_CAPTURE=on`), unless `CAPTURE_RETENTION_SECONDS` is shorter': [
    config.resultRetentionSeconds,
  ],
  'Time a captured page without a result is kept': [ORPHAN_SECONDS],
  'Captured pages, compressed and sealed, in all': [config.capture.maxBytes],
  'Time a payment that charged nothing is kept, with its request': [UNCHARGED_DAYS],
  'Characters of a claim': [LIMITS.claimChars],
  'Active leases': byTier('active_leases'),
  'Receipts a day': byTier('receipts_per_day'),
  'Verifications in flight, per payer': [config.maxInFlightPerPayer, PUBLIC_LIMITS.most_in_flight_per_payer],
  'Verifications in flight, per address': [PUBLIC_LIMITS.in_flight_per_address],
  'Verifications in flight, per registrable domain of the source': [PUBLIC_LIMITS.in_flight_per_domain],
  'Open quotes per address': [PUBLIC_LIMITS.open_quotes_per_address],
  'Lease acts a day': byTier('lease_acts_per_day'),
  'Heartbeats a minute': byTier('heartbeats_per_minute'),
  'Other calls of an account in a minute': byTier('calls_per_minute'),
  'Alerts a day of `fail` heartbeats, tests and reminders': byTier('watchdog_alerts_per_day'),
  'API keys of an account': [TIER_LIMITS.free.api_keys],
  'Checkouts of an account in an hour': [TIER_LIMITS.free.checkouts_per_hour],
  'Registrations per address in a day': [CALLER_LIMITS.registrations_per_day],
  'Waiting calls per account, or else per address': [CALLER_LIMITS.waiting_calls],
  'Waiting calls per process': [CALLER_LIMITS.waiting_calls_per_process],
  'Pause that an origin can ask for': [MAX_PAUSE_SECONDS],
  'Slow fetches and settlements of one worker process, beside those that hold a place': [config.workerFetches],
  'Pages of quote checks a day': byTier('quote_check_pages_per_day'),
  'Pages of quote checks without an account, per address and per IPv6 /48 in a day': [
    ADDRESS_LIMITS.quote_check_pages_per_day,
    ADDRESS_LIMITS.quote_check_pages_per_network_per_day,
  ],
  'The same of all callers in a day, a quarter of them kept for networks with at most two': [
    ADDRESS_LIMITS.all_quote_check_pages_per_day,
  ],
  'Reports checked as tasks, per address and per IPv6 /48 in a day': [
    ADDRESS_LIMITS.reports,
    ADDRESS_LIMITS.reports_per_network,
  ],
  'Reports and results that are being read, per address and per IPv6 /48 in a process': [
    ADDRESS_LIMITS.readings_in_flight,
    ADDRESS_LIMITS.readings_in_flight_per_network,
  ],
  'The same of all callers that are kept, a quarter of them for networks with at most two': [
    ADDRESS_LIMITS.all_reports,
  ],
  'Quote checks in flight': byTier('quote_checks_in_flight'),
  'Quotes of one check': [MAX_QUOTES],
  'Characters of a quote to be checked': [MAX_QUOTE_CHARS],
  'Time the answer to a quote check is kept': [QUOTE_CHECK_KEEP_SECONDS],
  Watchdogs: byTier('watchdogs'),
  'Citation watches': byTier('citation_watches'),
  'Journal slots': byTier('journal_slots'),
  'Bytes of a journal slot': [MAX_SLOT_BYTES],
  'Longest life of a lease': [MAX_TTL_S],
  'Time until a revoked lease authorizes nothing': [RECHECK_MS / 1000],
  'Age of a signature': [TOLERANCE_SECONDS],
  'Time a tier lasts while Stripe retries a payment': [GRACE_MS / 86_400_000],
  'Characters of a URL': [LIMITS.urlChars],
  Redirects: [LIMITS.redirects],
  'Headers of a response': [LIMITS.headerBytes],
  'Body of a response on the wire': [LIMITS.wireBytes],
  'Body of a response when decoded': [LIMITS.decodedBytes],
  'Silence of a source': [LIMITS.socketTimeoutSeconds],
  'Time for one source, redirects included': [LIMITS.timeoutSeconds],
  'Characters of text that are kept': [LIMITS.textChars],
  'Depth of the markup': [maxDepth],
  'Nodes of the markup': [maxNodes],
  'Size of a page, after content decoding, beyond which it counts as slow at once': [LARGE_BYTES],
  'Attributes of one element': [maxAttributes],
  'Attributes of all elements of a page': [maxAttributesOfPage],
  'Steps for reading the style sheets inside a page; beyond them rules are passed over, and the result says so': [
    readingSteps,
  ],
  "Steps for finding the rules of a page's elements; beyond them rules are passed over, and the result says so": [
    matchingSteps,
  ],
  'Age of a cached page': [KEEP_SECONDS],
  'Time between two looks of a citation watch': [MIN_EVERY_HOURS, MAX_EVERY_HOURS],
  'Unreadable looks until a citation counts as vanished': [MAX_FAILURES],
  'Time of one attempt': [TIMEOUT_MS / 1000],
  'Attempts at one alert': [SCHEDULE_SECONDS.length],
  'Age at which an alert is given up': [GIVE_UP_SECONDS],
  'Pause that a receiver can ask for': [MAX_RETRY_AFTER_SECONDS],
  'Time alerts and their attempts are kept': [KEEP_DAYS],
  'Time old secrets sign beside a new one': [OVERLAP_HOURS],
  'Validity of a payment that is asked for': [MAX_TIMEOUT_SECONDS],
  'Questions under way of one worker process': [config.assessment.concurrency],
  'Wait for one answer': [config.assessment.timeoutMs / 1000],
  'Tokens of page text in one question': [config.assessment.windowTokens],
  'Tokens of one answer': [Number(variables.ANTHROPIC_MAX_TOKENS.default)],
  'Evidence of one claim': [LIMITS.evidenceItems],
  'Characters of one quote': [LIMITS.quoteChars],
  'Characters of the explanation': [LIMITS.explanationChars],
  "Time after which a dead worker's jobs run again": [STALE_SECONDS, BEAT_SECONDS],
}

t.test('every number that the code exports is the one in SECURITY.md', async (t) => {
  for (const [limit, expected] of Object.entries(numbers)) {
    const row = rows.find((one) => one.limit === limit)
    t.same(numbersIn(row?.number ?? '').slice(0, expected.length), expected, limit)
  }
})

t.test('every place where a limit is set exists, and a plain number there is the one in SECURITY.md', async (t) => {
  t.ok(rows.length > 80, `${rows.length} limits`)
  for (const { limit, number, place, toVerify } of rows) {
    if (toVerify) continue
    const [name = '', file] = [...place.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted)
    if (file === undefined) t.ok(name in variables, `${limit}: ${name} is a variable`)
    else {
      const source = sourceOf(file)
      t.match(source, new RegExp(`\\b${name}\\b`), `${limit}: ${name} is in ${file}`)
      const [, literal] = source.match(new RegExp(`\\b${name}(?: =|:) (\\d[\\d_]*),?$`, 'm')) ?? []
      const value = Number(literal?.replaceAll('_', ''))
      // Milliseconds in the code are seconds here.
      if (literal)
        t.ok(
          [value, value / 1000].some((one) => numbersIn(number).includes(one)),
          `${limit}: ${value}`,
        )
    }
  }
})

function numbersIn(text: string): number[] {
  return [...text.matchAll(/\d[\d,]*/g)].map(([found]) => Number(found.replaceAll(',', '')))
}

function sourceOf(file: string): string {
  const path = join(root, file)
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

t.test('each limit is listed once, and every section of the threat model has its tables', async (t) => {
  const names = rows.map(({ limit }) => limit)
  t.same([...new Set(names)], names)
  const sections = [...page.matchAll(/^## (.+)$/gm)].map(([, title]) => title)
  t.same(sections, [
    'How to report a vulnerability',
    'HTTP',
    'MCP',
    'Webhooks in (Stripe)',
    'Fetches out',
    'Webhooks out',
    'Facilitator and RPC',
    'Model provider',
    'Time-stamp authorities',
    'Database',
    'Redis',
    'Operator',
    'Out of scope',
  ])
})
