// Pages made to exhaust a parser or a normalizer: name → a page of about so many bytes. Written for these tests.

/** One part again and again. */
export const fill = (size: number, unit: string, before = '', after = '') =>
  before + unit.repeat(Math.max(1, Math.floor((size - before.length - after.length) / unit.length))) + after

const each = (size: number, unit: (i: number) => string, before = '', after = '') => {
  const parts = [before]
  let length = before.length + after.length
  for (let i = 0; ; i++) {
    const part = unit(i)
    length += part.length
    if (length > size) break
    parts.push(part)
  }
  return parts.join('') + after
}

export const hostilePages: Record<string, (size: number) => string> = {
  'deep div': (size) => fill(size, '<div>'),
  'deep div with text': (size) => fill(size, '<div>x'),
  'deep b': (size) => fill(size, '<b>'),
  'deep b with p': (size) => fill(size, '<p><b>x'),
  'deep font, each another': (size) => each(size, (i) => `<font color=${i}>x`),
  'deep nobr and a': (size) => fill(size, '<a><nobr>'),
  'deep list': (size) => fill(size, '<ul><li>'),
  'deep table': (size) => fill(size, '<table><tr><td>'),
  'deep svg': (size) => fill(size, '<svg><g>'),
  'deep math': (size) => fill(size, '<math><mi>'),
  'deep template': (size) => fill(size, '<template>'),
  'shadow trees': (size) => fill(size, '<div><template shadowrootmode=open><slot></slot></template>x</div>'),
  'deep shadow trees': (size) => fill(size, '<div><template shadowrootmode=open>x<slot></slot>'),
  'hosts in hosts': (size) =>
    fill(size, `${'<div><template shadowrootmode=open><slot></slot></template>x'.repeat(400)}${'</div>'.repeat(400)}`),
  'slots of a shadow tree': (size) =>
    each(size, (i) => `<slot name=${i}></slot>`, '<div><template shadowrootmode=open>'),
  'children for slots': (size) =>
    each(size, (i) => `<b slot=${i}>x</b>`, '<div><template shadowrootmode=open><slot></slot></template>'),
  'styles of shadow trees': (size) =>
    fill(size, '<div><template shadowrootmode=open><style>p{float:left}</style><p>x</template></div>'),
  'deep select': (size) => fill(size, '<select><option>'),
  'deep ruby': (size) => fill(size, '<ruby><rt>'),
  'deep blockquote in p': (size) => fill(size, '<p><blockquote>'),
  'deep button and form': (size) => fill(size, '<form><button>'),
  'unknown elements': (size) => fill(size, '<x-y>'),
  'at the limit of depth': (size) => fill(size, `${'<div>'.repeat(500)}x${'</div>'.repeat(500)}`),
  'formatting at the limit of depth': (size) => fill(size, `${'<i>'.repeat(400)}x${'</i>'.repeat(400)}`),
  'wide p': (size) => fill(size, '<p>'),
  'wide p with text': (size) => fill(size, '<p>ab'),
  'wide br': (size) => fill(size, '<br>'),
  'wide img': (size) => fill(size, '<img>'),
  'closed spans': (size) => fill(size, '<span></span>'),
  'closed divs with text': (size) => fill(size, '<div>some more words</div>'),
  'end tags': (size) => fill(size, '</p>'),
  'end tags of nothing': (size) => fill(size, '</b></i></x>'),
  'adoption agency': (size) => fill(size, '<b><p></b>'),
  'adoption agency of anchors': (size) => fill(size, '<a href=x><div><a href=y>z'),
  'misplaced in table': (size) => fill(size, '<b>x</b>', '<table>'),
  'misplaced text in table': (size) => fill(size, 'x<tr>', '<table>'),
  'empty comments in a media query': (size) => fill(size, '/**/', '<style>@media ', 'print{p{float:left}}</style><p>x'),
  'empty comments in names of layers': (size) => fill(size, '/**/', '<style>@layer a', 'b;</style><p>x'),
  'empty comments in a style': (size) => fill(size, '/**/', '<p style="', 'float:left">x'),
  'null characters in table': (size) => fill(size, ' \0', '<table>'),
  'words of one letter misplaced in table': (size) => fill(size, ' \0a\0', '<table>'),
  'words misplaced in table': (size) => fill(size, 'word ', '<table>'),
  'misplaced in nested tables': (size) => fill(size, 'x<table>y</table>', '<table><tr>'),
  'many cells': (size) => fill(size, '<td>x', '<table><tr>'),
  'many rows': (size) => fill(size, '<tr><td>x<td>y', '<table>'),
  'open comment': (size) => fill(size, '<!--', '', ''),
  comments: (size) => fill(size, '<!-- x -->'),
  'comment of dashes': (size) => fill(size, '-', '<!--'),
  'less-than signs': (size) => fill(size, '<'),
  ampersands: (size) => fill(size, '&'),
  entities: (size) => fill(size, '&amp; '),
  'long entities': (size) => fill(size, '&CounterClockwiseContourIntegral; '),
  'numeric references': (size) => fill(size, '&#128512; '),
  'broken references': (size) => fill(size, '&#x;&#;&notit '),
  'a flood of attributes': (size) => each(size, (i) => ` a${i}=b`, '<p', '>x'),
  'a flood of the same attribute': (size) => fill(size, ' a=b', '<p', '>x'),
  'a flood of attributes on html': (size) => each(size, (i) => `<html a${i}=b>`),
  'a flood of attributes on body': (size) => each(size, (i) => `<body a${i}=b>`),
  'one huge attribute': (size) => fill(size, 'x', '<p class="', '">x'),
  'one huge tag name': (size) => fill(size, 'x', '<', '>x'),
  'one huge tag name of non-breaking spaces': (size) => fill(size / 2, '\u00a0', '<a', '>x'),
  'one huge attribute name of no-break spaces': (size) => fill(size / 2, '\u00a0', '<p a', '>x'),
  'one huge attribute name': (size) => fill(size, 'x', '<p ', '>x'),
  'classes copied by formatting': (size) =>
    fill(size / 2, 'c ', '<style>.c{float:left}</style><b class="', '">') + fill(size / 2, '<p>x'),
  'ids copied by formatting': (size) =>
    fill(size / 2, 'c', '<style>.c{float:left}</style><b id="', '">') + fill(size / 2, '<p>x'),
  'style copied by formatting': (size) =>
    fill(60_000, 'x', '<b style="', ';display:inline">') + fill(size - 60_000, '<p>x'),
  'style attributes': (size) => fill(size, '<p style="display:block;float:left;position:absolute">x'),
  'style attribute of escapes': (size) => fill(size, '\\41 ', '<p style="', '">x'),
  'style attribute of comments': (size) => fill(size, '/*', '<p style="', '">x'),
  'style attribute of blanks': (size) => fill(size, ' ', '<p style="', 'x">x'),
  'style attributes of blanks, all over': (size) => fill(size, `<p style="display:none${' '.repeat(6000)}x">x`),
  'style elements': (size) => fill(size, '<style>p{float:left}</style>'),
  'many rules for one class': (size) =>
    fill(size / 2, '.a{float:left} ', '<style>', '</style>') + fill(size / 2, '<p class=a>x'),
  'rules up the tree': (size) =>
    fill(size / 4, '.b .c .d .a{float:left}', '<style>', '</style>') +
    fill((size * 3) / 4, `${'<div>'.repeat(300)}${'<p class=a>x'.repeat(300)}${'</div>'.repeat(300)}`),
  'rules of long selectors': (size) => fill(size, 'a b>c+d~e.f#g[h=i],', '<style>', 'p{float:left}</style><p>x'),
  'nested brackets in selectors': (size) => fill(size, ':not( ', '<style>p', '{float:left}</style><p>x'),
  'nested at-rules': (size) => fill(size, '@media all{', '<style>', 'p{float:left}</style><p>x'),
  'nested rules': (size) => fill(size, '.a{ ', '<style>', 'float:left}</style><p class=a>x'),
  'nested rules of long lists': (size) =>
    fill(
      size,
      `${'.a,'.repeat(1300)}b{${'&.a,'.repeat(900)}b{${'& .a,'.repeat(700)}b{float:left}}}`,
      '<style>',
      '</style><p class=a>x',
    ),
  'names of layers': (size) => fill(size, `@layer ${'a.'.repeat(100_000)}a; `, '<style>', 'p{float:left}</style><p>x'),
  'layers in layers': (size) => fill(size, '@layer a{ ', '<style>', 'p{float:left}</style><p>x'),
  'many layers': (size) => each(size, (i) => `@layer a${i}{p{float:left}}`, '<style>', '</style><p>x'),
  'media queries, each another': (size) =>
    each(size, (i) => `@media (min-width:${i}px){p{float:left}}`, '<style>', '</style><p>x'),
  'media queries of brackets': (size) =>
    each(size, (i) => `@media ${'('.repeat(400)}a${i}{p{float:left}}`, '<style>', '</style><p>x'),
  'media attributes': (size) => each(size, (i) => `<style media="(width>${i}px)">p{float:left}</style>`, '', '<p>x'),
  'open brackets in style': (size) => fill(size, '([ ', '<style>', '</style><p>x'),
  'importance in style': (size) => fill(size, '! ', '<p style="display:none', '">x'),
  'zero-width spaces': (size) => fill(size / 3, '\n\u200b', 'a', 'b'),
  'no-break spaces in lines': (size) => fill(size / 2, '\u00a0 <br>', 'a', 'b'),
  'objects in objects': (size) => fill(size, '<object> </object>', '', 'x'),
  'semicolons in style': (size) => fill(size / 2, ' ', '<style>') + fill(size / 2, ';', '', '</style><p>x'),
  'braces in style': (size) => fill(size, '{} ', '<style>', '</style><p>x'),
  'open strings in style': (size) => fill(size, '"\n', '<style>', '</style><p>x'),
  'one long string in style': (size) => fill(size, 'x ', '<style>"', '</style><p>x'),
  'open comments in style': (size) => fill(size, '/*', '<style>', '</style><p>x'),
  'open urls in style': (size) => fill(size, 'url(x ', '<style>', '</style><p>x'),
  blanks: (size) => fill(size, ' ', '', 'x'),
  'blanks in pre': (size) => fill(size, ' ', '<pre>', 'x'),
  'blanks between words in pre': (size) => fill(size, 'x ', '<pre>'),
  'lines in pre': (size) => fill(size, '\n', '<pre>', 'x'),
  'short lines in pre': (size) => fill(size, 'x\n', '<pre>'),
  'carriage returns': (size) => fill(size, '\r', '<pre>', 'x'),
  'carriage returns and line feeds': (size) => fill(size, '\r\n', '<pre>', 'x'),
  'tabs and line feeds': (size) => fill(size, '\t\n', 'x', 'x'),
  'non-breaking spaces': (size) => fill(size, '\u00a0'),
  'non-breaking spaces and blanks': (size) => fill(size, '\u00a0 '),
  'non-breaking spaces and line feeds': (size) => fill(size, '\u00a0\n'),
  'wide blanks and tabs in pre': (size) => fill(size, '\u3000\t', '<pre>', 'x'),
  'unseen characters and blanks': (size) => fill(size, '\ufe0f\u0001 ', 'a', 'b'),
  nulls: (size) => fill(size, '\0', '<p>', 'x'),
  'combining marks': (size) => fill(size / 2, `a${'\u0301\u0316'.repeat(50_000)} `.slice(0, size / 2)),
  'combining marks on letters': (size) => fill(size / 2, 'a\u0301\u0316'),
  'zero-width joiners': (size) => fill(size / 3, '\u200d', 'a', 'b'),
  'tag characters': (size) => fill(size / 4, '\u{e0041}', 'a', 'b'),
  'variation selectors': (size) => fill(size / 3, '\ufe0f', 'a', 'b'),
  'direction overrides': (size) => fill(size / 3, '\u202ea'),
  hangul: (size) => fill(size / 3, '\u1112\u1161\u11ab'),
  'one long word': (size) => fill(size, 'x'),
  'one line of words': (size) => fill(size, 'word '),
  emoji: (size) => fill(size / 4, '😀'),
  'open script': (size) => fill(size, 'x<', '<script>'),
  'script comments': (size) => fill(size, '<!--<script>', '<script>'),
  'open textarea': (size) => fill(size, '</t', '<textarea>'),
  'open title': (size) => fill(size, '</titl', '<title>'),
  'open noscript': (size) => fill(size, '<p>', '<noscript>'),
  plaintext: (size) => fill(size, '<p>', '<plaintext>'),
  doctypes: (size) => fill(size, '<!DOCTYPE html>'),
  'processing instructions': (size) => fill(size, '<?xml?>'),
  'cdata sections': (size) => fill(size, '<![CDATA[x]]>', '<svg>'),
  framesets: (size) => fill(size, '<frameset>'),
  'hidden text': (size) => fill(size, '<p>secret', '<div hidden>', '</div>x'),
  metas: (size) => fill(size, '<meta charset=x>'),
  details: (size) => fill(size, '<details><summary>x</summary>y</details>'),
  'comments in a string in a condition': (size) =>
    fill(size, '/* ', '<style>@media "', '" {a{display:none}}</style><p>x'),
  'comments in strings in conditions': (size) =>
    fill(size, `@media "${'/* '.repeat(300)}" {a{display:none}}`, '<style>', '</style><p>x'),
  'comments in open strings in selectors': (size) =>
    fill(size, `a"${'/*'.repeat(1900)}\n{display:none}`, '<style>', '</style><p>x'),
  'comments in strings in declarations': (size) =>
    fill(size, `display:"${'/*'.repeat(400)}\n;`, '<style>p{', '}</style><p>x'),
  'words in a long attribute': (size) =>
    fill(size / 2, '[x~="a"]{display:none}', '<style>', '</style>') + fill(size / 2, 'ba', '<p x="', '">x'),
  'parts of a long attribute': (size) =>
    fill(size / 2, `[x*="${'a'.repeat(40)}b"]{display:none}`, '<style>', '</style>') +
    fill(size / 2, 'a', '<p x="', '">x'),
  'long parts of attributes': (size) =>
    fill(size / 2, `[x*="b${'a'.repeat(400)}"]{display:none}`, '<style>', '</style>') +
    fill(size / 2, `<p x="${'a'.repeat(900)}">x`),
  'attributes whatever their case': (size) =>
    fill(size / 2, '[x="a" i]{display:none}', '<style>', '</style>') + fill(size / 2, 'A', '<p x="', '">x'),
  'many conditions on one attribute': (size) =>
    fill(size / 2, `${'[x^=a]'.repeat(600)}{display:none}`, '<style>', '</style>') + fill(size / 2, '<p x=a>x'),
  'classes, each another, of many rules': (size) =>
    fill(size / 4, '.a{float:left} ', '<style>', '</style>') + each((size * 3) / 4, (i) => `<p class="a b${i}">x`),
  'ids of many rules': (size) => fill(size / 2, '#a{float:left} ', '<style>', '</style>') + fill(size / 2, '<p id=a>x'),
  'a rule of many declarations': (size) =>
    fill(Math.min(size / 2, 60_000), 'float:left;', '<style>p{', '}</style>') +
    fill(Math.max(size / 2, size - 60_000), '<p>x'),
  'nested rules that declare nothing': (size) =>
    fill(size, 'b{float}', `<style>${'.a,'.repeat(1000)}.a{`, '}</style><p>x'),
  'nested rules of many nests': (size) =>
    fill(size, `${'&'.repeat(3900)}{float}`, `<style>${'.a,'.repeat(1000)}.a{`, '}</style><p>x'),
  'long conditions, each another': (size) =>
    each(
      size,
      (i) => `@media ${'(width>1px) and '.repeat(60)}(width>${i}px){p{float:left}}`,
      '<style>',
      '</style><p>x',
    ),
  'attributes copied by formatting': (size) =>
    fill(size, '<p>x', `<b${Array.from({ length: 900 }, (_, i) => ` a${i}`).join('')}>`),
  'some attributes copied by formatting': (size) => fill(size, '<p>x', '<b a b c d e f g h i j k l m n o>'),
  'formatting with many attributes': (size) =>
    each(
      size,
      (i) =>
        `<b${Array.from({ length: 300 }, (_, n) => ` a${n}`).join('')} x=${i}>x${i % 400 === 399 ? '</b>'.repeat(400) : ''}`,
    ),
  'a flood of attributes on many elements': (size) =>
    fill(size, `<p${Array.from({ length: 900 }, (_, i) => ` a${i}`).join('')}>x`),
  'end tags of nothing inside of spans': (size) => fill(size, '</x>', '<span>'.repeat(500)),
  'end tags of p inside of spans': (size) => fill(size, '</p>', '<span>'.repeat(400)),
  'void elements inside of spans': (size) => fill(size, '<hr>', '<span>'.repeat(400)),
  'words and carriage returns': (size) => fill(size, 'a\r'),
  'carriage returns in pre': (size) => fill(size, 'a\r', '<pre>'),
  'quotes in a selector': (size) => fill(size, `"'`, '<style>', '{display:none}</style><p>x'),
  'escapes in selectors': (size) => fill(size, '\\', '<style>', '{display:none}</style><p>x'),
  'brackets in attribute values of selectors': (size) => fill(size, '[x="', '<style>', '{display:none}</style><p>x'),
  'style attributes, each another': (size) => each(size, (i) => `<p style="display:none;top:${i}px">x`),
  'unclosed tags': (size) => fill(size, '<p a'),
  'unclosed attribute values': (size) => fill(size, '<p a="'),
  'tables in formatting': (size) => fill(size, '<b><table>x</b>'),
  'lists of languages in selectors': (size) => fill(size, ':lang(a,b),', '<style>', 'p{display:none}</style><p>x'),
  'negations in selectors': (size) => fill(size, ':not(a,b,c:not(d)),', '<style>', 'p{display:none}</style><p>x'),
}
