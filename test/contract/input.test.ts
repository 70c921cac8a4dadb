// Valid and invalid bodies of a verification request, by table. Every refusal has a listed status and the error shape.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { buildCheck, checkRequest, expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { PAGE, payingFetch, startSystem, VERIFY } from '../system.ts'

const moved = (location: string) => ({ status: 302, headers: { location }, body: '' })
const system = await startSystem({
  pages: {
    '/to-brackets': moved('/facts?a|b[c]'),
    '/to-percent': moved('/100% ?%zz'),
    '/facts?a%7Cb%5Bc%5D': PAGE,
    '/100%25%20?%25zz': PAGE,
    '/harbour?q=%c3%bc': PAGE,
  },
})
t.teardown(() => system[Symbol.asyncDispose]())

const source_url = system.site.url('/harbour')
const claim = 'The harbour was opened in 1874.'
const good = { source_url, claim }
const urlOfLength = (length: number) => `${source_url}?${'a'.repeat(length - source_url.length - 1)}`

async function post(body: Uint8Array | string, headers: Record<string, string | undefined> = {}) {
  const all = { 'content-type': 'application/json', 'idempotency-key': randomUUID(), ...headers }
  const sent = Object.entries(all).filter((header): header is [string, string] => header[1] !== undefined)
  return fetch(system.url(VERIFY), { method: 'POST', headers: sent, body: Buffer.from(body) })
}

/** Bodies that JSON Schema can judge: 402 if they conform, 400 if not. */
const bySchema: Record<string, unknown> = {
  null: null,
  array: [good],
  'empty array': [],
  string: 'claim',
  'empty string': '',
  number: 7,
  true: true,
  'empty object': {},
  'no source_url': { claim },
  'no claim': { source_url },
  'unknown field': { ...good, note: 'x' },
  'unknown field, null': { ...good, note: null },
  'field in another case': { source_url, Claim: claim, claim },
  'constructor as a field': { ...good, constructor: {} },
  'toString as a field': { ...good, toString: 'x' },
  'empty field name': { ...good, '': 1 },

  'claim null': { source_url, claim: null },
  'claim number': { source_url, claim: 7 },
  'claim array': { source_url, claim: [claim] },
  'claim object': { source_url, claim: { text: claim } },
  'claim empty': { source_url, claim: '' },
  'claim of spaces': { source_url, claim: '   ' },
  'claim of tab and newline': { source_url, claim: '\t\r\n' },
  'claim of no-break space': { source_url, claim: '\u00a0' },
  'claim of ideographic space': { source_url, claim: '\u3000\u2003' },
  'claim of 2001': { source_url, claim: 'a'.repeat(2001) },
  'claim of 2001 emoji': { source_url, claim: '🚢'.repeat(2001) },
  'claim of 2000 spaces and a letter': { source_url, claim: `${' '.repeat(2000)}a` },
  'claim of 1': { source_url, claim: '1' },
  'claim of 2000': { source_url, claim: 'a'.repeat(2000) },
  'claim of 2000 emoji': { source_url, claim: '🚢'.repeat(2000) },
  'claim with blanks around': { source_url, claim: ' a ' },
  'claim with control characters': { source_url, claim: 'a\u0007\u001b[31mb' },
  'claim with NUL': { source_url, claim: 'opened\u0000 in 1874' },
  'claim in Arabic': { source_url, claim: 'افتتح الميناء' },
  'claim with a non-character': { source_url, claim: 'a\uffff' },

  'source_url null': { source_url: null, claim },
  'source_url number': { source_url: 1, claim },
  'source_url array': { source_url: [source_url], claim },
  'source_url empty': { source_url: '', claim },
  'source_url without host': { source_url: 'https://', claim },
  'source_url http': { source_url: source_url.replace('https', 'http'), claim },
  'source_url ftp': { source_url: source_url.replace('https', 'ftp'), claim },
  'source_url file': { source_url: 'file:///etc/passwd', claim },
  'source_url data': { source_url: 'data:text/plain,hello', claim },
  'source_url javascript': { source_url: 'javascript:alert(1)', claim },
  'source_url relative': { source_url: '/harbour', claim },
  'source_url without scheme': { source_url: 'site.test/harbour', claim },
  'source_url in capitals': { source_url: source_url.replace('https', 'HTTPS'), claim },
  'source_url with one slash': { source_url: 'https:/site.test/harbour', claim },
  'source_url with a space': { source_url: `${source_url} x`, claim },
  'source_url with a space before': { source_url: ` ${source_url}`, claim },
  'source_url with a newline after': { source_url: `${source_url}\n`, claim },
  'source_url with a tab': { source_url: 'https://site.test/har\tbour', claim },
  'source_url of 2049': { source_url: urlOfLength(2049), claim },
  'source_url of 100000': { source_url: urlOfLength(50_000), claim },
  'source_url of 2048': { source_url: urlOfLength(2048), claim },
  'source_url with an open bracket': { source_url: 'https://[::1/', claim },
  ...Object.fromEntries(
    [
      '?tags[]=a',
      '?a|b',
      '?<',
      '?>',
      '?"',
      '/\\',
      '?\\',
      '?^',
      '?{',
      '?}',
      '?`',
      '?%zz',
      '?%',
      '/%4',
      '/[',
      '/|',
      '#a#b',
    ].map((tail) => [`source_url with ${tail}`, { source_url: source_url + tail, claim }]),
  ),
  'source_url with escapes': { source_url: `${source_url}?tags%5B%5d=a&b=%7C%25#x`, claim },
  'source_url with sub-delimiters': { source_url: `${source_url}?!$&'()*+,;=:@/?`, claim },

  'options null': { ...good, options: null },
  'options array': { ...good, options: [] },
  'options string': { ...good, options: 'none' },
  'options unknown': { ...good, options: { timeout: 1 } },
  'options constructor': { ...good, options: { constructor: 1 } },
  'options empty': { ...good, options: {} },
  'max_age -1': { ...good, options: { max_age_seconds: -1 } },
  'max_age 301': { ...good, options: { max_age_seconds: 301 } },
  'max_age 1.5': { ...good, options: { max_age_seconds: 1.5 } },
  'max_age text': { ...good, options: { max_age_seconds: '60' } },
  'max_age null': { ...good, options: { max_age_seconds: null } },
  'max_age true': { ...good, options: { max_age_seconds: true } },
  'max_age 1e300': { ...good, options: { max_age_seconds: 1e300 } },
  'max_age 0': { ...good, options: { max_age_seconds: 0 } },
  'max_age 300': { ...good, options: { max_age_seconds: 300 } },
  'price number': { ...good, options: { max_price_usd: 0.03 } },
  'price null': { ...good, options: { max_price_usd: null } },
  'price empty': { ...good, options: { max_price_usd: '' } },
  'price without whole': { ...good, options: { max_price_usd: '.5' } },
  'price without fraction': { ...good, options: { max_price_usd: '1.' } },
  'price with leading zero': { ...good, options: { max_price_usd: '01' } },
  'price of 7 decimals': { ...good, options: { max_price_usd: '0.0300000' } },
  'price negative': { ...good, options: { max_price_usd: '-1' } },
  'price with plus': { ...good, options: { max_price_usd: '+1' } },
  'price with exponent': { ...good, options: { max_price_usd: '1e3' } },
  'price with comma': { ...good, options: { max_price_usd: '0,03' } },
  'price with dollar': { ...good, options: { max_price_usd: '$1' } },
  'price with a space': { ...good, options: { max_price_usd: ' 1' } },
  'price with a newline': { ...good, options: { max_price_usd: '1\n' } },
  'price in Arabic digits': { ...good, options: { max_price_usd: '١' } },
  'price hexadecimal': { ...good, options: { max_price_usd: '0x10' } },
  'price NaN': { ...good, options: { max_price_usd: 'NaN' } },
  'price of 33 digits': { ...good, options: { max_price_usd: '1'.repeat(33) } },
  'price of 32 digits': { ...good, options: { max_price_usd: '1'.repeat(32) } },
  'price exact': { ...good, options: { max_price_usd: '0.03' } },
  'price with zeros behind': { ...good, options: { max_price_usd: '0.030000' } },
  'price above': { ...good, options: { max_price_usd: '0.030001' } },
  'price much above, above doubles': { ...good, options: { max_price_usd: '9007199254740993.000001' } },
}

t.test('bodies a schema can judge: 400 or 402 as the interface says, and as the published schema says', async (t) => {
  const capabilities = await fetch(system.url('/api/agent/v1/capabilities'))
  const { input_schema } = (await capabilities.json()) as { input_schema: object }
  const checkPublished = buildCheck(input_schema)
  for (const [about, body] of Object.entries(bySchema)) {
    const valid = checkRequest(body).length === 0
    const answer = await expectNonCompleted(t, await post(JSON.stringify(body)), valid ? 402 : 400, about)
    if (!valid) t.equal(answer.error.code, 'invalid_request', about)
    t.equal(answer.error.retryable, valid, `${about}: whether to try again`)
    t.equal(checkPublished(body).length === 0, valid, `${about}: as published`)
  }
  const statuses = Object.values(bySchema).map((body) => checkRequest(body).length === 0)
  t.ok(statuses.includes(true) && statuses.includes(false), 'the table has both kinds')
})

const text = JSON.stringify(good)
const withClaim = (literal: string) => `{"source_url":${JSON.stringify(source_url)},"claim":${literal}}`
const bytes = (...parts: (string | number[])[]) => Buffer.concat(parts.map((part) => Buffer.from(part as string)))
const deep = (open: string, close: string, depth = 20_000) => `${open.repeat(depth)}${close.repeat(depth)}`

/** Bodies as bytes: not JSON, not Unicode, or beyond what JSON Schema can express. */
const byBytes: [about: string, body: Uint8Array | string, ...statuses: number[]][] = [
  ['nothing', '', 400],
  ['blank', '  \n', 400],
  ['cut off', text.slice(0, -1), 400],
  ['something behind', `${text}x`, 400],
  ['two documents', `${text}${text}`, 400],
  ['single quotes', text.replaceAll('"', "'"), 400],
  ['trailing comma', text.replace('}', ',}'), 400],
  ['comment', `/* a */${text}`, 400],
  ['form fields', 'source_url=a&claim=b', 400],
  ['NaN', `{"options":{"max_age_seconds":NaN},${text.slice(1)}`, 400],
  ['Infinity by exponent', `{"options":{"max_age_seconds":1e400},${text.slice(1)}`, 400],
  ['60.0 is an integer', `{"options":{"max_age_seconds":60.0},${text.slice(1)}`, 402],
  ['raw newline in a string', withClaim('"a\nb"'), 400],
  ['raw NUL in a string', withClaim('"a\u0000b"'), 400],
  ['half an escape', withClaim('"\\u12"'), 400],
  ['lone high surrogate', withClaim('"a\\ud83d"'), 400],
  ['lone low surrogate', withClaim('"\\ude00a"'), 400],
  ['surrogates the wrong way round', withClaim('"\\ude00\\ud83d"'), 400],
  ['a pair of surrogates', withClaim('"\\ud83d\\ude00"'), 402],
  ['lone surrogate in source_url', text.replace('/harbour', '/\\ud83d'), 400],
  ['lone surrogate in a field name', `{"\\ud83d":1,${text.slice(1)}`, 400],
  ['lone surrogate in an option', `{"options":{"max_price_usd":"\\ud83d"},${text.slice(1)}`, 400],
  ['invalid UTF-8', bytes(withClaim('"a').slice(0, -1), [0xff], '"}'), 400],
  ['cut UTF-8', bytes(withClaim('"a').slice(0, -1), [0xc3], '"}'), 400],
  ['overlong UTF-8', bytes(withClaim('"a').slice(0, -1), [0xc0, 0xaf], '"}'), 400],
  ['surrogate in UTF-8', bytes(withClaim('"a').slice(0, -1), [0xed, 0xa0, 0x80], '"}'), 400],
  ['beyond Unicode', bytes(withClaim('"a').slice(0, -1), [0xf4, 0x90, 0x80, 0x80], '"}'), 400],
  ['Latin-1', bytes(withClaim('"caf').slice(0, -1), [0xe9], '"}'), 400],
  ['UTF-16', Buffer.from(`\ufeff${text}`, 'utf16le'), 400],
  // RFC 8259 §8.1 lets a parser ignore it or refuse it.
  ['byte order mark', bytes([0xef, 0xbb, 0xbf], text), 400, 402],
  ['__proto__', `{"__proto__":{"claim":"x"},${text.slice(1)}`, 400],
  ['__proto__ null', `{"__proto__":null,${text.slice(1)}`, 400],
  ['__proto__ with what is missing', `{"__proto__":${text}}`, 400],
  ['__proto__ in options', `{"options":{"__proto__":{"max_age_seconds":1}},${text.slice(1)}`, 400],
  ['constructor.prototype', `{"constructor":{"prototype":{"claim":"x"}},${text.slice(1)}`, 400],
  // JSON does not define the meaning of a repeated name; it must not cause a 5xx.
  ['a field twice', `{"claim":"another",${text.slice(1)}`, 400, 402],
  ['deep arrays', deep('[', ']'), 400],
  ['deep objects', `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`, 400],
  ['a claim of deep arrays', withClaim(deep('[', ']')), 400],
  ['64 KiB', text.padEnd(65_536), 402],
  ['64 KiB and one', text.padEnd(65_537), 400],
  ['64 KiB and one of claim', withClaim(`"${'a'.repeat(65_536)}"`), 400],
  ['a megabyte', text.padEnd(1_048_576), 400],
  ['an IRI', JSON.stringify({ source_url: 'https://site.test/häfen', claim }), 400],
  ['an IRI host', JSON.stringify({ source_url: 'https://häfen.test/', claim }), 400],
  ['a full-width host', JSON.stringify({ source_url: 'https://ｓｉｔｅ.test/', claim }), 400],
]

t.test('bodies as bytes', async (t) => {
  for (const [about, body, ...statuses] of byBytes) {
    const response = await post(body)
    const expected = statuses.find((status) => status === response.status) ?? statuses[0] ?? 0
    const { error } = await expectNonCompleted(t, response, expected, about)
    if (expected === 400) t.equal(error.code, 'invalid_request', about)
    if (about === 'an IRI') t.match(error.message, /encod/i, 'with the advice to encode it')
  }
})

t.test('a URL that is no URI is refused with what to encode', async (t) => {
  const body = JSON.stringify({ source_url: `${source_url}?tags[]=a|b`, claim })
  const { error } = await expectNonCompleted(t, await post(body), 400)
  t.match(error.message, /source_url: .*"\[" as %5B.*"\]" as %5D.*"\|" as %7C/)
})

t.test('a host with an underscore is no invalid request', async (t) => {
  const response = await post(JSON.stringify({ source_url: 'https://a_b.example.com/', claim }))
  await expectNonCompleted(t, response, 402)
})

t.test('a message that is cut within the name of an unknown field is well-formed Unicode', async (t) => {
  // A letter before them moves the cut by half a character.
  for (const before of ['', 'a']) {
    const response = await post(JSON.stringify({ ...good, [before + '🚢'.repeat(400)]: 1 }))
    const { error } = await expectNonCompleted(t, response, 400)
    t.ok(error.message.length < 600 && error.message.isWellFormed(), JSON.stringify(error.message.slice(-4)))
  }
})

t.test('a chunked body without a length has the same limit', async (t) => {
  const send = (length: number) =>
    fetch(system.url(VERIFY), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
      body: new Blob([text.padEnd(length)]).stream(),
      duplex: 'half',
    } as RequestInit)
  await expectNonCompleted(t, await send(65_536), 402)
  await expectNonCompleted(t, await send(65_537), 400)
})

t.test('blocked destinations and a budget below the price: 422 before the first 402', async (t) => {
  const blocked = [
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0177.0.0.1/',
    'https://0.0.0.0/',
    'https://10.1.2.3/',
    'https://172.16.0.1/',
    'https://192.168.1.1/',
    'https://100.64.0.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://224.0.0.1/',
    'https://255.255.255.255/',
    'https://[::1]/',
    'https://[::]/',
    'https://[fe80::1]/',
    'https://[fd00::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://localhost/',
    'https://LOCALHOST./',
    'https://a.localhost/',
    'https://printer.local/',
    'https://metadata.google.internal/',
    'https://site.test:8443/harbour',
    'https://site.test:80/harbour',
  ]
  for (const url of blocked) {
    const { error } = await expectNonCompleted(t, await post(JSON.stringify({ source_url: url, claim })), 422, url)
    t.equal(error.code, 'source_blocked', url)
    t.equal(error.retryable, false, url)
  }
  for (const max_price_usd of ['0', '0.0', '0.02', '0.029999', '0.000001']) {
    const body = JSON.stringify({ ...good, options: { max_price_usd } })
    const { error } = await expectNonCompleted(t, await post(body), 422, max_price_usd)
    t.equal(error.code, 'budget_exceeded')
  }
  await expectNonCompleted(t, await post(JSON.stringify({ source_url: 'https://site.test:443/harbour', claim })), 402)
  t.same(system.site.requests, [], 'nothing was fetched')
})

t.test('Content-Type', async (t) => {
  const types: [type: string | undefined, status: number][] = [
    ['application/json', 402],
    ['application/json; charset=utf-8', 402],
    ['application/json;charset=UTF-8', 402],
    ['application/json ; charset="utf-8"', 402],
    ['APPLICATION/JSON', 402],
    ['Application/Json;Charset=utf-8', 402],
    [undefined, 415],
    ['', 415],
    ['text/plain', 415],
    ['text/json', 415],
    ['application/jsonx', 415],
    ['application/json-patch', 415],
    ['application/json-patch+json', 415],
    ['application/vnd.api+json', 415],
    ['application/x-www-form-urlencoded', 415],
    ['multipart/form-data; boundary=x', 415],
    ['application/octet-stream', 415],
    ['application', 415],
    ['json', 415],
    ['*/*', 415],
    ['text/plain; application/json', 415],
    ['text/plain, application/json', 415],
  ]
  for (const [type, status] of types) {
    const { error } = await expectNonCompleted(t, await post(text, { 'content-type': type }), status, String(type))
    if (status === 415) t.equal(error.code, 'unsupported_media_type', String(type))
  }
})

t.test('Idempotency-Key', async (t) => {
  const keys: [key: string | undefined, status: number][] = [
    [undefined, 400],
    ['', 400],
    ['a'.repeat(15), 400],
    ['a'.repeat(129), 400],
    ['a'.repeat(5000), 400],
    [`${'a'.repeat(20)} b`, 400],
    [`${'a'.repeat(20)}/`, 400],
    [`${'a'.repeat(20)}+`, 400],
    [`${'a'.repeat(20)}=`, 400],
    [`${'a'.repeat(20)},b`, 400],
    [`"${'a'.repeat(20)}"`, 400],
    [`${'a'.repeat(20)}é`, 400],
    [`${'a'.repeat(20)}\t`.concat('b'), 400],
    [`k.${randomUUID()}`.slice(0, 16), 402],
    [`k_${randomUUID()}${'z'.repeat(128)}`.slice(0, 128), 402],
    [`A-z_0.9:${randomUUID()}`, 402],
  ]
  for (const [key, status] of keys) {
    const about = `key ${key?.slice(0, 40)} of ${key?.length}`
    const { error } = await expectNonCompleted(t, await post(text, { 'idempotency-key': key }), status, about)
    if (status === 400) t.equal(error.code, 'invalid_idempotency_key', about)
  }
  const twice = new Headers({ 'content-type': 'application/json', 'idempotency-key': randomUUID() })
  twice.append('idempotency-key', randomUUID())
  const response = await fetch(system.url(VERIFY), { method: 'POST', headers: twice, body: text })
  await expectNonCompleted(t, response, 400, 'two keys')
})

t.test('whatever the page redirects to, the result that is sold is one by its schema, formats included', async (t) => {
  for (const path of ['/to-brackets', '/to-percent']) {
    const body = { source_url: system.site.url(path), claim }
    const bought = await system.ask({ key: randomUUID(), body, fetch: payingFetch(), headers: { prefer: 'wait=20' } })
    const { result } = await expectCompleted(t, bought)
    t.equal(result.source.requested_url, body.source_url)
    t.match(result.source.final_url, path === '/to-percent' ? /100%25%20\?%25zz$/ : /facts\?a%7Cb%5Bc%5D$/)
  }
})

t.test('the URL that was submitted is in the result as it was written', async (t) => {
  const body = { source_url: `${source_url}?q=%c3%bc#part`, claim }
  const bought = await system.ask({ key: randomUUID(), body, fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  const { result } = await expectCompleted(t, bought)
  t.equal(result.source.requested_url, body.source_url)
})
