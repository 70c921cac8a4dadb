// While rows are bought and none of them ends, the command says what it waits for.
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { countersign } from './command-line.ts'
import { openLiar, PAGE, refusal } from './liar.ts'
import { ownTime } from './own-time.ts'

const { liar, path } = await openLiar(t)

t.test('a batch of which no row ends', async (t) => {
  const pass = ownTime(t)
  writeFileSync(path('rows.csv'), `source_url,claim\n${PAGE},The bridge is old.\n`)
  liar.lie = {
    paid: () => {
      pass(5000)
      return refusal(422, 'source_empty')
    },
  }
  const to = ['--service', liar.baseUrl, '--wallet', path('wallet.key'), '--budget', '1.00', '--out', path('run')]
  const ran = await countersign(['batch', path('rows.csv'), ...to, '--yes'])
  t.match(ran.stderr, `Waiting for ${liar.baseUrl}: 1 purchase under way.\n`)
})
