import t from 'tap'
import { decodeCharset } from '../../workers/text/page/charset.ts'

const latin1 = (text: string) => Buffer.from(text, 'latin1')
const html = (bytes: Uint8Array, charset: string | null = null) => decodeCharset(bytes, { kind: 'html', charset })
const plain = (bytes: Uint8Array, charset: string | null = null) => decodeCharset(bytes, { kind: 'plain', charset })

// Byte sequences from the index tables of the Encoding standard.
t.test('every family of charsets is read by its own table', async (t) => {
  for (const [label, hex, text] of [
    ['utf-8', 'e697a5e69cac', '日本'],
    ['utf8', 'e697a5e69cac', '日本'],
    ['utf-16', 'e5652c67', '日本'],
    ['utf-16be', '65e5672c', '日本'],
    ['shift_jis', '93fa967b', '日本'],
    ['euc-jp', 'c6fccbdc', '日本'],
    ['iso-2022-jp', '1b2442467c4b5c1b2842', '日本'],
    ['gbk', 'd6d0cec4', '中文'],
    ['gb2312', 'd6d0cec4', '中文'],
    ['gb18030', '95349b3981308130', '\u{20ad5}\u0080'],
    ['big5', 'a4a4a4e5', '中文'],
    ['euc-kr', 'c7d1b1db', '한글'],
    ['ks_c_5601-1987', '8c63', '똠'],
    ['windows-1252', '93808594', '“€…”'],
    ['iso-8859-1', '93e994', '“é”'],
    ['us-ascii', '93e994', '“é”'],
    ['iso-8859-2', 'b3f3e6', 'łóć'],
    ['iso-8859-15', 'a4', '€'],
    ['windows-1250', 'b3f3e6', 'łóć'],
    ['windows-1251', 'cff0e8e2e5f2', 'Привет'],
    ['koi8-r', 'f0d2c9d7c5d4', 'Привет'],
    ['koi8-u', 'a6', 'і'],
    ['ibm866', '8fe0a8a2a5e2', 'Привет'],
    ['windows-1253', 'e5ebebdced', 'ελλάν'],
    ['windows-1254', 'f0fdfe', 'ğış'],
    ['windows-1255', 'f9ece5ed', 'שלום'],
    ['windows-1256', 'e3d1cdc8c7', 'مرحبا'],
    ['windows-874', 'cad2c2', 'สาย'],
    ['macintosh', '8e', 'é'],
    ['x-user-defined', '80', '\uf780'],
  ] as const) {
    const found = html(Buffer.from(hex, 'hex'), label)
    t.equal(found.text, text, label)
    t.equal(found.source, 'header', label)
    t.equal(found.replacements, 0, label)
  }
})

t.test('who is believed first', async (t) => {
  const bom = '\xef\xbb\xbf'
  const meta = '<meta charset=windows-1251>'
  for (const [what, bytes, header, charset, source] of [
    ['a byte order mark', latin1(`${bom}${meta}`), 'koi8-r', 'utf-8', 'bom'],
    ['a byte order mark of UTF-16LE', latin1('\xff\xfea\0'), 'utf-8', 'utf-16le', 'bom'],
    ['a byte order mark of UTF-16BE', latin1('\xfe\xff\0a'), 'utf-8', 'utf-16be', 'bom'],
    ['then the header', latin1(`${meta}\xcf`), 'koi8-r', 'koi8-r', 'header'],
    ['then the page itself', latin1(`${meta}\xcf`), null, 'windows-1251', 'meta'],
    ['an unknown charset in the header is ignored', latin1(`${meta}\xcf`), 'klingon', 'windows-1251', 'meta'],
    ['even if the page is ASCII', latin1(meta), null, 'windows-1251', 'meta'],
    ['then the bytes', Buffer.from('<p>é'), null, 'utf-8', 'utf8'],
    ['ASCII too', latin1('<p>e'), null, 'utf-8', 'utf8'],
    ['then windows-1252', latin1('<p>\xe9'), null, 'windows-1252', 'default'],
  ] as const) {
    const found = html(bytes, header)
    t.same([found.charset, found.source], [charset, source], what)
  }
  t.equal(html(latin1(`${bom}x`)).text, 'x', 'the mark is no text')
})

t.test('what a page says of itself', async (t) => {
  for (const [markup, charset] of [
    ['<meta charset=koi8-r>', 'koi8-r'],
    ['<META CHARSET = "KOI8-R" />', 'koi8-r'],
    ["<meta charset=' koi8-r '>", 'koi8-r'],
    ['<meta http-equiv=Content-Type content="text/html; charset=koi8-r">', 'koi8-r'],
    ['<meta content="text/html;charset=\'koi8-r\'" http-equiv=content-type>', 'koi8-r'],
    ['<meta http-equiv=refresh content="1; charset=koi8-r">', null],
    ['<meta name=x content="charset=koi8-r">', null],
    ['<meta charset=klingon><meta charset=koi8-r>', 'koi8-r'],
    ['<meta charset=koi8-r><meta charset=gbk>', 'koi8-r'],
    ['<!-- <meta charset=gbk> --><meta charset=koi8-r>', 'koi8-r'],
    ['<script>"<meta charset=gbk>"</script><meta charset=koi8-r>', 'koi8-r'],
    ['<title><meta charset=gbk></title><meta charset=koi8-r>', 'koi8-r'],
    ['<meta charset=utf-16>', 'utf-8'],
    ['<meta charset=utf-16be>', 'utf-8'],
    ['<meta charset=x-user-defined>', 'windows-1252'],
    ['<?xml version="1.0" encoding="koi8-r"?><p>', 'koi8-r'],
    ["<?xml version='1.0' encoding='koi8-r'?><meta charset=gbk>", 'gbk'],
    ['<p>charset=koi8-r', null],
  ] as const) {
    const found = html(latin1(markup))
    t.equal(found.source === 'meta' ? found.charset : null, charset, markup)
  }
})

t.test('a late declaration counts if the bytes are not UTF-8, and if it is in the head', async (t) => {
  const filler = `<title>${'x'.repeat(1100)}</title>`
  const declared = `${filler}<meta charset=koi8-r>`
  t.equal(html(latin1(`${declared}<p>\xf0`)).charset, 'koi8-r')
  t.equal(html(Buffer.from(`${declared}<p>é`)).charset, 'utf-8')
  t.equal(html(latin1(`${filler}<p>x<meta charset=koi8-r>\xf0`)).charset, 'windows-1252')
  t.equal(html(latin1(`${'\n'.repeat(66_000)}<meta charset=koi8-r>\xf0`)).charset, 'windows-1252', 'beyond 64 KiB')
})

t.test('plain text declares nothing', async (t) => {
  const found = plain(latin1('<meta charset=koi8-r>\xf0'))
  t.same([found.charset, found.source], ['windows-1252', 'default'])
  t.equal(plain(Buffer.from('é')).source, 'utf8')
  t.equal(plain(latin1('\xf0'), 'koi8-r').text, 'П')
})

t.test('charsets that browsers refuse to decode', async (t) => {
  for (const label of ['iso-2022-kr', 'hz-gb-2312', 'iso-2022-cn', 'replacement']) {
    t.throws(() => html(latin1('x'), label), { name: 'TextRefusalError', code: 'source_encoding_invalid' }, label)
    t.throws(() => html(latin1(`<meta charset=${label}>`)), { code: 'source_encoding_invalid' }, label)
  }
})

t.test('bytes that are invalid are counted, and refused when they are many', async (t) => {
  const letters = 'letters, '.repeat(20)
  t.equal(html(latin1(`${letters}\xff\xfe`), 'utf-8').replacements, 2)
  t.equal(html(Buffer.from(`${letters}\ufffd`), 'utf-8').replacements, 0, 'a replacement character that was sent')
  t.equal(html(latin1(`${letters}\xe9 \xe9`), 'utf-8').text, `${letters}\ufffd \ufffd`)
  t.equal(html(latin1(`${letters}\x81`), 'shift_jis').replacements, 1)
  t.throws(() => html(latin1(`${letters}${'\xff'.repeat(30)}`), 'utf-8'), { code: 'source_encoding_invalid' })
  t.throws(() => plain(latin1(`\xff\xfe${'\x00\xd8'.repeat(30)}`)), { code: 'source_encoding_invalid' })
})
