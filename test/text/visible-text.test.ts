import t from 'tap'
import { Lines } from '../../workers/text/page/lines.ts'
import { addPlainText } from '../../workers/text/page/plain-text.ts'
import { addVisibleText } from '../../workers/text/page/visible-text.ts'

function visible(html: string) {
  const lines = new Lines()
  const hidden = { length: 0 }
  addVisibleText(html, lines, { length: 0 }, hidden)
  return { text: lines.toString(), hidden: hidden.length }
}

/** Each pair is markup and the text it shows. */
function check(name: string, pairs: [html: string, text: string][]) {
  t.test(name, async (t) => {
    for (const [html, text] of pairs) t.equal(visible(html).text, text, html)
  })
}

check('blanks collapse', [
  ['', ''],
  [' \n ', ''],
  ['a', 'a'],
  ['  a\n\t b  ', 'a b'],
  ['a <b> b</b> c', 'a b c'],
  ['a<b> </b>b', 'a b'],
  ['a <b></b> b', 'a b'],
  ['<i>a</i><b>b</b>', 'ab'],
  ['a&nbsp; &nbsp;b&nbsp;', 'a   b'],
  ['<div>a</div><div>&nbsp;</div><div>&#8203;</div><div>&nbsp;b</div>', 'a\n\n b'],
  ['&nbsp;<p>a', 'a'],
  ['<div> a </div> <div> b </div>', 'a\nb'],
  ['a&#13;b&#12;c&#9;d', 'a b c d'],
  ['co&shy;op&#8203;eration&#xfeff;', 'cooperation'],
])

t.test('a long text without a visible character is the same in parts', async (t) => {
  const many = 150_000
  const tagged = '\u{e0100}'
  for (const [unit, shown] of [
    ['\u00a0 ', '  '],
    ['\u3000\t', '  '],
    ['\u00a0\r\n', '  '],
    [' ', ''],
    ['\n\u200b', ''],
    [' \u00ad', ''],
    ['\ufe0f\u0001', '\ufe0f'],
    ['\ufe0f\ufe0e ', '\ufe0f '],
    [`${tagged}${tagged} `, `${tagged} `],
    ['\u200d\u0301', '\u200d\u0301'],
  ] as const) {
    const expected = (count: number) => {
      const blank = unit.startsWith(' ') ? ' ' : ''
      return `a${blank}${shown.repeat(count)}b`
    }
    // The first is one piece. The second is cut, at places that depend on its unit.
    for (const count of [10, many])
      t.ok(visible(`a${unit.repeat(count)}b`).text === expected(count), JSON.stringify([unit, count]))
  }
})

check('blocks begin and end lines, paragraphs leave an empty one', [
  ['a<div>b</div>c', 'a\nb\nc'],
  ['<div><div>a</div></div><div></div><div>b</div>', 'a\nb'],
  ['<h1>a</h1><h2>b</h2>c', 'a\nb\nc'],
  ['<p>a<p>b', 'a\n\nb'],
  ['<p>a</p><p></p><p></p><p>b</p>', 'a\n\nb'],
  ['<div>a</div><p>b</p><div>c</div>', 'a\n\nb\n\nc'],
  ['<ul><li>a<li>b<ul><li>c</ul></ul>d', 'a\nb\nc\nd'],
  ['<dl><dt>a<dd>b</dl>', 'a\nb'],
  ['a<hr>b', 'a\nb'],
  ['<details><summary>a</summary>b</details>', 'a\nb'],
  ['<nav><a>a</a> <a>b</a></nav><main>c</main><footer>d</footer>', 'a b\nc\nd'],
  ['<blockquote>a</blockquote><figure>b<figcaption>c</figcaption></figure>', 'a\nb\nc'],
  ['<form><fieldset><legend>a</legend><label>b</label></fieldset></form>', 'a\nb'],
  ['<select><option>a<option>b<optgroup label=x><option>c</select>d', 'a\nb\nc\nd'],
])

check('line breaks', [
  ['a<br>b', 'a\nb'],
  ['a <br> b', 'a\nb'],
  ['a<br><br>b', 'a\n\nb'],
  ['a<br><br><br><br>b', 'a\n\nb'],
  ['<br>a<br>', 'a'],
  ['<div>a<br></div><div>b</div>', 'a\nb'],
  ['<p>a<br>b</p>c', 'a\nb\n\nc'],
  ['a<wbr>b', 'ab'],
])

check('tables', [
  ['<table><tr><td>a<td>b<tr><td>c<td>d</table>', 'a\tb\nc\td'],
  ['<table><caption>t</caption><thead><tr><th>a<th>b</thead><tbody><tr><td>c<td>d</table>', 't\na\tb\nc\td'],
  ['<table><tr><td>a<td><td>b</table>', 'a\t\tb'],
  ['<table><tr><td><td>a<tr><td>b<td></table>', '\ta\nb'],
  ['<table><tr><td> a <td> b </table>', 'a\tb'],
  ['<table><tr><td><p>a</p><td><p>b</p></table>', 'a\n\nb'],
  ['<table><tr><td>a<td><table><tr><td>b<td>c</table><td>d</table>', 'a\nb\tc\nd'],
  ['x<table><tr><td>a</table>y', 'x\na\ny'],
  ['<table>misplaced<tr><td>a</table>', 'misplaced\na'],
])

check('preformatted text', [
  ['<pre>\n a\n  b  \n\n\n\nc</pre>d', ' a\n  b\n\nc\nd'],
  ['<pre>a\tb   c</pre>', 'a\tb   c'],
  ['a <code>b  c</code>', 'a b c'],
  ['<pre>a <b>\n  b</b></pre>', 'a\n  b'],
  ['<pre>a\r\nb\rc&#13;d</pre>', 'a\nb\nc\nd'],
  ['<div style="white-space:pre-wrap">a\n b</div>', 'a\n b'],
  ['<div style="white-space:pre-line">a  \n b</div>', 'a\nb'],
  ['<pre>a\n<span style="white-space:normal">b\nc</span></pre>', 'a\nb c'],
  ['<div style="white-space:pre"><table> <tr> <td>a</td> <td>b</td> </tr> </table></div>', 'a\tb'],
])

check('boxes within a line', [
  ['a <span style="display:inline-block"> b </span> c', 'a b c'],
  ['a<span style="display:inline-block"> b </span>c', 'abc'],
  ['a <img> b', 'a b'],
  ['a<img>b', 'ab'],
  ['<div><img> a</div>', 'a'],
  ['a <button> b </button> c', 'a b c'],
  ['<div>a</div><button>b</button> c', 'a\nb c'],
  ['<button><div>a</div></button> b', 'a\nb'],
  ['a<span style="float:left">b</span>c', 'a\nb\nc'],
  ['a<span style="position:absolute">b</span>c', 'a\nb\nc'],
  ['<div style="display:flex"><span>a</span><span>b</span></div>', 'a\nb'],
  ['<div style="display:inline">a</div><div style="display:inline">b</div>', 'ab'],
  ['<span style="display:block">a</span>b', 'a\nb'],
  ['<div style="display:contents">a</div>b', 'ab'],
  [
    '<div style="display:table"><div style="display:table-row"><i style="display:table-cell">a</i><i style="display:table-cell">b</i></div></div>',
    'a\tb',
  ],
])

check('what is no text of the page', [
  ['<title>t</title><p>a', 'a'],
  ['<script>s</script><style>s</style><noscript>n</noscript><template>t</template>a', 'a'],
  ['<!-- c -->a<!-- c -->b', 'ab'],
  ['<textarea>t</textarea><input value=v placeholder=p><img alt=x title=y>a', 'a'],
  ['<iframe>f</iframe><object data=x.png>o</object><video>v</video><audio>u</audio><canvas>c</canvas>a', 'a'],
  ['<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>', '漢かん'],
  ['<svg><title>t</title><desc>d</desc><text>a</text><text>b</text><g>x</g><defs><text>d</text></defs></svg>', 'a\nb'],
  ['<svg><foreignObject><p>a</p></foreignObject></svg>', 'a'],
  ['<math><semantics><mi>a</mi><annotation>x</annotation></semantics></math>', 'a'],
  ['<datalist><option>o</datalist><meter>m</meter><progress>p</progress>a', 'a'],
  ['<template><style>p{display:none}</style></template><p>a', 'a'],
])

check('objects show what they refer to, or their content', [
  ['<object data=x.swf>o</object>', 'o'],
  ['<object data="x.pdf?y">o</object>a', 'a'],
  ['<object data="data:image/png,x">o</object>a', 'a'],
  ['<object data=x type=image/svg+xml>o</object>a', 'a'],
  ['<object data=x.html type=application/x-foo>o</object>', 'o'],
  ['<object data=x>o</object>', 'o'],
  ['<object data="">o</object>', 'o'],
])

check('the parser is that of browsers', [
  ['<p>a<div>b</p>c', 'a\n\nb\n\nc'],
  ['<b>a<p>b</b>c', 'a\n\nbc'],
  ['a &amp; b &lt;c&gt; &copy; &#x1F600; &notit;', 'a & b <c> © 😀 ¬it;'],
  ['&#0;a&#xD800;b&#x110000;c', '\ufffda\ufffdb\ufffdc'],
  ['a\0b', 'ab'],
  ['&#128;&#153;', '€™'],
  ['<plaintext><b>a', '<b>a'],
  ['<xmp><b>a</xmp>b', '<b>a\nb'],
  ['<a href="x"y=">z">a', 'a'],
])

t.test('text hidden by markup is left out and counted', async (t) => {
  for (const [html, text, hidden] of [
    ['a<p hidden>bcd', 'a', 3],
    ['a<p hidden=until-found>bcd', 'a', 3],
    ['a<p style="display:none">bcd', 'a', 3],
    ['a<p style="DISPLAY : NONE ! IMPORTANT; color: red">bcd', 'a', 3],
    ['a<p style="color:red;display:none;">bcd', 'a', 3],
    ['a<p style="d\\69splay:none">bcd', 'a', 3],
    ['a<p style="display:/* x */none">bcd', 'a', 3],
    ['a<p style="visibility:hidden">bcd', 'a', 3],
    ['a<p style="visibility:collapse">bcd', 'a', 3],
    ['a<p style="content-visibility:hidden">bcd', 'a', 3],
    ['a<p style="visibility:hidden">b<b style="visibility:visible">c</b>d', 'a\n\nc', 2],
    ['a<p style="display:none">b<b style="display:block">c</b>d', 'a', 3],
    ['a<dialog>bcd</dialog>', 'a', 3],
    ['a<dialog open>b</dialog>', 'a\nb', 0],
    ['a<div popover>bcd</div>', 'a', 3],
    ['a<p hidden style="display:block">b', 'a\n\nb', 0],
    ['a<p hidden><script>x</script> b <i> c </i>', 'a', 2],
    ['a<p style="xdisplay:none">b', 'a\n\nb', 0],
    ['a<p style="display:nonesuch">b', 'a\n\nb', 0],
    ['a<p style="display:none;display:block">b', 'a\n\nb', 0],
    ['a<p style="display:none !important;display:block">bcd', 'a', 3],
    ['a<p style="content:\'/*\';display:none">bcd', 'a', 3],
    ['a<p style="opacity:0">b', 'a\n\nb', 0],
    ['a<p style="font-size:0">b', 'a\n\nb', 0],
    ['a<p style="position:absolute;left:-9999px">b', 'a\n\nb', 0],
    ['a<p style="position:absolute;clip:rect(0,0,0,0)">b', 'a\n\nb', 0],
    ['a<p style="clip-path:inset(50%)">b', 'a\n\nb', 0],
    ['a<p style="color:#fff;background:#fff">b', 'a\n\nb', 0],
    ['<style>p:first-child{display:none}@supports (display:grid){p{display:none}}</style>a<p>b', 'a\n\nb', 0],
    ['a<svg><text>b<g>cde</g></text></svg>', 'a\nb', 3],
    ['a<math><mrow>bcd</mrow></math>', 'a', 3],
    ['<svg><switch><text systemLanguage=de>a</text><text>b</text><text>c</text></switch></svg>', 'a\nb', 1],
    ['<body hidden>a', 'a', 0],
    ['<html style="visibility:hidden"><p>a', 'a', 0],
  ] as const) {
    t.same(visible(html), { text, hidden }, html)
  }
})

t.test('plain text', async (t) => {
  for (const [source, text] of [
    ['', ''],
    ['a\r\nb\rc\nd', 'a\nb\nc\nd'],
    ['  a  b \n\tc\t\n', '  a  b\n\tc'],
    ['a\n\n\n\nb\n\n', 'a\n\nb'],
    ['\n\n a', ' a'],
    ['<b>a</b> &amp;', '<b>a</b> &amp;'],
    ['a\u00a0b\u00adc', 'a bc'],
    ['page one\n\fpage two', 'page one\n page two'],
  ] as const) {
    const lines = new Lines()
    addPlainText(source, lines, { length: 0 })
    t.equal(lines.toString(), text, JSON.stringify(source))
  }
  t.throws(() => addPlainText('a\0b', new Lines(), { length: 0 }), { code: 'source_unsupported_type' })
})
