// The pages /status and /accuracy: what is shown is what the probes, the roll-ups and the saved evaluation say.
import { join } from 'node:path'
import t from 'tap'
import { renderAccuracy } from '../../bench/eval/accuracy-document.ts'
import { type Item, observe } from '../../bench/eval/labels.ts'
import { measureMarked } from '../../bench/eval/marked.ts'
import { markedRecordOf, recordOf } from '../../bench/eval/record.ts'
import type { Outcome } from '../../bench/eval/score.ts'
import { FRESH_RIGHT_OF_100 } from '../../client/verdict-words.ts'
import type { AssessmentKind } from '../../server/interface/assessment.ts'
import { buildProbe } from '../../server/operate/readiness.ts'
import { readDays } from '../../server/operate/roll-ups.ts'
import { findAccuracy, findOthers, percent } from '../../server/pages/accuracy/accuracy.ts'
import { accuracyPage } from '../../server/pages/accuracy/accuracy-page.ts'
import { openSite } from '../../server/pages/layout.ts'
import { statusPage } from '../../server/pages/status-page.ts'
import { RIGHT_OF_100 } from '../../workers/assessment/local/explanation.ts'
import { settings } from '../../workers/assessment/local/weights.ts'
import { LITERAL_PROCEDURE, LOCAL_PROCEDURE, semanticProcedure } from '../../workers/assessment/procedure.ts'
import { inspect, noBrowser, picture, sharedBrowser, visit } from '../browser.ts'
import { startSystem } from '../system.ts'
import { until } from '../until.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const read = async (path: string, at = system.service.address) => (await fetch(new URL(path, at))).text()
const rowOf = (page: string, name: string) => page.match(new RegExp(`<th scope="row">${name}</th>.*?</tr>`))?.[0] ?? ''

t.test('a new service works and has no days on record', async (t) => {
  const page = await read('/status')
  t.match(page, /Everything works now\./)
  for (const name of ['Process that answers', 'Database', 'Tables of the database', 'Signing keys'])
    t.match(rowOf(page, name), /tone-good">works</, name)
  t.match(rowOf(page, 'New verifications'), />open</)
  t.match(rowOf(page, 'Workers'), />work</)
  t.match(page, /One mark for each day will be here[\s\S]*within a minute/)
  t.notMatch(page, /class="state-plain"/, 'no empty plot')
})

t.test('what does not work is said, as /readyz says it', async (t) => {
  await using closed = await system.openTwin({}, { VERIFICATION_ENABLED: 'false' })
  closed.api.drain()
  const page = await read('/status', closed.address)
  t.match(rowOf(page, 'Process that answers'), /does not work.*shutting down/)
  t.match(rowOf(page, 'New verifications'), /closed.*switched off here at present/)
  t.equal((await fetch(new URL('/readyz', closed.address))).status, 503)

  await using away = await system.openTwin()
  const { db } = away.api
  away.api.db = new Proxy(db, { get: () => () => Promise.reject(new Error('secret_user')) })
  const broken = await read('/status', away.address)
  away.api.db = db
  t.match(rowOf(broken, 'Database'), /does not work/)
  t.match(broken, 'The record cannot be read')
  t.notMatch(broken, 'secret_user')
})

t.test('the banner names what does not work or is restricted', async (t) => {
  const site = await openSite({ baseUrl: 'https://verify.example' })
  const work = { workers: true, due: 0, oldest_seconds: 0 }
  const banner = (more: object) => {
    const checks = { process: { ok: true }, database: { ok: true } }
    const page = statusPage(site, { at: 0, checks, refusal: null, work, days: [], ...more })
    return textOf(/<h1>Status<\/h1><div class="notice.*?<\/strong>/s.exec(page)?.[0] ?? '')
  }
  t.match(banner({}), 'Everything works now.')
  t.match(banner({ refusal: 'It is closed.' }), 'It works, with a restriction: new verifications are closed.')
  t.match(banner({ checks: { database: { ok: false } } }), 'Not everything works: database.')
  t.match(
    banner({
      checks: { process: { ok: false }, keys: { ok: false } },
      refusal: 'x',
      work: { ...work, workers: false },
    }),
    'Not everything works: process that answers, signing keys, workers.',
  )
})

t.test('the days are those of the roll-ups', async (t) => {
  // Yesterday the service was not available for an hour, the day before nothing was recorded, and ten days ago it began.
  const insert = 'insert into day_figures (day, first_minute, recorded, well) values'
  await system.sql(
    `${insert} ((now() at time zone 'utc')::date - 10, date_trunc('day', now(), 'utc') - interval '10 days', 1440, 1440)`,
  )
  await system.sql(
    `${insert} ((now() at time zone 'utc')::date - 1, date_trunc('day', now(), 'utc') - interval '1 day', 1440, 1380)`,
  )
  const days = await readDays(system.service.api.db)
  t.equal(days.length, 11)
  const site = await openSite({ baseUrl: 'https://verify.example' })
  const page = statusPage(site, { at: Date.now(), checks: {}, refusal: null, work: null, days })
  t.match(page, `${days[0]?.day}: 100.00 % of 1,440 minutes available`)
  t.match(page, `${days.at(-2)?.day}: 95.83 % of 1,440 minutes available`)
  t.match(page, `${days.at(-3)?.day}: 0.00 % of 1,440 minutes available`)
  const strip = /<svg class="plot-area"[\s\S]*?<\/svg>/.exec(page)?.[0] ?? ''
  t.equal(strip.match(/class="state-plain"/g)?.length, 79)
  t.match(page, '11 of the last 90 days are on record')
})

t.test('a full disk of the database is said while it lasts, and its minutes do not count as available', async (t) => {
  const register = (handle: string) =>
    fetch(system.url('/v1/register'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ handle }),
    })
  await system.sql(`
    create function full_disk() returns trigger language plpgsql as $$ begin
      raise exception 'could not extend file "base/1/2": No space left on device' using errcode = 'disk_full';
    end $$`)
  await system.sql('create trigger full_disk before insert on accounts for each row execute function full_disk()')
  const probe = buildProbe(system.service.api)
  t.equal(await probe(), true)
  t.equal((await register('arvel')).status, 503)
  const page = await until(async () => {
    const page = await read('/status')
    return page.includes('Everything works') ? undefined : page
  })
  t.match(textOf(page), 'Not everything works: storage of the database.')
  t.match(textOf(rowOf(page, 'Storage of the database')), /does not work.*Nothing new can be stored until the operator/)
  t.match(rowOf(page, 'Database'), /tone-good">works</, 'which still answers')
  t.match(textOf(rowOf(page, 'New verifications')), /closed.*The storage of this service is full/)
  t.equal(await probe(), false)
  t.equal((await fetch(system.url('/readyz'))).status, 200, 'what was bought can be fetched')
  await system.sql('drop trigger full_disk on accounts')
})

t.test('a day on which one minute failed is not drawn as a good one', async (t) => {
  const site = await openSite({ baseUrl: 'https://verify.example' })
  const toneOf = (well: number) => {
    const days = [{ day: '2026-11-20', minutes: 1440, well, share: well / 1440 }]
    const page = statusPage(site, { at: 0, checks: {}, refusal: null, work: null, days })
    const [, strip = ''] = /<svg class="plot-area"([\s\S]*?)<\/svg>/.exec(page) ?? []
    return /class="state-(good|open|bad)"/.exec(strip)?.[1]
  }
  t.same([1440, 1439, 1368, 1367].map(toneOf), ['good', 'open', 'open', 'bad'])
})

t.test('the bars of the days have a legend, and a shape for each of its words', async (t) => {
  const site = await openSite({ baseUrl: 'https://verify.example' })
  const days = [1440, 1439, 1400, 10].map((well, n) => ({
    day: `2026-11-2${n}`,
    minutes: 1440,
    well,
    share: well / 1440,
  }))
  const page = statusPage(site, { at: 0, checks: {}, refusal: null, work: null, days })
  const [, legend = ''] = /<span class="legend">([\s\S]*?)<\/figcaption>/.exec(page) ?? []
  t.match(textOf(legend), /every minute *95 % of the minutes or more *less than 95 % *no data/)
  /** The heights in which a state is drawn. */
  const heights = (part: string, state: string) => [
    ...new Set(
      [...part.matchAll(new RegExp(`class="state-${state}"[^>]*? height="([\\d.]+)"`, 'g'))].map(([, height]) =>
        Number(height),
      ),
    ),
  ]
  const [, strip = ''] = /<svg class="plot-area"([\s\S]*?)<\/svg>/.exec(page) ?? []
  const drawn = ['good', 'open', 'bad', 'plain'].map((state) => heights(strip, state))
  t.same(drawn, [[32], [20], [10], [4]])
  t.same(
    ['good', 'open', 'bad', 'plain'].map((state) => heights(legend, state)),
    drawn.map((of) => of.map((height) => height / 2)),
    'the legend shows the shapes of the bars',
  )
})

t.test('where everything works, the last interruption of the record is said to be over', async (t) => {
  const site = await openSite({ baseUrl: 'https://verify.example' })
  const day = (n: number, well: number, minutes = 1440) => ({
    day: `2026-11-${n}`,
    minutes,
    well,
    share: minutes > 0 ? well / minutes : null,
  })
  const good = { verifier: { ok: true } }
  const shown = (days: ReturnType<typeof day>[] | null, checks: Record<string, { ok: boolean }> = good) =>
    textOf(statusPage(site, { at: Date.now(), checks, refusal: null, work: null, days }))
  t.match(
    shown([day(20, 0), day(21, 1440), day(22, 1380), day(23, 1440), day(24, 700, 700)]),
    /Everything works now\. The last interruption was on 2026-11-22\. It is over: the service was not available in 60 of 1,440 minutes\. Read at \S+ \S+ UTC\./,
  )
  t.match(
    shown([day(21, 1440), day(22, 1380), day(23, 0), day(24, 700, 700)]),
    'The last interruption was from 2026-11-22 to 2026-11-23. It is over: the service was not available in 1,500 of 2,880 minutes.',
  )
  t.match(
    shown([day(23, 1440), day(24, 690, 700)]),
    'interruption was today. It is over: the service was not available in 10 of 700 minutes.',
  )
  t.match(shown([day(23, 1000), day(24, 690, 700)]), 'interruption was from 2026-11-23 to today. ')
  t.notMatch(shown([day(23, 1439), day(24, 0, 0)]), 'interruption', 'a minute in a day is none')
  t.notMatch(shown(null), 'interruption')
  t.notMatch(shown([day(23, 0)], { verifier: { ok: false } }), 'interruption', 'nothing is over while it lasts')
})

t.test('/accuracy shows the saved run of this configuration alone', async (t) => {
  const { runs, marked } = await findAccuracy()
  const run = runs.find(({ assessment }) => assessment === 'literal')
  t.ok(run, 'npm run eval -- --assessor literal --save')
  const page = await read('/accuracy')
  // After a change of the procedure the saved run is not of this configuration, until there is a new one.
  const isShown = run?.procedure === LITERAL_PROCEDURE
  t.equal(page.includes(run?.set.sha256 ?? '?'), isShown)
  t.equal(page.includes('No evaluation was run on this configuration.'), !isShown)
  if (isShown) for (const { id } of run?.failures ?? []) t.ok(page.includes(`<code>${id}</code>`), id)
  t.equal(page.includes(`<h2>Claims of ${run?.set.name} whose passage is not the first quote</h2>`), isShown)
  t.equal(
    page.includes('For a page that was never tried here, rely on the lowest figures below, those of the public sets'),
    isShown,
  )
  const quoted = marked.filter(({ procedure }) => procedure === LITERAL_PROCEDURE)
  t.equal(page.includes('Data sets with annotated evidence'), quoted.length > 0)
  for (const { set, retrieval } of quoted)
    t.ok(
      page
        .replaceAll(/<(th|td) [^>]*>/g, '<$1>')
        .includes(`<th>${set.name}</th><td>literal</td><td>${percent(retrieval.literal.top1)}</td>`),
      set.name,
    )
  await using semantic = await system.openTwin({}, { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' })
  const none = await read('/accuracy', semantic.address)
  t.match(none, 'No evaluation was run on this configuration.')
  t.notMatch(none, run?.set.sha256 ?? '?')
})

t.test('/accuracy of the local verifier has its figures, its weights and what the card says', async (t) => {
  const { runs, published } = await findAccuracy()
  const local = runs.filter(({ procedure }) => procedure === LOCAL_PROCEDURE)
  t.ok(local.length >= 6, `${local.length} sets: npm run eval -- --assessor local --save`)
  const site = await openSite({ baseUrl: 'https://verify.example' })
  const methodologies = [`text-1 ${LOCAL_PROCEDURE}+gate-3`]
  const page = accuracyPage(site, { runs, marked: [], published }, { assessment: 'local', methodologies })
  t.match(page, settings.weights_sha256)
  t.match(page, 'Measured with the weights, before integration')
  t.match(textOf(page), '90.1 % [81.0, 95.1] of 71')
  t.match(page, 'the intervals contain the published share of definite verdicts on 5 of the 5 sets')
  for (const { set, commit } of local) t.ok(page.includes(set.sha256) && commit && page.includes(commit), set.name)
  t.match(
    page,
    `${RIGHT_OF_100.supports} of 100 of its verdicts for a claim and ${RIGHT_OF_100.contradicts} of 100 against`,
  )
  const { supports, contradicts } = FRESH_RIGHT_OF_100
  const advice = `For a page that the verifier has never seen, rely on the lower pair, ${supports} and ${contradicts} of 100: on the fresh sets nothing was trained or chosen.`
  t.ok(page.includes(advice), 'which figure to take')
  t.ok(page.indexOf(advice) < page.indexOf('<h2'), 'near the top')
})

t.test(
  '/accuracy of the local verifier shows what others publish on the same sets, each with its source',
  async (t) => {
    const [accuracy, others] = [await findAccuracy(), await findOthers()]
    const measured = new Set(accuracy.runs.map(({ set }) => set.name))
    const site = await openSite({ baseUrl: 'https://verify.example' })
    const local = { assessment: 'local' as const, methodologies: [`text-1 ${LOCAL_PROCEDURE}+gate-3`] }
    const page = accuracyPage(site, accuracy, local, others)
    const [, section = ''] = page.split('<h2>What others publish on these sets</h2>')
    t.match(section, 'cannot be compared directly')
    const rows = [...section.matchAll(/<tr role="row"><th scope="row"[\s\S]*?<\/tr>/g)].map(([row]) => row)
    for (const { verifier, set, part, measure, value, source } of others) {
      t.ok(measured.has(set), set)
      const cells = [`>${verifier}</th>`, `>${set}, ${part}</td>`, `>${measure}</td>`, `>${value}</td>`]
      const link = `<a href="${source.url}">${source.name}</a>`
      const row = rows.find((one) => [...cells, link].every((cell) => one.includes(cell)))
      t.ok(row, `${verifier} on ${set}`)
    }
    t.ok(others.length > 0)
    const literal = { assessment: 'literal' as const, methodologies: [`text-1 ${LITERAL_PROCEDURE}+gate-3`] }
    t.notMatch(accuracyPage(site, accuracy, literal, others), 'What others publish')
  },
)

const SET = join(import.meta.dirname, '../../bench/eval/countersign.jsonl')

function outcome(id: string, label: string, verdict: string | null, more: object = {}): Outcome {
  const source = { normalized_text: 'It opened in 1874.', content_sha256: '0'.repeat(64) }
  const found = verdict && {
    claim_support: verdict,
    assessment_scope: 'source_local_semantic_support',
    evidence: [],
    risk_flags: [],
  }
  const item = { id, label, claim: `claim ${id}`, kind: 'plain', words: true, observation: { source }, ...more }
  return { item, found, ms: 1, ...(!verdict && { failure: 'TimeoutError: too late' }) } as unknown as Outcome
}

t.test('a run is recorded with its matrix, its abstentions and every failure', async (t) => {
  const outcomes = [
    outcome('right', 'insufficient_evidence', 'insufficient_evidence'),
    outcome('abstained', 'supports', 'insufficient_evidence'),
    outcome('reversed', 'supports', 'contradicts', { attack: 'contradicts' }),
    outcome('rash', 'insufficient_evidence', 'supports'),
    outcome('silent', 'mixed', null),
  ]
  const run = await recordOf({
    assessment: 'semantic',
    procedure: 'semantic-1',
    set: SET,
    of: 5,
    fresh: true,
    isOwn: true,
    through: 'text',
    outcomes,
  })
  t.match(run, {
    assessed: 4,
    matrix: {
      supports: { insufficient_evidence: 1, contradicts: 1 },
      insufficient_evidence: { insufficient_evidence: 1, supports: 1 },
    },
    abstained: { part: 1, whole: 2 },
    reversed: { part: 1, whole: 4 },
    rash: { part: 1, whole: 2 },
    resisted: { part: 0, whole: 1 },
  })
  t.same(
    run.failures?.map(({ id }) => id),
    ['abstained', 'reversed', 'rash', 'silent'],
  )
  const site = await openSite({ baseUrl: 'https://verify.example' })
  const page = accuracyPage(
    site,
    { runs: [run], marked: [], published: [] },
    { assessment: 'semantic', methodologies: ['retrieval-1 semantic-1+gate-2'] },
  )
  t.match(textOf(page), '50.0 % [15.0, 85.0] of 4', 'two of four are definite')
  t.match(textOf(page), '0.0 % [0.0, 65.8] of 2', 'and none of these is right')
  t.match(page, 'BM25 with words')
  t.match(page, 'TimeoutError')
})

/** What a page says, without its markup. */
function textOf(page: string): string {
  return page.replaceAll(/<[^>]+>/g, '')
}

/** A page of three lines; the second bears on the claim. */
const MARKED_PAGE = 'The town has two harbours.\nThe old harbour was opened in 1874.\nBoats leave at noon.'

t.test('a set with annotated evidence is recorded, and shown to the configurations that it is of', async (t) => {
  const item = (id: string, label: Item['label'], claim: string): Item => ({
    id,
    set: 'towns',
    kind: label,
    claim,
    label,
    passage: undefined,
    gold: label === 'insufficient_evidence' ? [] : [[{ start: 27, end: 62 }]],
    words: true,
    attack: undefined,
    observation: observe(MARKED_PAGE),
  })
  const items = [
    item('right', 'supports', 'The old harbour was opened in 1874.'),
    item('wrong', 'contradicts', 'The old harbour was opened in 1922.'),
    item('silent', 'insufficient_evidence', 'Elephants weigh six tonnes.'),
  ]
  const [measured] = measureMarked(items)
  const run = await markedRecordOf({ measured: measured!, file: SET, part: 'report' })
  t.match(run, {
    procedure: LITERAL_PROCEDURE,
    set: { name: 'towns', items: 3 },
    part: 'report',
    marked: 2,
    retrieval: {
      literal: { top1: { part: 2, whole: 2 }, abstained: { part: 0, whole: 2 } },
      bm25: { top1: { part: 2 } },
    },
  })
  t.match(
    renderAccuracy({ runs: [], marked: [run], published: [] }),
    /\| towns \| literal \| 100\.0 % \[100\.0, 100\.0\] \|/,
  )

  const site = await openSite({ baseUrl: 'https://verify.example' })
  const shown = (assessment: AssessmentKind, procedure: string) =>
    accuracyPage(
      site,
      { runs: [], marked: [run], published: [] },
      { assessment, methodologies: [`text-1 ${procedure}+gate-3`] },
    )
  const literal = shown('literal', LITERAL_PROCEDURE)
  t.match(literal, 'Data sets with annotated evidence')
  for (const other of [shown('literal', 'literal-1'), shown('semantic', semanticProcedure('claude-haiku-5-5', 1000))])
    t.notMatch(other, 'towns')
})

t.test('in a browser', { skip: noBrowser }, async (t) => {
  const browser = await sharedBrowser()
  t.match(await inspect(t, browser, system.url('/status'), 'status'), /The last 90 days/)
  t.match(await inspect(t, browser, system.url('/accuracy'), 'accuracy'), /^Accuracy\n/)
  await using printed = await visit(browser, system.url('/status'))
  await printed.page.emulateMedia({ media: 'print' })
  t.equal(await printed.page.isVisible('footer'), false)
  await picture(printed.page, 'status-print')
})
