// The published vectors of verdicts: the verifier still makes them, logits included.
import t from 'tap'
import { procedureOf } from '../../../workers/assessment/local/settings.ts'
import { loadVerifier } from '../../../workers/assessment/local/verifier.ts'
import { readVerifierFiles, settings } from '../../../workers/assessment/local/weights.ts'
import { LONG } from '../../long.ts'
import { readVerdictVectors, verdictVector } from '../../vectors/verdict.ts'

const { weights_sha256, procedure, cases } = readVerdictVectors()

t.test('the vectors are of the weights and the procedure in force, and show every outcome', async (t) => {
  t.same([weights_sha256, procedure], [settings.weights_sha256, procedureOf(settings)])
  t.equal(cases.length, 11)
  t.same([...new Set(cases.map(({ assessment }) => assessment.claim_support))].sort(), [
    'contradicts',
    'insufficient_evidence',
    'mixed',
    'supports',
  ])
  t.same(cases.flatMap(({ assessment }) => assessment.risk_flags).sort(), [
    'language_not_supported',
    'page_checks_claims',
  ])
})

t.test('each is made again to the bit', async (t) => {
  await using verifier = await loadVerifier(readVerifierFiles())
  // A verdict takes a second of a core: the first, one with an emoji before its quotes, and the flagged ones, outside long runs.
  for (const one of LONG ? cases : [cases[0], cases[6], ...cases.slice(9)])
    if (one) t.same(await verdictVector(verifier, one.text, one.claim), one, one.claim)
})
