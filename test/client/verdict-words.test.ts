// The head of a result: a verdict, or why the service gave none, in the same words wherever results are shown.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { describeDocument } from '../../client/document-words.ts'
import { cardOf } from '../../client/page/result/card-result.ts'
import { headInWords, VERDICT_WORDS, withheldInWords } from '../../client/verdict-words.ts'
import { summarizeResult } from '../../server/mcp/summary.ts'
import { explainedFlags } from '../../server/verification/offer/risk-flag-advice.ts'

const { local } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../server/pages/examples/example-results.json'), 'utf8'),
)
const doubted = { ...local, claim_support: 'insufficient_evidence', evidence: [], risk_flags: ['page_checks_claims'] }
const WITHHELD = 'No verdict, because the page checks what others claim'

t.test('each flag that says that there is no verdict is in the head of a result, and no other', async (t) => {
  const withheld = explainedFlags.filter(({ name }) =>
    ['insufficient_evidence', 'not_assessed'].some((claim_support) =>
      withheldInWords({ claim_support, risk_flags: [name], methodology_version: 'text-3 local-1' }),
    ),
  )
  const saying = explainedFlags.filter(({ meaning }) =>
    /no verdict|was withheld|nothing was judged|not be assessed/.test(meaning),
  )
  const names = (flags: typeof withheld) => [...new Set(flags.map(({ name }) => name))].sort()
  t.same(names(withheld), names(saying))
})

t.test('a page that does not say enough, and a verdict that was given, have their words', async (t) => {
  const head = (claim_support: string, ...risk_flags: string[]) =>
    headInWords({ claim_support, risk_flags, methodology_version: 'text-3 semantic-14' })
  t.equal(head('insufficient_evidence', 'low_text', 'verdict_lowered'), VERDICT_WORDS.insufficient_evidence)
  t.equal(head('mixed', 'page_checks_claims'), VERDICT_WORDS.mixed)
  t.equal(
    head('insufficient_evidence', 'language_not_supported'),
    VERDICT_WORDS.insufficient_evidence,
    'a language model was asked',
  )
  t.equal(head('unheard_of'), '“unheard_of”')
})

t.test('a verdict that was withheld is not said to be what the page says', async (t) => {
  t.match(cardOf(doubted), { claims: [{ head: WITHHELD }] })
  const { claim, claim_support, explanation, evidence, risk_flags } = doubted
  const one = { claim, claim_support, explanation, evidence, risk_flags }
  t.match(cardOf({ ...doubted, claims: [one, one] }), {
    overview: '2 claims: 2 without a verdict',
    claims: [{ head: WITHHELD }, { head: WITHHELD }],
    shared_flags: ['page_checks_claims'],
  })
  t.match(describeDocument(JSON.stringify(doubted)).words, { Verdict: `insufficient_evidence: ${WITHHELD}` })
  t.match(
    describeDocument(JSON.stringify({ ...doubted, risk_flags: 'page_checks_claims', methodology_version: 1 })).words,
    { Verdict: `insufficient_evidence: ${VERDICT_WORDS.insufficient_evidence}` },
    'flags of another form',
  )
  t.match(summarizeResult(doubted, 'https://service.example'), `insufficient_evidence (${WITHHELD})`)
})
