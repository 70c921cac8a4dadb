import { type DefaultTreeAdapterMap, type DefaultTreeAdapterTypes, parse } from 'parse5'
import t from 'tap'
import { parseFast } from '../../workers/text/page/tokenizer.ts'
import { LONG } from '../long.ts'
import { hostilePages } from './hostile-pages.ts'

type Node = DefaultTreeAdapterTypes.Node

/** The tree as one string, without the data of comments and the text that is never shown. Neighbouring texts are joined. */
function outline(document: Node): string {
  const parts: string[] = []
  const open: (Node | string)[] = [document]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node === 'string') parts.push(node)
    else if ('value' in node) {
      if (!unread.has(node.parentNode?.nodeName)) parts.push(node.value)
    } else {
      const attributes = 'attrs' in node ? node.attrs.map(({ name, value }) => ` ${name}=${JSON.stringify(value)}`) : []
      parts.push(`<${node.nodeName}${attributes.join('')}>`)
      open.push(`</${node.nodeName}>`)
      const inside = 'content' in node ? [node.content] : 'childNodes' in node ? node.childNodes : []
      open.push(...inside.toReversed())
    }
  }
  return parts.join('')
}

/** Blanks of a page of frames stand in the other two. */
const unread: ReadonlySet<string | undefined> = new Set(['script', 'frameset', 'html'])

/** A generator of numbers from 0 to 1 that is the same in each run. */
function openChance(seed: number) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    return ((state >>> 8) & 0xffff) / 0x10000
  }
}

const pieces = [
  ...'< > / = " \' & ; - ! ? ] [ # x 0 A'.split(' '),
  ...[
    ' ',
    '\n',
    '\t',
    '\f',
    '\0',
    'word',
    'two words ',
    '😀',
    '\ud83d',
    '\udc00',
    'é',
    '&amp;',
    '&notit;',
    '&#0;',
    '&#x1F600;',
  ],
  ...'<p> </p> <b> </b> <a href=x> <div class="a b"> </div> <br/> <table> <tr> <td> </table> <pre> <svg> <math> </svg>'.split(
    ' ',
  ),
  ...'<script> </script> <style> </style> <textarea> </textarea> <title> </title> <xmp> </xmp> <iframe>'.split(' '),
  ...'<noscript> </noscript> <plaintext> <template> </template> <select> <option> <frameset> <!-- --> <!--> --!>'.split(
    ' ',
  ),
  ...'<![CDATA[ ]]> <!doctype <!DOCTYPE\u0020html> <?xml ?> </scr </SCRIPT > <script\u0020 </style\u0020x'.split(' '),
  ...["<i title='", '<I TITLE="', '<i id=', '<Ünder-x9 ', ' data-Y_1=', '<p\0', "'>", '">', 'a\u00a0b'],
]

/** Where text stands outside of the cells of a table. */
const piecesOfTables = [
  ...[' ', '\n', '\0', 'a', 'b\n', '&#0;', '&amp;', '<!-- -->'],
  ...'<table> <tr> <td> </td> </table> <b> </b> <p> <svg> </svg> <template>'.split(' '),
]

for (const [name, parts] of Object.entries({ 'random markup': pieces, 'random tables': piecesOfTables }))
  t.test(`the tree is that of parse5: ${name}`, async (t) => {
    const chance = openChance(7)
    const differing: string[] = []
    for (let run = 0; run < (LONG ? 200_000 : 4000); run++) {
      const length = 1 + Math.floor(chance() * 24)
      const html = Array.from({ length }, () => parts[Math.floor(chance() * parts.length)]).join('')
      if (outline(parseFast<DefaultTreeAdapterMap>(html, {})) !== outline(parse(html))) differing.push(html)
    }
    t.same(differing, [])
  })

t.test('the tree is that of parse5: hostile pages', async (t) => {
  for (const [name, build] of Object.entries(hostilePages)) {
    const html = build(2000).replaceAll('\r', '\n')
    t.equal(outline(parseFast<DefaultTreeAdapterMap>(html, {})), outline(parse(html)), name)
  }
})

t.test('chunks of the source that the parser drops change nothing', async (t) => {
  const long = 'some words &amp; more, '.repeat(9000)
  for (const html of [
    `<p title="${long}">${long}</p><!--${long}--><p>${long}`,
    `<style>${long}</style><script>${long}<!--<script>${long}</script>-->${long}</script><p>${long}<b>${long}`,
    `<textarea>${long}</textarea><title>${long}</title><table>${long}<tr><td>${long}</table>`,
  ]) {
    t.equal(outline(parseFast<DefaultTreeAdapterMap>(html, {})), outline(parse(html)))
  }
})
