// A number of the claim must be in a quote that supports it, in any spelling.
import t from 'tap'
import { openThreads } from '../../../server/threads/pool.ts'
import { absentNumber } from '../../../workers/assessment/semantic/withdrawal.ts'
import { verdictOn } from './messages-server.ts'
import { openLab } from './semantic-lab.ts'

t.test('a number is held in whatever spelling', async (t) => {
  const held: [claim: string, ...quotes: string[]][] = [
    ['It was opened in 1874.', 'Opened 1874.'],
    ['It has 21 rooms.', 'It has twenty-one rooms.'],
    ['It cost 250 pounds.', 'It cost two hundred and fifty pounds.'],
    ['It has 1,200,000 visitors.', '1.2 million people visit it.'],
    ['It has 1.2 million visitors.', '1,234,567 people visit it.'],
    ['The company earned 5.5 billion dollars.', 'Earnings rose to $5,500m.'],
    ['It has 1.200 Plätze.', 'It seats 1 200.'],
    ['It lost 45% of its trade.', 'Its trade fell by 44.7 per cent.'],
    ['50 percent of it burned.', 'Half of it burned.'],
    ['It has about 300 members.', 'It has 312 members.'],
    ['It was founded before 1990.', 'It was founded in 1985.'],
    ['They married in the 1990s.', 'They married in 1994.'],
    ['It was built in the 19th century.', 'It was built in 1874.'],
    ['It is 100 miles long.', 'It is 161 km long.'],
    ['3 ships sailed.', 'The Ann, the Eve and the Ida sailed.'],
    ['It opened on 2019-03-14.', 'It opened on 14 March 2019.'],
    ['Shops close at 17:30.', 'Shops close at half past five.'],
    ['COVID-19 reached it.', 'The disease reached it.'],
    ['It has 2万 residents.', 'It has 20,000 residents.'],
    ['It was not opened in 1901.', 'It was opened in 1874.'],
    ['In 1874 it had 21 rooms.', 'It was built in 1874.', 'It had 21 rooms.'],
    ['The harbour is old.', 'The harbour is old.'],
  ]
  for (const [claim, ...quotes] of held) t.notOk(absentNumber(claim, quotes), `${claim} | ${quotes}`)
})

t.test('a number is absent where the quotes have another one, or none', async (t) => {
  const absent: [claim: string, ...quotes: string[]][] = [
    ['It was opened in 1901.', 'It was opened in 1874.'],
    ['It was opened in 1901.', 'It was opened by the county engineer.'],
    ['It has 5 piers.', 'It has three piers.'],
    ['It has five piers.', 'It has 3 piers.'],
    ['It cost 3 million euros.', 'It cost 30 million euros.'],
    ['It is 40 % full.', 'It is 45 % full.'],
    ['It was the 21st house.', 'It was the 22nd house.'],
    ['They married in the 1990s.', 'They married in 1989.'],
    ['In 1874 it had 21 rooms.', 'It was built in 1874.', 'It had many rooms.'],
    ['它建于1901年。', '它建于1874年。'],
  ]
  for (const [claim, ...quotes] of absent) t.ok(absentNumber(claim, quotes), `${claim} | ${quotes}`)
})

t.test('support without the number is withdrawn; a contradiction is not', async (t) => {
  const threads = openThreads({ maxThreads: 1 })
  t.teardown(() => threads[Symbol.asyncDispose]())
  const text = 'The harbour of Kelby\nThe harbour was opened in 1874.\nIt burned in 1901.'
  await using lab = await openLab(threads, (asked) => verdictOn(asked, 'opened in 1874', 'supports'))
  const claim = 'The harbour was opened in 1901.'
  const withdrawn = await lab.assess(claim, text)
  t.match(withdrawn, { claim_support: 'insufficient_evidence', risk_flags: ['number_not_quoted', 'verdict_lowered'] })
  t.match(withdrawn.evidence, [{ stance: 'mentions', quote: 'The harbour was opened in 1874.' }])
  t.match(withdrawn.explanation, /withdrawn\. None of the lines that the model named .* holds a number/)
  const right = await lab.assess('The harbour was opened in 1874.', text)
  t.match(right, { claim_support: 'supports', risk_flags: [] })
  lab.server.script = (asked) => verdictOn(asked, 'opened in 1874', 'contradicts', 'other_value')
  t.match(await lab.assess(claim, text), { claim_support: 'contradicts', risk_flags: [] })
})
