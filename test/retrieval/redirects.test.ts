import t from 'tap'
import { z } from 'zod'
import { AppError } from '../../server/errors.ts'
import { source } from '../../server/interface/result.ts'
import { fetchSource } from '../../workers/retrieval/fetch.ts'
import { seeded } from '../assessment/fixtures/random.ts'
import { buildCheck } from '../interface.schema.ts'
import { ok, openFixture, type Script } from '../outbound/scripted-server.ts'

const fixture = await openFixture(() => {}, ['page.test', 'other.test'])
t.teardown(() => fixture[Symbol.asyncDispose]())

/** Answers by path: a redirect's headers, or null for the page. */
function serve(routes: Record<string, string | null>): Script {
  return (socket, request) => {
    const [, path = ''] = request.split(' ')
    const host = /host: (.*)\r\n/.exec(request)?.[1]
    const route = routes[`${host}${path}`] ?? routes[path]
    socket.end(typeof route === 'string' ? `HTTP/1.1 ${route}\r\n\r\n` : ok('Content-Length: 5\r\n', 'hello'))
  }
}

async function follow(routes: Record<string, string | null>, url = 'https://page.test/') {
  fixture.server.script = serve(routes)
  fixture.server.requests.length = 0
  const { finalUrl, redirects, hostname } = await fetchSource(url, fixture.outbound)
  return { finalUrl, redirects, hostname }
}

const to = (location: string, status = 302) => `${status} x\r\nLocation: ${location}`

t.test('each of the five statuses is followed, by GET, on a new connection', async (t) => {
  const routes = {
    '/': to('/1', 301),
    '/1': to('/2', 302),
    '/2': to('/3', 303),
    '/3': to('/4', 307),
    '/4': to('/5', 308),
  }
  const accepts = fixture.server.accepts
  const followed = await follow(routes)
  t.same(followed, {
    finalUrl: 'https://page.test/5',
    hostname: 'page.test',
    redirects: [
      { url: 'https://page.test/', status: 301 },
      { url: 'https://page.test/1', status: 302 },
      { url: 'https://page.test/2', status: 303 },
      { url: 'https://page.test/3', status: 307 },
      { url: 'https://page.test/4', status: 308 },
    ],
  })
  t.ok(source.shape.redirects.safeParse(followed.redirects).success)
  t.equal(fixture.server.accepts - accepts, 6)
  for (const { head } of fixture.server.requests) {
    t.match(head, /^GET /)
    t.notMatch(head, /referer|cookie|authorization/i)
  }
})

t.test('five are followed, six are too many, and so is a circle', async (t) => {
  const chain = (length: number) =>
    Object.fromEntries(Array.from({ length }, (_, i) => [i === 0 ? '/' : `/${i}`, to(`/${i + 1}`)]))
  t.equal((await follow(chain(5))).finalUrl, 'https://page.test/5')
  await t.rejects(follow(chain(6)), { code: 'source_too_many_redirects' })
  await t.rejects(follow({ '/': to('/') }), { code: 'source_too_many_redirects' })
  t.equal(fixture.server.requests.length, 6, 'the circle was walked six times')
})

t.test('a target is read against the URL that named it', async (t) => {
  const targets: Record<string, string> = {
    '/x': 'https://page.test/x',
    x: 'https://page.test/a/x',
    './x': 'https://page.test/a/x',
    '../x': 'https://page.test/x',
    '?q': 'https://page.test/a/b?q',
    '//other.test/x': 'https://other.test/x',
    'https://other.test': 'https://other.test/',
    'https://OTHER.test:443/x': 'https://other.test/x',
    'https://other.test./x': 'https://other.test/x',
    'HTTPS://other.test/x': 'https://other.test/x',
    '/x#part': 'https://page.test/x',
    '/a b': 'https://page.test/a%20b',
    '/facts?a|b[c]': 'https://page.test/facts?a%7Cb%5Bc%5D',
    '/100%?q=%zz&r=%2': 'https://page.test/100%25?q=%25zz&r=%252',
    '/^`{}\\"<>': 'https://page.test/%5E%60%7B%7D/%22%3C%3E',
    '/?^`{}\\"<>\'': 'https://page.test/?%5E%60%7B%7D%5C%22%3C%3E%27',
    '/kept?%7c&a%20b': 'https://page.test/kept?%7c&a%20b',
    '/?': 'https://page.test/?',
    // UTF-8 on the wire.
    [Buffer.from('/grün').toString('latin1')]: 'https://page.test/gr%C3%BCn',
    // Not UTF-8: latin1.
    '/gr\xfcn': 'https://page.test/gr%C3%BCn',
    [`/${'a'.repeat(40_000)}`]: `https://page.test/${'a'.repeat(40_000)}`,
  }
  for (const [location, expected] of Object.entries(targets)) {
    fixture.server.script = (socket, request) =>
      request.startsWith('GET /a/b HTTP')
        ? socket.end(Buffer.from(`HTTP/1.1 ${to(location)}\r\n\r\n`, 'latin1'))
        : socket.end(ok('Content-Length: 5\r\n', 'hello'))
    const { finalUrl } = await fetchSource('https://page.test/a/b', fixture.outbound)
    t.equal(finalUrl, expected, encodeURI(location).slice(0, 60))
  }
})

t.test(
  'whatever a page redirects to, what is named is asked for, and is a URI in the eyes of a strict validator',
  async (t) => {
    const check = buildCheck(z.toJSONSchema(source.pick({ final_url: true, redirects: true })))
    const random = seeded(20_261_126)
    const pick = <T>(all: readonly T[]) => all[random(all.length)] as T
    const latin1 = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code))
    const characters = latin1.filter((character) => !/[\0\r\n]/.test(character))
    const pieces = [
      ...characters,
      '%',
      '%4',
      '%zz',
      '%C3%28',
      '[',
      ']',
      '|',
      '\\',
      '^',
      '`',
      '{',
      '}',
      '"',
      '#',
      '?',
      '//',
      '..',
    ]
    const starts = [
      '/',
      '?',
      '',
      '//other.test/',
      'https://page.test/',
      'https:/',
      '/x?',
      '/x#',
      '//page.test?',
      '/x?y#',
    ]
    let named = 0
    for (let round = 0; round < 400; round++) {
      const location = pick(starts) + Array.from({ length: random(12) }, () => pick(pieces)).join('')
      fixture.server.requests.length = 0
      const answers = [Buffer.from(`HTTP/1.1 ${to(location)}\r\n\r\n`, 'latin1'), `HTTP/1.1 ${to('/again')}\r\n\r\n`]
      fixture.server.script = (socket) => socket.end(answers.shift() ?? ok('Content-Length: 5\r\n', 'hello'))
      const followed = await fetchSource('https://page.test/start', fixture.outbound).catch((error) => {
        if (error instanceof AppError) return error.code
        throw error
      })
      const about = JSON.stringify(location)
      if (typeof followed === 'string') {
        t.match(followed, /^source_(redirect_invalid|blocked|protocol_error)$/, about)
        continue
      }
      const { finalUrl: final_url, redirects } = followed
      t.same(check({ final_url, redirects }), [], about)
      const [, asked = ''] = fixture.server.requests[1]?.head.split(' ') ?? []
      const second = new URL(redirects[1]?.url ?? final_url)
      t.equal(asked, second.pathname + second.search, `${about}: what is named is what was asked for`)
      named++
    }
    t.ok(named > 200, `${named} were followed`)
  },
)

t.test('what cannot be followed', async (t) => {
  const invalid: Record<string, string> = {
    'no Location': '302 x',
    'empty Location': to(''),
    'two Locations': `${to('/a')}\r\nLocation: /b`,
    'two equal Locations': `${to('/a')}\r\nLocation: /a`,
    'http:': to('http://page.test/x'),
    'ftp:': to('ftp://page.test/x'),
    'file:': to('file:///etc/passwd'),
    'javascript:': to('javascript:alert(1)'),
    'data:': to('data:text/html,hello'),
    'no URL': to('https://'),
    'no host name': to('https://a!b.page.test/'),
    'too long when escaped': to(`/?${'|'.repeat(20_000)}`),
    'bad port': to('https://page.test:99999/'),
    'too long when written out': to(`/${'"'.repeat(20_000)}`),
  }
  for (const [what, route] of Object.entries(invalid))
    await t.rejects(follow({ '/': route }), { code: 'source_redirect_invalid' }, what)
})

t.test('what may not be followed, at each of the five hops', async (t) => {
  const blocked = [
    ...['https://127.0.0.1/', 'https://[::1]/', 'https://169.254.169.254/latest/meta-data/', 'https://0x7f000001/'],
    ...['https://localhost/', 'https://unknown.test/', 'https://metadata.google.internal/', 'https://router/'],
    ...[
      'https://page.test:8443/',
      'https://user@page.test/',
      'https://user:password@page.test/',
      '//127.1/',
      '//2130706433/',
    ],
  ]
  for (const location of blocked)
    for (const hops of [1, 5]) {
      const routes: Record<string, string> = {}
      for (let hop = 0; hop < hops; hop++)
        routes[hop ? `/${hop}` : '/'] = to(hop + 1 === hops ? location : `/${hop + 1}`)
      await t.rejects(follow(routes), { code: 'source_blocked' }, `${location} at hop ${hops}`)
      t.equal(fixture.server.requests.length, hops)
    }
})

t.test('refresh is no redirect', async (t) => {
  fixture.server.script = (socket) => socket.end(ok('Refresh: 0;url=/x\r\nContent-Length: 5\r\n', 'hello'))
  t.equal((await fetchSource('https://page.test/', fixture.outbound)).finalUrl, 'https://page.test/')
})

t.test('the body of a redirect is not waited for', async (t) => {
  fixture.server.script = (socket, request) =>
    request.startsWith('GET / ')
      ? socket.write('HTTP/1.1 302 x\r\nLocation: /x\r\nContent-Length: 1000000000\r\n\r\nnever ending')
      : socket.end(ok('Content-Length: 5\r\n', 'hello'))
  t.equal((await fetchSource('https://page.test/', fixture.outbound)).finalUrl, 'https://page.test/x')
})

t.test('a redirect to another host verifies that host', async (t) => {
  const { hostname, redirects } = await follow({ 'page.test/': to('https://other.test/'), 'other.test/': null })
  t.equal(hostname, 'other.test')
  t.same(redirects, [{ url: 'https://page.test/', status: 302 }])
  t.same(
    fixture.server.requests.map(({ sni }) => sni),
    ['page.test', 'other.test'],
  )
})
