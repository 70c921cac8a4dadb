// The hosts of FIXTURE_HOSTS: what cannot be dialled is refused at the start, and not with the first purchase.
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { problemsOf } from '../problems.ts'

t.test('names, addresses and ports', async (t) => {
  const { hosts } = readConfig({ FIXTURE_HOSTS: 'Site.test=127.0.0.1:8443,six.test=[::1]:65535' }).fixtures
  t.same(
    [...hosts],
    [
      ['site.test', { address: '127.0.0.1', port: 8443 }],
      ['six.test', { address: '::1', port: 65_535 }],
    ],
  )
  for (const wrong of [
    'a',
    'a=127.0.0.1',
    'a=:1',
    '=127.0.0.1:1',
    'a=127.0.0.1:1,',
    'a=127.0.0.1:0',
    'a=127.0.0.1:65536',
  ])
    t.match(problemsOf({ FIXTURE_HOSTS: wrong }), [/^FIXTURE_HOSTS: must/], wrong)
})
