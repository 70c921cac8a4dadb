import t from 'tap'
import { AppError } from '../../../server/errors.ts'
import { assessment } from '../../../server/interface/assessment.ts'
import type { Observation } from '../../../server/interface/observation.ts'
import { openThreads, ThreadError, type Threads } from '../../../server/threads/pool.ts'
import { literalAssessor } from '../../../workers/assessment/literal/assessor.ts'
import { LITERAL_PROCEDURE } from '../../../workers/assessment/procedure.ts'
import { pageText } from '../fixtures/labelled.ts'
import { flawOf, textDigest } from '../fixtures/proof.ts'

const SOURCE = 'd'.repeat(64)

function observationOf(text: string): Observation {
  return {
    source: {
      final_url: 'https://example.com/',
      http_status: 200,
      content_type: 'text/plain',
      content_sha256: SOURCE,
      text_sha256: textDigest(text),
      normalized_text: text,
      offset_unit: 'unicode_codepoint',
      redirects: [],
      wire_bytes: 1,
      decoded_bytes: 1,
    },
    source_identity: { hostname: 'example.com', tls_verified: true, publisher_identity: 'unknown' },
    limits: { max_text_chars: 100_000 },
    risk_flags: [],
    checked_at: '2026-01-01T00:00:00Z',
    procedure: 'test',
  }
}

t.test('a claim is assessed in a thread', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const assessor = literalAssessor(threads)
  const text = pageText('harbour')
  const found = await assessor.assess({ claim: 'The harbour was opened in 1911.', observation: observationOf(text) })
  t.same(assessment.parse(found), found)
  t.match(found, { claim_support: 'not_assessed', procedure: LITERAL_PROCEDURE })
  t.match(found.evidence[0]!.quote, /opened on 12 May 1911/)
  for (const item of found.evidence) t.equal(flawOf(item, text, SOURCE), null)
})

t.test('the procedure names everything that its answers depend on, and is within its length limit', async (t) => {
  t.ok(LITERAL_PROCEDURE.length <= 100)
  t.ok(LITERAL_PROCEDURE.includes(process.versions.icu!) && LITERAL_PROCEDURE.includes(process.versions.unicode!))
})

t.test('an aborted signal ends the assessment', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const signal = AbortSignal.abort()
  const assessed = literalAssessor(threads).assess({ claim: 'x', observation: observationOf('x'), signal })
  await t.rejects(assessed, { name: 'ThreadError', code: 'aborted' })
})

t.test('a thread out of memory gives no verdict; work of a thread lost otherwise is repeated', async (t) => {
  const failing = (code: ThreadError['code']): Threads => ({
    run: () => Promise.reject(new ThreadError(code)),
    queueSize: 0,
    threadCount: 0,
    [Symbol.asyncDispose]: async () => {},
  })
  const assess = (code: ThreadError['code']) =>
    literalAssessor(failing(code)).assess({ claim: 'x', observation: observationOf('x') })
  await t.rejects(assess('out_of_memory'), AppError)
  await t.rejects(assess('exited'), ThreadError)
})
