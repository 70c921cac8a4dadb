// Hosts of FIXTURE_HOSTS and their certificates: what cannot be used is refused at the start, and not with the first purchase.
import { join } from 'node:path'
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

t.test('certificates', async (t) => {
  const folder = t.testdir({
    'text.txt': 'no certificate',
    'broken.pem': '-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----',
  })
  const problems = (name: string) => problemsOf({ FIXTURE_CA_FILE: join(folder, name) })
  t.same(problems('text.txt'), ['FIXTURE_CA_FILE: the file holds no certificate in PEM.'])
  t.same(problems('broken.pem'), ['FIXTURE_CA_FILE: a certificate in the file cannot be read.'])
  t.match(problems('missing.pem'), [/^FIXTURE_CA_FILE: cannot be read \(ENOENT\)/])
})
