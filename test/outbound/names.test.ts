// Name resolution against a DNS server of the test.
import t, { type Test } from 'tap'
import { buildNames } from '../../server/outbound/names.ts'
import { openNameServer, type Zone } from './name-server.ts'

const forever = new AbortController().signal

async function setUp(t: Test, zone: Zone) {
  const server = await openNameServer(zone)
  t.teardown(() => server[Symbol.asyncDispose]())
  return { server, names: buildNames([server.address]) }
}

t.test('both families are asked once, repeats dropped', async (t) => {
  const { server, names } = await setUp(t, {
    'example.com': { A: ['93.184.216.34', '93.184.216.34', '93.184.216.35'], AAAA: ['2606:4700::1'] },
  })
  t.same(await names.findAddresses('example.com', forever), ['93.184.216.34', '93.184.216.35', '2606:4700::1'])
  t.same(server.questions.toSorted(), ['example.com A', 'example.com AAAA'])
})

t.test('an alias is followed to its addresses', async (t) => {
  const { names } = await setUp(t, { 'www.example.com': { cname: 'cdn.example.net', A: ['10.0.0.1'] } })
  t.same(await names.findAddresses('www.example.com', forever), ['10.0.0.1'])
})

t.test('one family may fail', async (t) => {
  const { names } = await setUp(t, {
    'v4.example.com': { A: ['1.1.1.1'] },
    'v6.example.com': { AAAA: ['2606:4700::1'] },
  })
  t.same(await names.findAddresses('v4.example.com', forever), ['1.1.1.1'])
  t.same(await names.findAddresses('v6.example.com', forever), ['2606:4700::1'])
})

t.test('a name without an address is source_dns_failed', async (t) => {
  const { names } = await setUp(t, { 'empty.example.com': {}, 'broken.example.com': { rcode: 2 } })
  for (const [name, code] of [
    ['missing.example.com', 'ENOTFOUND'],
    ['empty.example.com', 'ENODATA'],
    ['broken.example.com', 'ESERVFAIL'],
  ] as const)
    await t.rejects(names.findAddresses(name, forever), {
      code: 'source_dns_failed',
      message: `"${name}" does not resolve to an address.`,
      cause: { code },
    })
})

t.test('the hosts file is not read, and addresses are not names', async (t) => {
  const { server, names } = await setUp(t, {})
  for (const name of ['localhost', '127.0.0.1', '2130706433'])
    await t.rejects(names.findAddresses(name, forever), { code: 'source_dns_failed' })
  t.ok(server.questions.includes('localhost A'), 'DNS was asked about localhost')
})

t.test('an abort ends the question at once', async (t) => {
  const { names } = await setUp(t, { 'slow.example.com': { silent: true } })
  const controller = new AbortController()
  const reason = new Error('enough')
  const asked = names.findAddresses('slow.example.com', controller.signal)
  controller.abort(reason)
  await t.rejects(asked, reason)
  await t.rejects(names.findAddresses('slow.example.com', controller.signal), reason, 'nor is it begun')
})

t.test('no answer is cached: the same name is asked again', async (t) => {
  const flip: Zone = { 'flip.example.com': (before) => ({ A: [before === 0 ? '1.1.1.1' : '127.0.0.1'] }) }
  const { names } = await setUp(t, flip)
  t.same(await names.findAddresses('flip.example.com', forever), ['1.1.1.1'])
  t.same(await names.findAddresses('flip.example.com', forever), ['127.0.0.1'])
})

t.test("the network's NAT64 prefix is found by ipv4only.arpa, for each length of RFC 6052", async (t) => {
  // 192.0.0.170 and .171 under 2001:db8::/32's places, as table 2 of the RFC has them, in global unicast space.
  const prefixes: [length: number, wellKnown: string, within: string, outside: string][] = [
    [32, '2a00:db8:c000:aa::', '2a00:db8:7f00:1::', '2a00:db9:7f00:1::'],
    [40, '2a00:db8:1c0:0:aa::', '2a00:db8:17f:0:1::', '2a00:db8:27f:0:1::'],
    [48, '2a00:db8:122:c000:0:aa00::', '2a00:db8:122:7f00:0:100::', '2a00:db8:123:7f00:0:100::'],
    [56, '2a00:db8:122:3c0:0:ab::', '2a00:db8:122:37f:0:1::', '2a00:db8:122:47f:0:1::'],
    [64, '2a00:db8:122:344:c0:0:aa00::', '2a00:db8:122:344:7f:0:100::', '2a00:db8:122:345:7f:0:100::'],
    [96, '2a00:db8:122:344::192.0.0.171', '2a00:db8:122:344::127.0.0.1', '2a00:db8:122:344:0:1:127.0.0.1'],
  ]
  for (const [length, wellKnown, within, outside] of prefixes) {
    const { names } = await setUp(t, { 'ipv4only.arpa': { AAAA: [wellKnown] } })
    t.equal(await names.isNat64(within, forever), true, `/${length} within`)
    t.equal(await names.isNat64(outside, forever), false, `/${length} outside`)
  }
})

t.test('a network without NAT64 has no prefix, and is asked once', async (t) => {
  const { server, names } = await setUp(t, { 'ipv4only.arpa': { A: ['192.0.0.170'] } })
  t.equal(await names.isNat64('2606:4700::1', forever), false)
  t.equal(await names.isNat64('2606:4700::2', forever), false)
  t.same(server.questions, ['ipv4only.arpa AAAA'])
})

t.test('without an answer about NAT64 resolving fails, and the next call asks again', async (t) => {
  const { server, names } = await setUp(t, { 'ipv4only.arpa': (before) => (before < 2 ? { rcode: 2 } : {}) })
  await t.rejects(names.isNat64('2606:4700::1', forever), { code: 'source_dns_failed' })
  server.zone = {}
  t.equal(await names.isNat64('2606:4700::1', forever), false)
})
