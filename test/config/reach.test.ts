// From where a service in offline mode can be reached, and what it says when that is not this machine alone.
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { isLoopback } from '../../server/config/reach.ts'
import { readConfig } from '../../server/config.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { problemsOf } from '../problems.ts'

const LIVE = { SIGNING_SEED: '0'.repeat(64), PAY_TO_EVM: `0x${'11'.repeat(20)}` }

t.test('which addresses only this machine reaches', async (t) => {
  for (const host of ['127.0.0.1', '127.8.9.10', 'localhost', 'LOCALHOST', '::1', '[::1]', '::ffff:127.0.0.1'])
    t.ok(isLoopback(host), host)
  for (const host of [
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '127.0.0.1.example',
    'localhost.example',
    '1270.0.0.1',
    '192.168.127.0',
  ])
    t.notOk(isLoopback(host), host)
})

t.test('offline mode on another address needs OFFLINE_PUBLIC, and the error says so', async (t) => {
  for (const HOST of ['0.0.0.0', '::', '192.0.2.1', 'verify.example']) {
    t.match(problemsOf({ HOST }), [/^HOST: .*OFFLINE_PUBLIC=1/], HOST)
    t.same(problemsOf({ HOST, OFFLINE_PUBLIC: '1' }), [])
    const live = { ...LIVE, PAYMENT_MODE: 'testnet', BASE_URL: 'https://verify.example' }
    t.same(problemsOf({ ...live, HOST }), [], 'other modes listen where they like')
  }
  t.equal(readConfig({}).offlinePublic, false)
  t.equal(readConfig({ OFFLINE_PUBLIC: '1' }).offlinePublic, true)
})

t.test('a public address that no link can begin with, and a recipient that nothing reaches, are refused', async (t) => {
  const live = { ...LIVE, PAYMENT_MODE: 'testnet', BASE_URL: 'https://verify.example' }
  for (const BASE_URL of [
    'https://u:p@verify.example',
    'https://u@verify.example',
    'https://verify.example?x',
    'https://verify.example/#x',
  ])
    t.match(
      problemsOf({ ...live, BASE_URL }),
      [/^BASE_URL: must be an address without a user name, a query and a fragment/],
      BASE_URL,
    )
  t.same(problemsOf({ ...live, BASE_URL: 'https://verify.example:8443/path/' }), [])
  const right = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  for (const PAY_TO_EVM of [right, right.toLowerCase(), `0x${right.slice(2).toUpperCase()}`])
    t.same(problemsOf({ ...live, PAY_TO_EVM }), [], PAY_TO_EVM)
  const mistaken = { [right.replace('BeA', 'Bea')]: /wrong checksum/, [right.replace('5aA', '6aA')]: /wrong checksum/ }
  for (const [PAY_TO_EVM, said] of Object.entries({ ...mistaken, [`0x${'0'.repeat(40)}`]: /zero address/ }))
    t.match(problemsOf({ ...live, PAY_TO_EVM }), [said], PAY_TO_EVM)
})

t.test('limits hold in every mode, unless they are switched off', async (t) => {
  t.equal(readConfig({}).rateLimitPerMinute, 600)
  t.equal(readConfig({ RATE_LIMIT_PER_MINUTE: '0' }).rateLimitPerMinute, 0)
})

t.test(
  'the public address comes from the platform where it names one, and is never this machine in a live mode',
  async (t) => {
    const live = { ...LIVE, PAYMENT_MODE: 'testnet' }
    const addresses = {
      HEROKU_APP_DEFAULT_DOMAIN_NAME: ['app-1a2b.herokuapp.com', 'https://app-1a2b.herokuapp.com'],
      HEROKU_APP_NAME: ['app', 'https://app.herokuapp.com'],
      RENDER_EXTERNAL_URL: ['https://app.onrender.com/', 'https://app.onrender.com'],
      RAILWAY_PUBLIC_DOMAIN: ['app.up.railway.app', 'https://app.up.railway.app'],
      FLY_APP_NAME: ['app', 'https://app.fly.dev'],
    }
    for (const [name, [given = '', address]] of Object.entries(addresses)) {
      t.equal(readConfig({ ...live, [name]: given }).baseUrl, address, name)
      t.equal(readConfig({ ...live, [name]: given, BASE_URL: 'https://own.example' }).baseUrl, 'https://own.example')
    }
    t.match(problemsOf(live), [/BASE_URL is required/])
    t.match(problemsOf({ ...live, BASE_URL: 'https://127.0.0.1:8402' }), [/BASE_URL: .* this machine/])
  },
)

t.test('where it may be reached, every answer and every page say so', async (t) => {
  await using office = await openAccountHarness({ OFFLINE_PUBLIC: '1', OPERATOR_TOKEN: '' })
  const paths = [
    '/',
    '/v1/keys',
    '/healthz',
    '/nothing',
    '/%zz',
    '/mcp',
    '/guide',
    '/chain',
    '/account',
    '/llms.txt',
    '/openapi.json',
  ]
  for (const path of paths) {
    const answer = await fetch(new URL(path, office.address))
    t.equal(answer.headers.get('x-service-payment-mode'), 'offline', path)
    const text = await answer.text()
    if (answer.headers.get('content-type')?.startsWith('text/html')) t.match(text, /Nothing is really paid here/, path)
  }
  for (const request of [
    'GET / HTTP/1.1\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n',
    'nothing\r\n\r\n',
  ]) {
    const socket = connect(Number(new URL(office.address).port), '127.0.0.1')
    socket.write(request)
    const [bytes] = await once(socket, 'data')
    t.match(String(bytes).toLowerCase(), /^http\/1\.1 400 [\s\S]*x-service-payment-mode: offline\r\n/, request)
    socket.destroy()
  }
  t.equal((await fetch(new URL('/metrics', office.address))).status, 404, 'metrics are closed')
})

t.test('on this machine alone, nothing says so', async (t) => {
  await using office = await openAccountHarness()
  const answer = await fetch(new URL('/', office.address))
  t.equal(answer.headers.get('x-service-payment-mode'), null)
  t.notMatch(await answer.text(), /Nothing is really paid here/)
  t.equal((await fetch(new URL('/metrics', office.address))).status, 200)
})
