// The labelled set of `npm run eval` is valid, and an assessor that answers with its labels gets no false quote in it.
import { join } from 'node:path'
import t from 'tap'
import { readLabels } from '../../bench/eval/labels.ts'
import { flawsOf } from '../../bench/eval/score.ts'
import { openThreads } from '../../server/threads/pool.ts'
import { literalAssessor } from '../../workers/assessment/literal/assessor.ts'

const threads = openThreads({ maxThreads: 2 })
t.teardown(() => threads[Symbol.asyncDispose]())

t.test('the set', async (t) => {
  const items = await readLabels([join(import.meta.dirname, '../../bench/eval/countersign.jsonl')], threads)
  t.ok(items.length >= 120, `${items.length} items`)
  t.equal(new Set(items.map(({ id }) => id)).size, items.length)
  for (const label of ['supports', 'contradicts', 'mixed', 'insufficient_evidence'])
    t.ok(items.filter((item) => item.label === label).length >= 5, label)
  for (const kind of ['number', 'date', 'negation', 'table', 'list', 'injection', 'cross-language', 'silent'])
    t.ok(
      items.some((item) => item.kind === kind),
      kind,
    )
  for (const { id, label, passage, attack } of items)
    t.ok(passage !== undefined || label === 'insufficient_evidence' || attack, `${id} says where the page decides`)
  const assessor = literalAssessor(threads)
  for (const item of items.filter((_, i) => i % 5 === 0)) {
    const found = await assessor.assess(item)
    t.same(flawsOf({ item, found, ms: 0 }), [], item.id)
  }
})
