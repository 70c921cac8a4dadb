// The format `uri`: never looser than a strict validator, what is refused says what to encode, and what is escaped is a URI.
import t from 'tap'
import { asUri, uriProblem } from '../../server/interface/uri.ts'
import { seeded } from '../assessment/fixtures/random.ts'
import { buildCheck } from '../interface.schema.ts'

const check = buildCheck({ type: 'string', format: 'uri' })

t.test('what is refused says what to encode', async (t) => {
  const refused: Record<string, string> = {
    'https://example.com/?tags[]=a': '"[" as %5B, "]" as %5D',
    'https://example.com/a|b': '"|" as %7C',
    'https://example.com/<a>"': '"<" as %3C, ">" as %3E, """ as %22',
    'https://example.com/\\^`{}': '"\\" as %5C, "^" as %5E, "`" as %60, "{" as %7B, "}" as %7D',
    'https://example.com/%zz': '"%" as %25',
    'https://example.com/100%': '"%" as %25',
    'https://example.com/%a': '"%" as %25',
    'https://example.com/a#b#c': '"#" as %23',
    'https://example.com/a b': 'a control character or space as %20',
    'https://example.com/ü': 'ASCII URI: percent-encode',
    'https://example.com:x/': 'host or port',
    'https://exa%zzmple.com/': 'host or port',
    'https://[1::2::3]/': 'host or port',
    'https://exa[mple.com/': 'host or port',
    'example.com/': 'scheme and a host',
  }
  for (const [url, advice] of Object.entries(refused)) {
    t.ok(uriProblem(url)?.includes(advice), `${url}: ${uriProblem(url)}`)
    // The validator reads "x" after the colon as a path.
    if (advice !== 'host or port') t.not(check(url).length, 0, `${url} is none for the validator either`)
  }
})

t.test('URIs are accepted', async (t) => {
  const accepted = [
    ...['https://example.com', 'https://example.com?q', 'https://example.com#f', 'https://a_b.example.com/x'],
    ...['https://example.com/%5B%5d?a=%25#%20', "https://example.com/!$&'()*+,;=:@/-._~?/?:@#/?"],
    ...[
      'https://[2606:4700::1]/',
      'https://[::ffff:1.2.3.4]:443/',
      'https://user:p@example.com:443/',
      'https://1.1.1.1/',
    ],
  ]
  for (const url of accepted) {
    t.equal(uriProblem(url), null, url)
    t.same(check(url), [], url)
  }
})

t.test('random texts: never looser than the validator, and what the parser reads becomes a URI', async (t) => {
  const random = seeded(11)
  const pieces = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))
  pieces.push('%41', '%', '[::1]', '[', ']', '//', 'é', '🚢', '\u2028', ':', '::', '1:', 'a.', '@', '?', '#', '/')
  let uris = 0
  let read = 0
  for (let round = 0; round < 30_000; round++) {
    const tail = Array.from({ length: random(9) }, () => pieces[random(pieces.length)]).join('')
    const text = `https://${['', 'a.com', 'a.com/', 'a.com?', '['][random(5)]}${tail}`
    if (uriProblem(text) === null) {
      uris++
      if (check(text).length > 0) t.fail(`too loose: ${JSON.stringify(text)}`)
    }
    const url = URL.parse(text)
    // The URL policy judges the host and refuses user names.
    if (url === null || !/^[a-z0-9._-]+$/.test(url.hostname) || url.username || url.password) continue
    read++
    const uri = asUri(url).href
    if (
      check(uri).length > 0 ||
      uriProblem(uri) !== null ||
      new URL(uri).href !== uri ||
      asUri(new URL(uri)).href !== uri
    )
      t.fail(`not a stable URI: ${JSON.stringify(text)} ${uri}`)
  }
  t.ok(uris > 3000 && read > 3000, `${uris} URIs, ${read} read`)
})

t.test('the time is in proportion to the length', async (t) => {
  for (const unit of ['|', '%', '#', '[', 'a', '%4', ':', '@']) {
    const started = process.cpuUsage()
    uriProblem(`https://example.com/${unit.repeat(1_000_000)}`)
    uriProblem(`https://${unit.repeat(1_000_000)}`)
    t.ok(process.cpuUsage(started).user < 5_000_000, unit)
  }
})
