// The calls of a check, page by page: which it repeats, where it stops, what it reports for a page that cannot be read, and
// which citations still need a verdict.
import t from 'tap'
import { CountersignError } from '../../client/error.ts'
import { type Citation, findCitations } from '../../client/report/citations.ts'
import { judge, type Verdict, wantedOf } from '../../client/report/judgement.ts'
import { readMarkdown } from '../../client/report/markdown.ts'
import { type AskOptions, askPages, type PageAnswer, pageOf, type Wanted } from '../../client/report/pages.ts'
import { applyVerdicts, claimOf, claimsOf, nameOf } from '../../client/report/verdicts.ts'
import type { VerificationResult } from '../../client/result.ts'
import { verificationInput } from '../../server/interface/result.ts'
import { buildClock } from './counterpart.ts'

type Asked = { source_url: string; quotes: string[] }
const found = ({ source_url, quotes }: Asked) => ({
  source: { requested_url: source_url, final_url: source_url, content_sha256: '', text_sha256: '', checked_at: '' },
  quotes: quotes.map((quote) => ({
    quote,
    match: 'exact' as const,
    start: 0,
    end: 1,
    quote_sha256: '',
    fragment_url: null,
    nearest: null,
  })),
})
const fails = (
  code: string,
  more: Partial<{ status: number; retryable: boolean; retryAfterMs: number; message: string }> = {},
) => new CountersignError({ code, message: `about ${code}`, retryable: false, ...more })

/** Checks these pages, one text each, at a service that answers or throws as scripted. */
async function ask(texts: Record<string, string[]>, answer: (asked: Asked, count: number) => Error | null) {
  const asked: Asked[] = []
  const clock = buildClock()
  const service = {
    async checkQuotes(input: Asked) {
      asked.push(input)
      const error = answer(input, asked.length)
      if (error) throw error
      return found(input)
    },
  }
  const wanted = new Map<string, Wanted>(
    Object.entries(texts).map(([url, all]) => [`https://s.test${url}`, { texts: new Set(all), probes: new Set() }]),
  )
  const answers = await askPages(service as never, wanted, { clock } as AskOptions)
  const said = [...answers].map(([url, { failure }]) => [url.slice(14), failure?.kind ?? 'came', failure?.code ?? null])
  return { asked, answers, waits: clock.waits, said: new Map(said.map(([url, ...rest]) => [url, rest])) }
}

t.test('an address is asked for as a URI, which the service takes', async (t) => {
  const asked: Record<string, string> = {
    'http://s.test/a?tags[]=x|y&p=100%#part': 'https://s.test/a?tags%5B%5D=x%7Cy&p=100%25',
    'https://s.test/[a]/^`{}?"<>\\': 'https://s.test/%5Ba%5D/%5E%60%7B%7D?%22%3C%3E%5C',
    'https://s.test/ü?q=%5B%zz': 'https://s.test/%C3%BC?q=%5B%25zz',
    'https://s.test/?': 'https://s.test/?',
  }
  for (const [url, page] of Object.entries(asked)) {
    t.equal(pageOf(url), page, url)
    t.ok(verificationInput.safeParse({ source_url: page, claim: 'x' }).success, page)
  }
})

t.test('the daily limit ends the checks, and earlier answers still count', async (t) => {
  const pages = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`/${i}`, ['words']]))
  const { asked, said, answers } = await ask(pages, (_, count) =>
    count > 5 ? fails('daily_limit', { status: 429, message: 'The limit of 5 pages is reached.' }) : null,
  )
  t.ok(asked.length <= 9, `${asked.length} calls: those under way end, no further one begins`)
  t.equal([...said.values()].filter(([kind]) => kind === 'came').length, 5)
  const refused = [...answers.values()].filter(({ failure }) => failure)
  t.equal(refused.length, 7)
  for (const { failure } of refused)
    t.same(failure, { kind: 'unchecked', code: 'daily_limit', message: 'The limit of 5 pages is reached.' })
})

t.test('after too many checks in flight the command waits as long as Retry-After says, up to a limit', async (t) => {
  const busy = fails('rate_limited', { status: 429, retryable: true, retryAfterMs: 7000 })
  const short = await ask({ '/a': ['words'] }, (_, count) => (count <= 3 ? busy : null))
  t.same(
    [short.waits, short.said.get('/a')],
    [
      [7000, 7000, 7000],
      ['came', null],
    ],
  )
  const long = await ask({ '/a': ['words'] }, () => busy)
  t.same([long.asked.length, long.said.get('/a')], [101, ['unchecked', 'rate_limited']])
})

t.test(
  'a service that asks to wait for longer than five minutes is not waited for, and is asked no more',
  async (t) => {
    const message = 'Too many checks.'
    const busy = fails('rate_limited', { status: 429, retryable: true, retryAfterMs: 999_999_999_000, message })
    const texts = Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`/${n}`, ['words']]))
    const { asked, waits, answers } = await ask(texts, () => busy)
    t.same(waits, [])
    t.ok(asked.length <= 4, `${asked.length} calls`)
    t.equal(answers.size, 9)
    for (const { failure } of answers.values())
      t.same(failure, {
        kind: 'unchecked',
        code: 'rate_limited',
        message: 'Too many checks. The service asks to wait 999999999 seconds.',
      })
    const dead = fails('source_dns_failed', { retryable: true, retryAfterMs: 999_999_999_000 })
    const once = await ask({ '/a': ['words'] }, () => dead)
    t.same([once.waits, once.asked.length, once.said.get('/a')], [[], 1, ['dead', 'source_dns_failed']])
    const patient = await ask({ '/a': ['words'] }, (_, count) =>
      count === 1 ? fails('rate_limited', { retryAfterMs: 300_000 }) : null,
    )
    t.same([patient.waits, patient.said.get('/a')], [[300_000], ['came', null]])
  },
)

t.test('what the report says about a page that cannot be read', async (t) => {
  const cases: [Error, kind: string, calls: number][] = [
    [fails('source_not_found'), 'dead', 1],
    [fails('source_dns_failed', { retryable: true }), 'dead', 2],
    [fails('source_http_status', { message: 'The source answered with status 404.' }), 'dead', 1],
    [fails('source_http_status', { message: 'The source answered with status 403.' }), 'unreadable', 1],
    [fails('source_type_unsupported'), 'unreadable', 1],
    [fails('invalid_request', { status: 400 }), 'unreadable', 1],
    [fails('deadline_exceeded'), 'unchecked', 1],
  ]
  for (const [error, kind, calls] of cases) {
    const { asked, said } = await ask({ '/a': ['words'] }, () => error)
    t.same([said.get('/a')?.[0], asked.length], [kind, calls], (error as CountersignError).code)
  }
  const broken = await ask({ '/a': ['words'] }, (_, count) => (count <= 3 ? fails('network_error') : null))
  t.same([broken.said.get('/a')?.[0], broken.waits], ['came', [2000, 4000, 8000]])
  await t.rejects(
    ask({ '/a': ['words'] }, () => fails('network_error')),
    { code: 'network_error' },
  )
  const proxy = fails('unexpected_response', { status: 502, retryable: true })
  const behind = await ask({ '/a': ['words'] }, (_, count) => (count <= 1 ? proxy : null))
  t.same([behind.said.get('/a')?.[0], behind.waits], ['came', [2000]])
  const another = fails('unexpected_response', { status: 200 })
  const nothing = () => ask({ '/a': ['words'] }, (_, count) => (count === 1 ? another : null))
  await t.rejects(nothing(), { code: 'unexpected_response' }, 'another program at the address is not asked again')
  await t.rejects(
    ask({ '/a': ['words'] }, () => fails('unauthorized', { status: 401 })),
    { code: 'unauthorized' },
  )
})

t.test('many citations are split into calls within the limits of the service', async (t) => {
  const many = await ask({ '/a': Array.from({ length: 45 }, (_, i) => `text ${i}`) }, () => null)
  t.same(
    many.asked.map(({ quotes }) => quotes.length),
    [20, 20, 5],
  )
  const large = await ask({ '/a': Array.from({ length: 20 }, (_, i) => `${i}${'\u{1f6a2}'.repeat(990)}`) }, () => null)
  t.same(
    large.asked.map(({ quotes }) => quotes.length),
    [15, 5],
  )
})

const citationsIn = async (markdown: string): Promise<Citation[]> => findCitations(await readMarkdown(markdown))

t.test('the citations that need a verdict', async (t) => {
  const page = 'https://s.test/a'
  const citations = await citationsIn(
    `It has "one two three" [a](${page}).\n\nNo quotation [a](${page}).\n\nElsewhere, too [b](https://s.test/b).\n\n` +
      `[a](${page})\n\n${'Long '.repeat(500)}[a](${page}).\n\nAgain "one two three" [a](${page}).\n`,
  )
  const answer = (texts: PageAnswer['found'], failure: PageAnswer['failure'] = null, finalUrl = page): PageAnswer => ({
    finalUrl: failure ? null : finalUrl,
    failure,
    found: texts,
  })
  t.same([...wantedOf(citations).keys()], [page, 'https://s.test/b'])
  const exact = new Map([['one two three', { match: 'exact' as const, fragment_url: null, nearest: null }]])
  const moved = answer(new Map(), null, 'https://s.test/c')
  const held = judge(
    citations,
    new Map([
      [page, answer(exact)],
      ['https://s.test/b', moved],
    ]),
  )
  t.same(claimsOf(held), [
    { source_url: page, claim: 'No quotation a.' },
    { source_url: 'https://s.test/b', claim: 'Elsewhere, too b.' },
  ])
  const limit = { kind: 'unchecked', code: 'daily_limit', message: 'No more today.' } as const
  const limited = judge(
    citations,
    new Map([
      [page, answer(new Map(), limit)],
      ['https://s.test/b', moved],
    ]),
  )
  t.same(
    claimsOf(limited).map(({ claim }) => claim),
    ['one two three', 'No quotation a.', 'Elsewhere, too b.'],
  )
  const dead = { kind: 'dead', code: 'source_not_found', message: 'Gone.' } as const
  t.same(
    claimsOf(
      judge(
        citations,
        new Map([
          [page, answer(new Map(), dead)],
          ['https://s.test/b', moved],
        ]),
      ),
    ).length,
    1,
  )

  await t.test('and what a verdict changes in the report', async (t) => {
    const verdict = (claimSupport: Verdict['claimSupport'], isAssessed = true) => ({
      claimSupport,
      isAssessed,
      explanation: 'It says so.',
      quote: null,
      fragmentUrl: null,
      requestId: 'r',
      receiptSerial: 7,
      checkedAt: '2026-11-22T12:00:00Z',
      isNew: true,
    })
    const all = new Map<string, Verdict>()
    const judged = (of: typeof held) =>
      applyVerdicts(of, all).map(({ status, message }) => `${status}: ${message.split(':')[0]}`)
    const cases: [ReturnType<typeof verdict>, string, string][] = [
      [verdict('supports'), 'supported', 'moved'],
      [verdict('contradicts'), 'contradicted', 'contradicted'],
      [verdict('mixed'), 'mixed', 'mixed'],
      [verdict('insufficient_evidence'), 'unsupported', 'unsupported'],
      [verdict('not_assessed', false), 'unverified', 'moved'],
      [verdict('insufficient_evidence', false), 'unverified', 'moved'],
    ]
    for (const [one, there, away] of cases) {
      for (const claim of claimsOf(held)) all.set(nameOf(claim), one)
      const statuses = applyVerdicts(held, all).map(({ status }) => status)
      t.same(statuses.slice(0, 3), ['ok', there, away], one.claimSupport)
    }
    t.match(judged(held)[2], /^moved: The page is now at https/)
    const result = { risk_flags: ['page_checks_claims'], methodology_version: 'local-1' } as VerificationResult
    for (const claim of claimsOf(held)) all.set(nameOf(claim), { ...verdict('insufficient_evidence'), result })
    t.equal(judged(held)[1], 'unsupported: No verdict, because the page checks what others claim')
    const missing = new Map(claimsOf(limited).map((one) => [nameOf(one), { code: 'budget_reached', message: 'None.' }]))
    for (const one of applyVerdicts(limited, missing).filter((one) => claimOf(one)))
      t.match(one, { status: 'unchecked', message: 'None.', verdict: null })
    const gone = new Map(claimsOf(held).map((one) => [nameOf(one), { code: 'source_not_found', message: 'Gone.' }]))
    t.match(applyVerdicts(held, gone)[1], { status: 'dead', code: 'source_not_found' })
  })
})

t.test('a quotation that one of several pages supports needs no other page', async (t) => {
  const [a, b] = ['https://s.test/a', 'https://s.test/b']
  const citations = await citationsIn(
    `It says "one two three" [1][2].\n\n[1]: ${a}\n[2]: ${b}\n\n`
      .replaceAll('[1][2]', '[^1][^2]')
      .replaceAll('[1]:', '[^1]:')
      .replaceAll('[2]:', '[^2]:'),
  )
  t.equal(citations.length, 2)
  const failure = { kind: 'unchecked', code: 'daily_limit', message: 'No more today.' } as const
  const answers = new Map([a, b].map((url) => [url, { finalUrl: null, failure, found: new Map() }]))
  const judged = judge(citations, answers)
  const one = {
    explanation: '',
    quote: null,
    fragmentUrl: null,
    requestId: '',
    receiptSerial: 1,
    checkedAt: '',
    isNew: true,
  }
  const said = { ...one, isAssessed: true } as const
  const verdicts = new Map<string, Verdict>([
    [nameOf({ source_url: a, claim: 'one two three' }), { ...said, claimSupport: 'supports' }],
    [nameOf({ source_url: b, claim: 'one two three' }), { ...said, claimSupport: 'insufficient_evidence' }],
  ])
  t.same(
    applyVerdicts(judged, verdicts).map(({ status }) => status),
    ['supported', 'unverified'],
  )
})
