// No packet goes to an address that is not public, wherever names resolve and pages redirect to. Canaries on loopback and on
// private addresses count the connections that they get. Where the system allows it, this runs in a network namespace in which
// public addresses lead to a local server; then only the name server and the CA are those of the test. Elsewhere the `seams` of
// openOutbound replace ports and addresses.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, isIP, type LookupFunction } from 'node:net'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Agent, request, setGlobalDispatcher } from 'undici'
import { makeCa, makeCertificate } from '../../server/fixture-tls.ts'
import { isPublicAddress } from '../../server/outbound/addresses.ts'
import { openOutbound } from '../../server/outbound/connection.ts'
import { buildNames } from '../../server/outbound/names.ts'
import { noFixtures } from '../../server/outbound/url-policy.ts'
import { fetchSource } from '../../workers/retrieval/fetch.ts'
import { openNameServer, type Zone } from './name-server.ts'
import { ok, openServer, type Script } from './scripted-server.ts'

const PUBLIC = '93.184.216.34'
const PUBLIC6 = '2606:2800:220:1:248:1893:25c8:1946'
const OWN = '93.184.217.1'
const PRIVATE = [
  ...['127.0.0.1', '127.0.0.53', '10.0.0.1', '169.254.169.254', '192.168.1.1', '100.100.100.200', '168.63.129.16'],
  ...['::1', 'fd00:ec2::254', '64:ff9b::7f00:1', '2002:7f00:1::', '2001:db8::1'],
]
const PROXY_PORT = 3128

// The addresses of the tests are local to the namespace but not on an interface, so they do not count as this machine's. OWN
// is on an interface.
const NAMESPACE_SETUP = [
  'set -e',
  'ip link set lo up',
  'echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind',
  ...[PUBLIC, PUBLIC6, ...PRIVATE]
    .filter((address) => !address.startsWith('127.') && address !== '::1')
    .map((address) => `ip ${address.includes(':') ? '-6 ' : ''}route add local ${address} dev lo`),
  `ip addr add ${OWN}/32 dev lo`,
  'exec "$@"',
].join('\n')

function spawnCases() {
  const unshare = [['-n'], ['-rn']].find(
    (flags) => spawnSync('unshare', [...flags, 'sh', '-c', NAMESPACE_SETUP, 'sh', 'true']).status === 0,
  )
  const self = [process.execPath, fileURLToPath(import.meta.url), 'inside']
  const [command = '', ...args] = unshare
    ? ['unshare', ...unshare, 'sh', '-c', NAMESPACE_SETUP, 'sh', ...self, 'namespace']
    : [...self, 'seams']
  t.comment(unshare ? 'in a network namespace' : 'by seams: no network namespace can be made here')
  const proxy = `http://127.0.0.1:${PROXY_PORT}`
  // Variables that make other clients use a proxy.
  const astray = { HTTPS_PROXY: proxy, https_proxy: proxy, ALL_PROXY: proxy, NODE_USE_ENV_PROXY: '1' }
  const env = { ...process.env, ...astray, NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' }
  t.spawn(command, args, { env }, unshare ? 'guard, in a network namespace' : 'guard, by seams')
}

/** Counts connections and answers none. Undefined where the address does not exist, as on a machine without IPv6. */
async function openCanary(host: string, port: number) {
  const canary = { port: 0, accepts: 0 }
  const server = createServer((socket) => {
    canary.accepts++
    socket.destroy()
  })
  server.listen(port, host)
  const listening = await once(server, 'listening').catch((error) => t.comment(`no canary on ${host}: ${error.code}`))
  if (!listening) return
  canary.port = (server.address() as AddressInfo).port
  t.teardown(() => server.close())
  return canary
}

/** Names that have a certificate, and their DNS records: at most the first answer is public. */
const zone: Zone = {
  'good.example.com': { A: [PUBLIC] },
  'good6.example.com': { AAAA: [PUBLIC6] },
  'both.example.com': { A: [PUBLIC], AAAA: [PUBLIC6] },
  'uncertified.example.net': { A: [PUBLIC] },
  'alias.example.com': { cname: 'internal.example.net', A: ['10.0.0.1'] },
  'good-alias.example.com': { cname: 'cdn.example.net', A: [PUBLIC] },
  'mixed.example.com': { A: [PUBLIC, '127.0.0.1'] },
  'mixed-first.example.com': { A: ['169.254.169.254', PUBLIC] },
  'aaaa.example.com': { A: [PUBLIC], AAAA: ['::1'] },
  'ula.example.com': { A: [PUBLIC], AAAA: ['fd00:ec2::254'] },
  'mapped.example.com': { A: [PUBLIC], AAAA: ['::ffff:7f00:1'] },
  'nat64.example.com': { AAAA: ['64:ff9b::7f00:1'] },
  '6to4.example.com': { AAAA: ['2002:7f00:1::'] },
  ...Object.fromEntries(
    PRIVATE.map((address, i) => [`private${i}.example.com`, { [isIP(address) === 4 ? 'A' : 'AAAA']: [address] }]),
  ),
  ...flips(20),
}

/** Names that resolve to a public address at the first question and to loopback afterwards. */
function flips(count: number): Zone {
  const flip = (before: number) => (before === 0 ? { A: [PUBLIC] } : { A: ['127.0.0.1'], AAAA: ['::1'] })
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`flip${i}.example.com`, flip]))
}

async function openGround(namespaced: boolean) {
  const ca = await makeCa()
  const certificate = await makeCertificate(ca, ['*.example.com'])
  const first = (await openCanary('127.0.0.1', namespaced ? 443 : 0))!
  const { port } = first
  const others = namespaced ? PRIVATE.filter((address) => address !== '127.0.0.1') : ['::1']
  const canaries = [first, ...(await Promise.all(others.map((address) => openCanary(address, port))))]
  const server = await openServer(() => {}, certificate, { host: namespaced ? PUBLIC : '127.0.0.2', port })
  const server6 = namespaced ? await openServer(() => {}, certificate, { host: PUBLIC6, port }) : server
  const names = await openNameServer(zone, { host: '127.0.0.1', port: namespaced ? 53 : 0 })
  const bent = { port, dial: new Map([PUBLIC, PUBLIC6].map((address) => [address, '127.0.0.2'])) }
  const seams = { nameServers: [names.address], ca: ca.cert, ...(namespaced ? {} : bent) }
  const outbound = openOutbound({ fixtures: noFixtures, seams })
  t.teardown(async () => {
    await outbound[Symbol.asyncDispose]()
    for (const opened of new Set([server, server6])) await opened[Symbol.asyncDispose]()
    await names[Symbol.asyncDispose]()
  })
  const serve = (script: Script) => {
    server.script = server6.script = script
  }
  return {
    outbound,
    names,
    server,
    server6,
    port,
    ca,
    serve,
    canaries,
    alarms: () => sum(canaries.map((canary) => canary?.accepts ?? 0)),
  }
}

const sum = (numbers: number[]) => numbers.reduce((total, n) => total + n, 0)
const hello: Script = (socket) => socket.end(ok('Content-Length: 5\r\n', 'hello'))

async function runCases(namespaced: boolean) {
  const ground = await openGround(namespaced)
  const proxy = await openCanary('127.0.0.1', namespaced ? PROXY_PORT : 0)
  // The service must not use undici's global dispatcher.
  setGlobalDispatcher(
    new Agent({ connect: (_options, callback) => callback(new Error('global dispatcher used'), null) }),
  )

  /** A case in which no canary may be touched. */
  const safely = (name: string, run: (t: Test) => Promise<void>) =>
    t.test(name, async (t) => {
      ground.serve(hello)
      ground.names.questions.length = 0
      ground.server.requests.length = 0
      await run(t)
      t.equal(ground.alarms(), 0, 'connections to canaries')
      t.equal(proxy?.accepts, 0, 'connections to the proxy')
    })
  const fetchPage = (url: string) => fetchSource(url, ground.outbound, { limits: { socketTimeoutMs: 2000 } })
  const blocked = { code: 'source_blocked' }

  safely('public addresses are reached, by their name', async (t) => {
    for (const name of ['good', 'good6', 'both', 'good-alias']) {
      const { hops } = await fetchPage(`https://${name}.example.com/`)
      if (namespaced) t.ok([PUBLIC, PUBLIC6].includes(hops[0]!.address), `${name} reached at ${hops[0]?.address}`)
    }
    const seen = [...ground.server.requests, ...(namespaced ? ground.server6.requests : [])]
    for (const { sni, head } of seen) t.match(head, `host: ${sni}\r\n`)
    t.same(
      seen.map(({ sni }) => sni).toSorted(),
      ['both', 'good-alias', 'good', 'good6'].map((name) => `${name}.example.com`),
    )
  })

  safely('a certificate is checked although the environment says otherwise', async (t) => {
    t.equal(process.env.NODE_TLS_REJECT_UNAUTHORIZED, '0')
    await t.rejects(fetchPage('https://uncertified.example.net/'), { code: 'source_tls_invalid' })
  })

  safely('names that lead to private addresses, alone, mixed, by alias or embedded', async (t) => {
    const { accepts } = ground.server
    const names = [
      'alias',
      'mixed',
      'mixed-first',
      'aaaa',
      'ula',
      'mapped',
      'nat64',
      '6to4',
      ...PRIVATE.map((_, i) => `private${i}`),
    ]
    for (const name of names) await t.rejects(fetchPage(`https://${name}.example.com/`), blocked, name)
    t.equal(ground.server.accepts, accepts, 'no connection was made')
  })

  safely('a name whose address changes is resolved for each fetch, and refused then', async (t) => {
    await fetchPage('https://flip0.example.com/')
    t.same(ground.names.questions.toSorted(), ['flip0.example.com A', 'flip0.example.com AAAA'])
    await t.rejects(fetchPage('https://flip0.example.com/'), blocked, 'no cache keeps the old answer')
  })

  safely('no connection is kept for a name whose address changes', async (t) => {
    ground.serve((socket) => socket.write(ok('Connection: keep-alive\r\nContent-Length: 5\r\n', 'hello')))
    await fetchPage('https://flip1.example.com/')
    const { accepts } = ground.server
    await t.rejects(fetchPage('https://flip1.example.com/'), blocked)
    t.equal(ground.server.accepts, accepts)
  })

  safely('many names and many fetches do not exhaust the guard', async (t) => {
    // Eight at a time: 64 handshakes at once could exceed the connect timeout on a busy machine.
    for (let n = 0; n < 8; n++)
      await Promise.all(Array.from({ length: 8 }, () => fetchPage('https://both.example.com/')))
    for (let i = 2; i < 12; i++) await fetchPage(`https://flip${i}.example.com/`)
    for (let i = 2; i < 12; i++) await t.rejects(fetchPage(`https://flip${i}.example.com/`), blocked)
  })

  safely('redirects at each of the six hops, to addresses and to names', async (t) => {
    const literals = [
      '127.0.0.1',
      '[::1]',
      '169.254.169.254',
      '[64:ff9b::7f00:1]',
      '10.0.0.1',
      '0x7f.1',
      '[::ffff:127.0.0.1]',
    ]
    const targets = [...literals, 'private0.example.com', 'mixed.example.com', 'aaaa.example.com', 'flip0.example.com']
    for (const target of targets)
      for (let hops = 0; hops < 6; hops++) {
        ground.serve((socket, request) => {
          const hop = Number(/^GET \/(\d*)/.exec(request)?.[1] ?? 0) + 1
          socket.end(`HTTP/1.1 302 x\r\nLocation: ${hop >= hops ? `https://${target}/` : `/${hop}`}\r\n\r\n`)
        })
        const start = hops === 0 ? `https://${target}/` : 'https://good.example.com/0'
        await t.rejects(fetchPage(start), blocked, `${target} after ${hops} redirects`)
      }
  })

  safely('a redirect to itself by a name whose address changes', async (t) => {
    ground.serve((socket) => socket.end('HTTP/1.1 302 x\r\nLocation: /again\r\n\r\n'))
    await t.rejects(fetchPage('https://flip12.example.com/'), blocked)
    t.equal(ground.server.requests.length, 1)
  })

  safely('a retry does not ask DNS again', async (t) => {
    ground.serve((socket) => socket.destroy())
    await t.rejects(fetchPage('https://flip13.example.com/'), { code: 'source_unreachable' })
    t.equal(ground.server.requests.length, 2)
    t.same(ground.names.questions.toSorted(), ['flip13.example.com A', 'flip13.example.com AAAA'])
  })

  safely('addresses as hosts, in every spelling', async (t) => {
    const parts = [
      ['127', '0177', '0x7f'],
      ['0', '00', '0x0'],
      ['0', '000', '0x00'],
      ['1', '01', '0x1'],
    ]
    const spell = (heads: string[], part: string[]) =>
      heads.flatMap((head) => part.map((text) => (head ? `${head}.${text}` : text)))
    const spellings = [
      ...parts.reduce(spell, ['']),
      '127.1',
      '127.0.1',
      '2130706433',
      '0x7f000001',
      '017700000001',
      '①②⑦.⓪.⓪.①',
    ]
    for (const host of [...spellings, ...PRIVATE.map((address) => (address.includes(':') ? `[${address}]` : address))])
      await t.rejects(fetchPage(`https://${host}/`), blocked, encodeURI(host))
    t.same(ground.names.questions, [], 'DNS was not even asked')
  })

  if (namespaced)
    safely("the machine's own addresses, as its interfaces have them now", async (t) => {
      const own = openOutbound({
        fixtures: noFixtures,
        seams: { nameServers: [ground.names.address], ca: ground.ca.cert },
      })
      ground.names.zone = { ...zone, 'own.example.com': { A: [OWN] } }
      const error = await fetchSource('https://own.example.com/', own).catch((thrown) => thrown)
      t.match(error, { code: 'source_blocked', cause: /of this machine/ })
      await own[Symbol.asyncDispose]()
    })

  // Last, because these connect to the canaries on purpose: they show that the canaries count.
  t.test('control: a client that checks and then connects by name reaches a canary', async (t) => {
    const names = buildNames([ground.names.address])
    const forever = new AbortController().signal
    const lookup: LookupFunction = (hostname, _options, callback) =>
      void names.findAddresses(hostname, forever).then((found) =>
        callback(
          null,
          found.map((a) => ({ address: a, family: isIP(a) })),
        ),
      )
    const checked = await names.findAddresses('flip14.example.com', forever)
    t.ok(checked.every(isPublicAddress), 'the check passes')
    const dispatcher = new Agent({ connect: { lookup } })
    await t.rejects(request(`https://flip14.example.com:${ground.port}/`, { dispatcher }))
    t.ok(ground.alarms() > 0, `${ground.alarms()} connections to canaries`)
    await dispatcher.destroy()
  })

  t.test('control: a check in `lookup` alone is not called for addresses', async (t) => {
    const before = ground.alarms()
    const lookup: LookupFunction = (_hostname, _options, callback) => callback(new Error('refused'), [])
    const dispatcher = new Agent({ connect: { lookup } })
    await t.rejects(request(`https://127.0.0.1:${ground.port}/`, { dispatcher }))
    t.equal(ground.alarms() - before, 1)
    await dispatcher.destroy()
  })
}

if (process.argv[2] === 'inside') await runCases(process.argv[3] === 'namespace')
else spawnCases()
