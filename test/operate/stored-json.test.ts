// What operators see of requests whose claim has U+0000, or reads like JSON: Postgres takes no member out of JSON with U+0000 in it.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { auditAll } from '../../server/operate/audit.ts'
import { pageRequests } from '../../server/operate/request-pages.ts'
import { listRequests, showRequest } from '../../server/operate/requests.ts'
import { listFailingHosts } from '../../server/operate/week.ts'
import { openWork } from '../../workers/context.ts'
import { openApiHarness } from '../api-harness.ts'
import { openQueue } from '../queue.ts'
import { SITE_NAME } from '../site.ts'
import { payingFetch } from '../system.ts'

const CLAIM = 'opened\u0000 in 1874", "source_url":"https://other.test/", "attestation":{"serial":7}}'

t.test('requests, their hosts and their receipts are shown and audited', async (t) => {
  await using front = await openApiHarness()
  await using work = await openWork(front.core)
  await using queue = await openQueue(work)
  const { db } = front.core
  const order = async (path: string, paying = true) => {
    const body = { source_url: front.site.url(path), claim: CLAIM }
    const answer = await front.ask({ key: randomUUID(), body, ...(paying && { fetch: payingFetch() }) })
    return ((await answer.json()) as { request_id: string }).request_id
  }
  const unpaid = await order('/harbour', false)
  const completed = await order('/harbour')
  const failed = await order('/missing')
  await queue.drain()

  const states = (rows: readonly { id: string; state: string }[]) => rows.map(({ id, state }) => [id, state]).sort()
  const expected = [
    [unpaid, 'quoted'],
    [completed, 'completed'],
    [failed, 'failed'],
  ].sort()
  const listed = await listRequests(db, { limit: 10 })
  t.same(states(listed), expected)
  t.ok(listed.every(({ host }) => host === SITE_NAME))
  t.same(states(await listRequests(db, { limit: 10, host: SITE_NAME })), expected)
  t.same(await listRequests(db, { limit: 10, host: 'other.test' }), [])
  t.same(states((await pageRequests(db, { limit: 10, text: SITE_NAME })).requests), expected)
  t.match(await listFailingHosts(db, 5), [{ host: SITE_NAME, count: 1, codes: ['source_http_status'] }])
  t.match(await showRequest(db, completed), { host: SITE_NAME, receipt_serial: 1 })
  const { checked, faults } = await auditAll(db, { signatures: 'every' })
  t.same(faults, [])
  t.equal(checked.result_has_receipt, 1)
})
