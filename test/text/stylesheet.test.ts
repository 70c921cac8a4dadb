import t from 'tap'
import { Lines } from '../../workers/text/page/lines.ts'
import { addVisibleText } from '../../workers/text/page/visible-text.ts'

function visible(html: string) {
  const lines = new Lines()
  addVisibleText(html, lines, { length: 0 }, { length: 0 })
  return lines.toString()
}

const page = `
  <div id=a class="one two" title="some title">a
    <div class=three lang=en-GB>b
      <span class="four one">c</span>
    </div>
  </div>`

/** Each pair is a style sheet and what it leaves of the page above. */
function check(name: string, pairs: [css: string, text: string][]) {
  t.test(name, async (t) => {
    for (const [css, text] of pairs) t.equal(visible(`<style>${css}</style>${page}`), text, css)
  })
}

check('selectors', [
  ['', 'a\nb c'],
  ['span {display: none}', 'a\nb'],
  ['SPAN{display:none}', 'a\nb'],
  ['.three{display:none}', 'a'],
  ['#a{display:none}', ''],
  ['.one{display:none}', ''],
  ['.one.four{display:none}', 'a\nb'],
  ['div.four{display:none}', 'a\nb c'],
  ['span.one.four{display:none}', 'a\nb'],
  ['.One{display:none}', 'a\nb c'],
  ['.on{display:none}', 'a\nb c'],
  ['.x, .four, .y{display:none}', 'a\nb'],
  ['#a .four{display:none}', 'a\nb'],
  ['#a > .four{display:none}', 'a\nb c'],
  ['#a > .three > span{display:none}', 'a\nb'],
  ['#a .three span{display:none}', 'a\nb'],
  ['body div > div span{display:none}', 'a\nb'],
  ['.three #a span{display:none}', 'a\nb c'],
  ['[title]{display:none}', ''],
  ['[title="some title"]{display:none}', ''],
  ['[title="some"]{display:none}', 'a\nb c'],
  ['[title~=some]{display:none}', ''],
  ['[title^=some][title$=title][title*="me ti"]{display:none}', ''],
  ['[lang|=en]{display:none}', 'a'],
  ['[lang=EN-gb i]{display:none}', 'a'],
  ['*{display:none}', ''],
  ['#\\61{display:none}', ''],
  ['.th\\72 ee{display:none}', 'a'],
])

check('selectors that do not hold on a page at rest', [
  ['span:hover{display:none}', 'a\nb c'],
  ['span{display:none} div:hover span{display:inline}', 'a\nb'],
  ['span::before{display:none}', 'a\nb c'],
  ['span:before{display:none}', 'a\nb c'],
])

check('selectors that are not evaluated hide nothing, but may show', [
  ['span:first-child{display:none}', 'a\nb c'],
  ['div:not(.x) span{display:none}', 'a\nb c'],
  ['.three{display:none} .three:first-child{display:block}', 'a\nb c'],
  ['.three{display:none} p + .three{display:block}', 'a\nb c'],
  ['.three{visibility:hidden} div:not(.x){visibility:visible}', 'a\nb c'],
  ['.three:first-child{display:block} .three{display:none}', 'a\nb c'],
  ['div:first-child{display:block} .three.three{display:none}', 'a'],
  ['#a .three{display:none} .three:first-child{display:block}', 'a'],
  ['span{display:none} :is(span){display:block}', 'a\nb\nc'],
])

check('what cannot be told hides nothing, but may show', [
  ['.three{display:none;display:var(--x)}', 'a\nb c'],
  ['.three{display:var(--x)}', 'a\nb c'],
  ['.three{visibility:hidden;visibility:var(--x)}', 'a\nb c'],
  ['@supports (x:y){span{display:none}}', 'a\nb c'],
  ['@container (min-width:1px){span{display:none}}', 'a\nb c'],
  ['@scope (#a){span{display:none}}', 'a\nb c'],
  ['@media (min-width:calc(1px + 1px)){span{display:none}}', 'a\nb c'],
  ['@media not (min-width:5constructor){span{display:none}}', 'a\nb c'],
  ['@media not (min-resolution:5constructor){span{display:none}}', 'a\nb c'],
  ['span{display:none}@container (min-width:1px){span{display:inline}}', 'a\nb c'],
  ['#a .three{.one &{display:none}}', 'a\nb c'],
  ['&{display:none}', 'a\nb c'],
])

check('the cascade', [
  ['.four{display:none} .four{display:inline}', 'a\nb c'],
  ['.four{display:inline} .four{display:none}', 'a\nb'],
  ['.four{display:none} span{display:inline}', 'a\nb'],
  ['span.four{display:inline} .four{display:none}', 'a\nb c'],
  ['.four{display:none!important} #a span{display:inline}', 'a\nb'],
  ['.four{display:none ! IMPORTANT} #a span{display:inline!important}', 'a\nb c'],
  ['.three{visibility:hidden}', 'a'],
  ['.three{visibility:hidden} span{visibility:visible}', 'a\nc'],
  ['span{display:block}', 'a\nb\nc'],
  ['.three{display:inline}', 'a b c'],
  ['.three{white-space:pre-line}', 'a\nb\nc'],
  ['span{float:right}', 'a\nb\nc'],
  ['span{display:none;display:inline}', 'a\nb c'],
  ['span{display:none;display:sideways}', 'a\nb'],
  ['span{display:none;}}', 'a\nb'],
])

t.test('a style attribute is stronger than rules, but for important ones', async (t) => {
  const text = (css: string, style: string) => visible(`<style>${css}</style><p style="${style}">x`)
  t.equal(text('p{display:none}', 'display:block'), 'x')
  t.equal(text('p{display:none!important}', 'display:block'), '')
  t.equal(text('p{display:none!important}', 'display:block!important'), 'x')
  t.equal(text('p{display:block}', 'display:none'), '')
})

check('conditions', [
  ['@media print{span{display:none}}', 'a\nb c'],
  ['@media screen{span{display:none}}', 'a\nb'],
  ['@media all{@media only screen{span{display:none}}}', 'a\nb'],
  ['@media (max-width:600px){span{display:none}}', 'a\nb c'],
  ['span{display:none} @media (min-width:600px){span{display:block}}', 'a\nb\nc'],
  ['span{display:none} @media print{span{display:block}}', 'a\nb'],
  ['@media print, (min-width:1px){span{display:none}}', 'a\nb'],
  ['@supports (display:grid){span{display:none}}', 'a\nb c'],
  ['@layer base{span{display:none}}', 'a\nb'],
  ['@layer a, b; span{display:none}', 'a\nb'],
  ['@import url(x.css); span{display:none}', 'a\nb'],
  ['@charset "utf-8";span{display:none}', 'a\nb'],
  ['@keyframes k{from{visibility:hidden}} span{display:none}', 'a\nb'],
  ['@font-face{font-family:x;src:url(y)} span{display:none}', 'a\nb'],
])

check('sheets as they are found', [
  ['/* span{display:none} */', 'a\nb c'],
  ['/* x */span/* y */{/* z */display/**/:none}', 'a\nb'],
  ['p{content:"}"} span{display:none}', 'a\nb'],
  ["p{content:'/*'} span{display:none}", 'a\nb'],
  ['p{content:"\\"}"} span{display:none}', 'a\nb'],
  ['p{background:url(x;{y)} span{display:none}', 'a\nb'],
  ['<!-- span{display:none} -->', 'a\nb'],
  ['<![CDATA[ span{display:none} ]]>', 'a\nb c'],
  ['p &gt; x; span{display:none}', 'a\nb c'],
  ['} span{display:none}', 'a\nb c'],
  ['p{color:red}; span{display:none}', 'a\nb c'],
  ['span{display:none', 'a\nb'],
  ['span{}{display:none}', 'a\nb c'],
  ['span,{display:none}', 'a\nb c'],
  ['span,,b{display:none}', 'a\nb c'],
  ['#a{.three{display:none}}', 'a'],
  ['#a{display:none;.three{color:red}}', ''],
  ['span{display:none', 'a\nb'],
])

t.test('which sheets count', async (t) => {
  const text = (style: string) => visible(`${style}<p>x`)
  t.equal(text('<style media=print>p{display:none}</style>'), 'x')
  t.equal(text('<style media=screen>p{display:none}</style>'), '')
  t.equal(text('<style media="(max-width:1px)">p{display:none}</style>'), 'x')
  t.equal(text('<template><style>p{display:none}</style></template>'), 'x')
  t.equal(text('<noscript><style>p{display:none}</style></noscript>'), 'x')
  t.equal(text('<svg><style>p{display:none}</style></svg>'), '')
  t.equal(visible('<p>x<style>p{display:none}</style>'), '', 'wherever they stand')
  t.equal(text('<style>body{display:none!important} html{visibility:hidden}</style>'), 'x', 'a page hides not itself')
})

t.test('beyond the limits rules are passed over', async (t) => {
  const filler = 'i{color:red} '.repeat(90_000)
  t.equal(visible(`<style>${filler}p{display:none}</style><p>x`), 'x', 'characters of style')
  const rules = '.a{display:block} '.repeat(10_000)
  t.equal(visible(`<style>${rules}p{display:none}</style><p>x`), 'x', 'rules')
  const nested = `${'@media all{'.repeat(6)}p{display:none}`
  t.equal(visible(`<style>${nested}</style><p>x`), 'x', 'nested conditions')
  t.equal(visible(`<style>${nested.slice('@media all{'.length)}</style><p>x`), '')
})
