// Several claims on one page: each is assessed as if it were alone, a claim without a verdict is no failure of the others, and the
// rules of the interface hold for each, whatever assessors answer.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { AppError } from '../../server/errors.ts'
import type { Assessment } from '../../server/interface/assessment.ts'
import { claimResult, claimsAssessment } from '../../server/interface/claims.ts'
import { inconsistency } from '../../server/interface/result.ts'
import { addsOnlyFrom, readWithContext } from '../../server/verification/claim-reading.ts'
import type { WorkingRequest } from '../../server/verification/request.ts'
import { assess } from '../../server/verification/stages/assessment-stage.ts'
import type { Assessor } from '../../workers/assessment/assessor.ts'
import { assessClaims } from '../../workers/assessment/assessor.ts'
import { assessLiterally } from '../../workers/assessment/literal/search-thread.ts'
import { AssessorBusyError } from '../../workers/assessment/semantic/circuit.ts'
import { rounds } from '../long.ts'
import { seeded } from './fixtures/random.ts'

const TEXT = `The harbour of Kelby

The harbour was opened in 1874 by the county engineer. It has three piers and a lighthouse 21 metres high.

Fishing ended in 1962. The ferry to Orsay sails on Mondays and Thursdays. 港は1874年に開かれた。`
const DIGESTS = { sourceSha256: 'c'.repeat(64), textSha256: 'd'.repeat(64) }
const WORDS = [...TEXT.split(/\s+/), 'never', 'Paris', '1999', '港', '\u0301', '🜛', '"', '-']

function choices(seed: number) {
  const below = seeded(seed)
  const pick = <T>(from: readonly T[]): T => {
    const one = from[below(from.length)]
    if (one === undefined) throw new Error('there is nothing to pick')
    return one
  }
  return { below, pick }
}

function requestOf(claims: string[], context?: string): WorkingRequest {
  const observation = {
    source: {
      content_sha256: DIGESTS.sourceSha256,
      text_sha256: DIGESTS.textSha256,
      normalized_text: TEXT,
      decoded_bytes: 500,
    },
    risk_flags: [],
    checked_at: '2026-01-01T00:00:00Z',
  }
  const request = {
    id: randomUUID(),
    attempt: randomUUID(),
    state: 'observed',
    changed_at: new Date(),
    body: { source_url: 'https://example.com/', claims, ...(context !== undefined && { context }) },
    payment: { identity: { payer: 'x' }, valid_before: 4_000_000_000 },
    stored: { observation, cache_hit: false },
    assessment: null,
  }
  // The stage reads no more of a request.
  return request as unknown as WorkingRequest
}

async function assessWith(assessor: Partial<Assessor>, claims: string[], context?: string) {
  const work = { assessor: { procedure: 'test', isRepeatable: true, ...assessor }, config: readConfig({}) }
  const { assessment } = await assess(requestOf(claims, context), work as never, new AbortController().signal)
  return claimsAssessment.parse(assessment)
}

const verdictOf = (claim: string): Assessment => ({
  ...assessLiterally({ claim, text: TEXT, digests: DIGESTS }),
  procedure: 'test',
})

t.test('together each claim gets what it gets alone', async (t) => {
  const { below, pick } = choices(1)
  for (let n = 0; n < rounds(60); n++) {
    const claims = Array.from({ length: 1 + below(10) }, () =>
      Array.from({ length: 1 + below(9) }, () => pick(WORDS)).join(' '),
    )
    const assessor = { procedure: 'test', assess: async ({ claim }: { claim: string }) => verdictOf(claim) }
    const together = await assessClaims(assessor, { claims, observation: requestOf(claims).stored!.observation })
    t.same(together, claims.map(verdictOf), JSON.stringify(claims))
  }
})

t.test('the rules hold for every claim, and ids run through, whatever is assessed', async (t) => {
  const { below, pick } = choices(2)
  const stances = ['supports', 'contradicts', 'mentions'] as const
  const supports = ['supports', 'contradicts', 'mixed', 'insufficient_evidence', 'not_assessed'] as const
  for (let n = 0; n < rounds(200); n++) {
    const claims = Array.from({ length: 1 + below(10) }, (_, i) => `The harbour ${i}`)
    const answers = new Map(
      claims.map((claim): [string, Assessment | AppError] => {
        if (below(4) === 0) return [claim, new AppError('assessment_failed', 'none')]
        const evidence = Array.from({ length: below(7) }, (_, i) => ({
          ...{ evidence_id: `e${i + 1}`, quote: TEXT.slice(i, i + 1), start: i, end: i + 1 },
          ...{ stance: pick(stances), source_sha256: DIGESTS.sourceSha256, text_sha256: DIGESTS.textSha256 },
        }))
        const scope = pick(['literal_quotation_only', 'source_local_semantic_support'] as const)
        const verdict = { claim_support: pick(supports), assessment_scope: scope, evidence }
        return [claim, { ...verdict, explanation: '', risk_flags: [], procedure: 'test' }]
      }),
    )
    const isBroken = [...answers.values()].some((one) => !(one instanceof AppError) && inconsistency(one) !== null)
    const isLost = [...answers.values()].every((one) => one instanceof AppError)
    const assessor: Pick<Assessor, 'assess'> = {
      assess: async ({ claim }) => {
        const answer = answers.get(claim)
        if (!answer || answer instanceof AppError) throw answer
        return answer
      },
    }
    const made = await assessWith(assessor, claims).catch((error: unknown) => error as Error)
    if (isLost) t.match(made, { code: 'assessment_failed' }, 'no claim could be assessed')
    else if (isBroken) t.match(made, { message: /broke a rule/ })
    else {
      const { claims: verdicts } = claimsAssessment.parse(made)
      t.same(
        verdicts.flatMap(({ evidence }) => evidence.map(({ evidence_id }) => evidence_id)),
        verdicts.flatMap(({ evidence }) => evidence).map((_, i) => `e${i + 1}`),
      )
      t.ok(verdicts.every((one) => inconsistency(one) === null))
      t.same(
        verdicts.map(({ risk_flags }) => risk_flags.includes('claim_not_assessed')),
        claims.map((claim) => answers.get(claim) instanceof AppError),
        'only a claim that could not be assessed says so',
      )
    }
  }
})

t.test('no result is served or read in which one claim breaks a rule', async (t) => {
  const quote = {
    ...{ evidence_id: 'e1', quote: 'T', start: 0, end: 1 },
    ...{ source_sha256: DIGESTS.sourceSha256, text_sha256: DIGESTS.textSha256 },
  }
  const resultOf = (stance: string) => ({
    ...{ claim: 'It says so.', claim_support: 'supports', assessment_scope: 'source_local_semantic_support' },
    ...{ explanation: 'It does.', evidence: [{ ...quote, stance }], risk_flags: [] },
  })
  t.equal(claimResult.safeParse(resultOf('supports')).error, undefined)
  for (const stance of ['mentions', 'contradicts'])
    t.match(claimResult.safeParse(resultOf(stance)).error?.issues, [{ message: /supports/ }], stance)
})

t.test('a claim that cannot be assessed is not_assessed; what concerns the assessor ends all', async (t) => {
  const [good, bad] = ['Fishing ended in 1962.', 'The ferry sails.']
  const assessor = (error: Error): Partial<Assessor> => ({
    assess: async ({ claim }) => {
      if (claim === bad) throw error
      return verdictOf(claim)
    },
  })
  const made = await assessWith(assessor(new AppError('assessment_failed', 'no usable answer')), [bad, good])
  t.match(made.claims, [
    { claim_support: 'not_assessed', evidence: [], risk_flags: ['claim_not_assessed'] },
    { evidence: [{ evidence_id: 'e1' }] },
  ])
  const busy = new AssessorBusyError('away', 5)
  await t.rejects(assessWith(assessor(busy), [bad, good]), busy)
})

t.test('what is assessed is the claim as it is read with its context', async (t) => {
  const asked: string[] = []
  const assessor: Pick<Assessor, 'assess'> = {
    assess: async ({ claim }) => {
      asked.push(claim)
      return verdictOf(claim)
    },
  }
  const made = await assessWith(assessor, ['It was opened in 1874.', 'Fishing ended.'], 'The harbour of Kelby')
  t.same(asked, ['The harbour of Kelby was opened in 1874.', 'Fishing ended.'])
  t.same(
    made.claims.map(({ claim_as_read }) => claim_as_read),
    ['The harbour of Kelby was opened in 1874.', undefined],
  )
})

t.test('how claims are read', async (t) => {
  for (const [context, claim, read] of [
    [
      'Acme Corporation was founded in 1990 by Jane Doe.',
      'The company sells anvils.',
      'Acme Corporation sells anvils.',
    ],
    ['Acme Corporation was founded in 1990.', 'In 2020 the company sold it.', 'In 2020 Acme Corporation sold it.'],
    ['Acme Corporation was founded in 1990.', 'Its seat is in Kelby.', 'Acme Corporation: Its seat is in Kelby.'],
    ['About: Jane Doe', 'She was born in 1980.', 'Jane Doe was born in 1980.'],
    ['This page is about the harbour of Kelby.', 'It has three piers.', 'The harbour of Kelby has three piers.'],
    // Nothing that can be told for certain.
    ['Acme Corporation was founded in 1990 by Jane Doe.', 'She left in 1999.', null],
    ['Acme Corporation was founded in 1990.', 'Bosch said the company grew.', null],
    ['Acme Corporation was founded in 1990.', 'The city of Kelby is big.', null],
    ['Acme Corporation was founded in 1990.', 'It is known that anvils are heavy.', null],
    ['It was raining.', 'It stopped at noon.', null],
    ['Acme Corporation', 'Acme Corporation sells anvils.', null],
    [undefined, 'It sells anvils.', null],
  ] as const)
    t.same(readWithContext([claim], context), [read ?? claim], `${context} | ${claim}`)
})

t.test('no reading adds a word that the context does not have, and none is longer than 3000 characters', async (t) => {
  const { below, pick } = choices(3)
  const words = [...WORDS, 'It', 'Its', 'The company', 'the town', 'He', 'Acme', 'was', 'of', 'The', '.', ',', '\n']
  const some = (most: number) => Array.from({ length: 1 + below(most) }, () => pick(words)).join(' ')
  for (let n = 0; n < rounds(2000); n++) {
    const [context, claim] = [some(20), some(12)]
    const [read = ''] = readWithContext([claim], context)
    if (!addsOnlyFrom(context, claim, read) || read.length > claim.length + context.length + 2 || !read.isWellFormed())
      t.fail(JSON.stringify({ context, claim, read }))
  }
  t.ok(addsOnlyFrom('Acme', 'It sells', 'The Acme sells'), 'function words aside')
  t.notOk(addsOnlyFrom('Acme', 'It sells', 'Bosch sells'))
})
