// The URL policy: what is accepted, how it is read, and what is refused with which code.
import t from 'tap'
import { AppError } from '../../server/errors.ts'
import { type Fixtures, hostOf, noFixtures, parsePublicUrl } from '../../server/outbound/url-policy.ts'

/** The error code with which a URL is refused, or the URL as it is read. */
function judge(raw: string, fixtures: Fixtures = noFixtures): string {
  try {
    return parsePublicUrl(raw, fixtures).href
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    // The interface allows messages of 2,000 characters.
    return error.message.length <= 2000 ? error.code : 'message too long'
  }
}

t.test('public URLs pass, and are read as browsers read them', async (t) => {
  const read: [string, string][] = [
    ['https://example.com', 'https://example.com/'],
    ['https://example.com/', 'https://example.com/'],
    ['https://example.com?q', 'https://example.com/?q'],
    ['https://example.com#f', 'https://example.com/#f'],
    ['https://EXAMPLE.com/A?b=C#d', 'https://example.com/A?b=C#d'],
    ['https://example.com:443/', 'https://example.com/'],
    ['https://example.com:0443/', 'https://example.com/'],
    ['https://example.com:/', 'https://example.com/'],
    ['https://example.com./', 'https://example.com/'],
    ['https://ex%61mple.com/', 'https://example.com/'],
    ['https://a.b.c.d.example.co.uk/x', 'https://a.b.c.d.example.co.uk/x'],
    ['https://3m.com/', 'https://3m.com/'],
    // No host names by RFC 952, but DNS has them, and browsers open them.
    ['https://a_b.example.com/', 'https://a_b.example.com/'],
    ['https://_dmarc.example.com/', 'https://_dmarc.example.com/'],
    ['https://x_.example.com/', 'https://x_.example.com/'],
    ['https://xn--80ak6aa92e.com/', 'https://xn--80ak6aa92e.com/'],
    ['https://аррӏе.com/', 'https://xn--80ak6aa92e.com/'],
    ['https://bücher.de/', 'https://xn--bcher-kva.de/'],
    ['https://exam\u00adple.com/', 'https://example.com/'],
    ['https://example.com/@user', 'https://example.com/@user'],
    ['https://example.com/?next=http://127.0.0.1/', 'https://example.com/?next=http://127.0.0.1/'],
    ['https://example.com/a\\b', 'https://example.com/a/b'],
    ['https://1.1.1.1/', 'https://1.1.1.1/'],
    ['https://0x01010101/', 'https://1.1.1.1/'],
    ['https://[2606:4700:4700::1111]/', 'https://[2606:4700:4700::1111]/'],
    ['https://[2606:4700:4700:0::1111]/', 'https://[2606:4700:4700::1111]/'],
    // Names that only resemble refused ones.
    ['https://localhost.example.com/', 'https://localhost.example.com/'],
    ['https://notlocal.com/', 'https://notlocal.com/'],
    ['https://mylocalhost.net/', 'https://mylocalhost.net/'],
    ['https://test.com/', 'https://test.com/'],
    ['https://internal.io/', 'https://internal.io/'],
    ['https://127.0.0.1.nip.io/', 'https://127.0.0.1.nip.io/'],
    ['https://10.com/', 'https://10.com/'],
    [`https://${'a'.repeat(63)}.com/`, `https://${'a'.repeat(63)}.com/`],
  ]
  for (const [raw, href] of read) t.equal(judge(raw), href, raw)
})

t.test('text that is not an https URL with a host is an invalid request', async (t) => {
  const refused = [
    ...['', ' ', 'example.com', '//example.com/', 'https', 'https:', 'https:/', 'https://', 'https:///', 'https:///a'],
    ...['http://example.com/', 'ftp://example.com/', 'file:///etc/passwd', 'gopher://example.com/', 'data:text/html,x'],
    ...[
      'javascript:alert(1)',
      'wss://example.com/',
      'blob:https://example.com/x',
      'https://?',
      'https://#',
      'about:blank',
    ],
    // The parser accepts these; the pattern of the interface does not.
    ...[
      'HTTPS://example.com/',
      'Https://example.com/',
      'https:example.com',
      'https:/example.com',
      'https:\\\\example.com',
    ],
    ...[
      'https:///example.com/',
      'https://///example.com/',
      'view-source:https://example.com/',
      ' https://example.com/',
    ],
    ...['https://example.com/ ', 'https://example.com/\n', '\thttps://example.com/', 'https://exam\tple.com/'],
    ...['https://exam\nple.com/', 'https://exam\rple.com/', 'https://example.com/a b', 'https://example.com/\u00a0'],
    ...['https://example.com/\0', 'https://example\0.com/', 'https://example.com/\x1f', 'https://example.com/\x7f'],
    ...[
      'https://example.com/\u2028',
      'https://example.com/\u3000',
      'https://example.com/\ufeff',
      'https:// example.com/',
    ],
    // A backslash must not decide where the host ends.
    ...['https://example.com\\@127.0.0.1/', 'https://example.com\\.evil.com/', 'https://127.0.0.1\\example.com/'],
    ...['https://example.com\\', 'https://\\example.com/', 'https://example.com\\/'],
    // Names that DNS cannot have, or that are not host names.
    ...['https://example.com../', 'https://a..b.com/', 'https://.example.com/', 'https://./', 'https://../'],
    ...['https://-a.example.com/', 'https://a-.example.com/', 'https://xn--/', 'https://xn--.com/'],
    ...[
      `https://${'a'.repeat(64)}.com/`,
      `https://${'a.'.repeat(126)}com/`,
      'https://*.example.com/',
      'https://a!b.com/',
    ],
    ...['https://a~b.com/', "https://a'b.com/", 'https://a$b.com/', 'https://a,b.com/', 'https://a;b.com/'],
    // Refused by the parser itself.
    ...[
      'https://exa mple.com/',
      'https://example.com:99999/',
      'https://example.com:x/',
      'https://[::1/',
      'https://[::1%25lo]/',
    ],
    ...['https://[fe80::1%eth0]/', 'https://[gggg::]/', 'https://1.2.3.4.5/', 'https://foo.1/', 'https://foo.0x1/'],
    ...[
      'https://256.256.256.256/',
      'https://4294967296/',
      'https://a%00b.com/',
      'https://a%2fb.com/',
      'https://a%40b.com/',
    ],
    ...[
      'https://exa<mple.com/',
      'https://exa|mple.com/',
      'https://exa^mple.com/',
      'https://%zz.com/',
      'https://a%5cb.com/',
    ],
  ]
  for (const raw of refused) t.equal(judge(raw), 'invalid_request', encodeURI(raw))
})

t.test('length', async (t) => {
  const url = (length: number) => `https://example.com/${'a'.repeat(length - 'https://example.com/'.length)}`
  t.equal(judge(url(2048)), url(2048))
  t.equal(judge(url(2049)), 'invalid_request')
  t.equal(judge(`https://${'a'.repeat(2040)}`), 'invalid_request')
  t.equal(parsePublicUrl(url(3000), noFixtures, 3000).href, url(3000))
})

t.test('user names and other ports are blocked', async (t) => {
  const refused = [
    ...[
      'https://user@example.com/',
      'https://user:password@example.com/',
      'https://@example.com/',
      'https://:@example.com/',
    ],
    ...['https://example.com@127.0.0.1/', 'https://127.0.0.1@example.com/', 'https://a@b@example.com/'],
    ...['https://example.com:443@127.0.0.1/', 'https://user%40x@example.com/'],
    ...['https://example.com:80/', 'https://example.com:8443/', 'https://example.com:0/', 'https://example.com:22/'],
    ...['https://example.com:65535/', 'https://1.1.1.1:8080/', 'https://[2606:4700:4700::1111]:444/'],
  ]
  for (const raw of refused) t.equal(judge(raw), 'source_blocked', raw)
})

t.test('special-use and private names are blocked, at any depth, in any case', async (t) => {
  const suffixes = [
    ...[
      'localhost',
      'local',
      'internal',
      'home.arpa',
      'in-addr.arpa',
      'ip6.arpa',
      'arpa',
      'test',
      'invalid',
      'example',
    ],
    ...['onion', 'alt', 'lan', 'home', 'corp', 'intranet', 'private', 'localdomain', 'svc', 'cluster.local'],
  ]
  const names = suffixes.flatMap((suffix) => [
    suffix,
    `www.${suffix}`,
    `a.b.c.${suffix}`,
    `WWW.${suffix.toUpperCase()}`,
  ])
  names.push(
    'metadata',
    'metadata.google.internal',
    'metadata.tencentyun.com',
    'instance-data.ec2.internal',
    'kubernetes',
  )
  names.push(
    'printer',
    'intranet',
    'com',
    'ⓛocalhost',
    'ｌｏｃａｌｈｏｓｔ',
    'local%68ost',
    'foo。local',
    'foo.localhost.',
  )
  for (const name of names) {
    t.equal(judge(`https://${name}/`), 'source_blocked', name)
    if (!name.endsWith('.')) t.equal(judge(`https://${name}./`), 'source_blocked', `${name}.`)
  }
})

/** Every way to write each number of an IPv4 address: 3 bases ^ 4 parts, and the forms with fewer parts. */
function spellings(a: number, b: number, c: number, d: number): string[] {
  const bases = (n: number) => [
    String(n),
    `0${n.toString(8)}`,
    `0x${n.toString(16)}`,
    `0X00${n.toString(16).toUpperCase()}`,
  ]
  const join = (parts: string[][]): string[] =>
    parts.reduce((heads, part) => heads.flatMap((head) => part.map((p) => (head ? `${head}.${p}` : p))), [''])
  return [
    ...join([bases(a), bases(b), bases(c), bases(d)]),
    ...join([bases(a), bases(b), bases(c * 256 + d)]),
    ...join([bases(a), bases(b * 65536 + c * 256 + d)]),
    ...bases(a * 16777216 + b * 65536 + c * 256 + d),
  ]
}

const fullWidth = (text: string) => text.replace(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))
const circled = (text: string) =>
  text.replace(/[0-9]/g, (n) => String.fromCodePoint(n === '0' ? 0x24ea : 0x245f + Number(n)))
const percent = (text: string) => [...text].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')

t.test('addresses that are not public are blocked in every spelling', async (t) => {
  const addresses: [number, number, number, number][] = [
    [127, 0, 0, 1],
    [10, 0, 0, 1],
    [169, 254, 169, 254],
    [192, 168, 1, 1],
    [172, 16, 0, 1],
    [100, 100, 100, 200],
    [168, 63, 129, 16],
    [192, 0, 0, 192],
  ]
  let judged = 0
  for (const address of addresses) {
    const dotted = address.join('.')
    const disguises = [fullWidth(dotted), circled(dotted), percent(dotted), dotted.replaceAll('.', '。')]
    disguises.push(dotted.replaceAll('.', '．'), dotted.replaceAll('.', '｡'), percent(fullWidthBytes(dotted)))
    const all = [...spellings(...address), ...disguises].flatMap((host) => [host, `${host}.`])
    const passed = all.filter((host) => judge(`https://${host}/`) !== 'source_blocked')
    t.same(passed, [], dotted)
    judged += all.length
  }
  t.ok(judged > 5000, `${judged} spellings`)
})

/** Full-width digits as the bytes of their UTF-8, ready for percent-encoding. */
function fullWidthBytes(text: string): string {
  return Buffer.from(fullWidth(text), 'utf8').toString('latin1')
}

t.test('IPv6 literals that are not public are blocked in every spelling', async (t) => {
  const refused = [
    ...[
      '::1',
      '0:0:0:0:0:0:0:1',
      '0000:0000:0000:0000:0000:0000:0000:0001',
      '::',
      '::0.0.0.1',
      '::127.0.0.1',
      '::7f00:1',
    ],
    ...['::ffff:127.0.0.1', '::ffff:7f00:1', '::FFFF:7F00:0001', '0:0:0:0:0:ffff:127.0.0.1', '::ffff:8.8.8.8'],
    ...[
      '::ffff:0:127.0.0.1',
      '64:ff9b::127.0.0.1',
      '64:ff9b::a9fe:a9fe',
      '64:ff9b:1::1',
      '2002:7f00:1::',
      '2002:a9fe:a9fe::',
    ],
    ...[
      '2001::1',
      '2001:db8::1',
      'fe80::1',
      'febf::1',
      'fc00::1',
      'fd00:ec2::254',
      'fd20:ce::254',
      'fec0::1',
      'ff02::1',
    ],
    ...['100::1', '100:0:0:1::1', '3fff::1', '5f00::1', '200::1', '4000::1', 'e000::1', '2001:470::5efe:7f00:1'],
  ]
  for (const address of refused) t.equal(judge(`https://[${address}]/`), 'source_blocked', address)
})

t.test('fixture hosts are exempt from the rule on special-use names and from no other rule', async (t) => {
  const at = { address: '127.0.0.1', port: 8443 }
  const hosts = ['page.test', 'site.localhost', 'site', '127.0.0.1', 'under_score.test']
  const fixtures: Fixtures = { hosts: new Map(hosts.map((host) => [host, at])), ca: undefined }
  t.equal(judge('https://page.test/a', fixtures), 'https://page.test/a')
  t.equal(judge('https://PAGE.test./a', fixtures), 'https://page.test/a')
  t.equal(judge('https://site.localhost/', fixtures), 'https://site.localhost/')
  t.equal(judge('https://site/', fixtures), 'https://site/')
  t.equal(judge('https://other.test/', fixtures), 'source_blocked')
  t.equal(judge('https://www.page.test/', fixtures), 'source_blocked')
  t.equal(judge('https://127.0.0.1/', fixtures), 'source_blocked')
  t.equal(judge('https://page.test:8443/', fixtures), 'source_blocked')
  t.equal(judge('https://u@page.test/', fixtures), 'source_blocked')
  t.equal(judge('http://page.test/', fixtures), 'invalid_request')
  t.equal(judge('https://under_score.test/', fixtures), 'https://under_score.test/')
})

t.test('hostOf removes the brackets', async (t) => {
  t.equal(hostOf(new URL('https://[2606:4700::1]/')), '2606:4700::1')
  t.equal(hostOf(new URL('https://example.com/')), 'example.com')
})
