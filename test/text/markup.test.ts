import t from 'tap'
import { maxAttributes, maxDepth, maxNesting, maxNodes, parseMarkup } from '../../workers/text/page/markup.ts'

const tooComplex = { name: 'TextRefusalError', code: 'source_too_complex' }

t.test('the limit on depth is exact', async (t) => {
  // html and body are open around them.
  const nested = (depth: number) => '<div>'.repeat(depth - 2)
  t.ok(parseMarkup(nested(maxDepth)))
  t.throws(() => parseMarkup(nested(maxDepth + 1)), tooComplex)
  t.ok(parseMarkup(`${nested(maxDepth)}${'</div>'.repeat(maxDepth)}`.repeat(3)), 'what is closed no longer counts')
})

t.test('the limit on nodes is exact', async (t) => {
  // html, head and body are the first three.
  t.ok(parseMarkup('<br>'.repeat(maxNodes - 3)))
  t.throws(() => parseMarkup('<br>'.repeat(maxNodes - 2)), tooComplex)
  t.throws(() => parseMarkup('<!---->'.repeat(maxNodes)), tooComplex, 'comments count')
  t.throws(() => parseMarkup('<p>x'.repeat(maxNodes / 2)), tooComplex, 'texts count')
})

t.test('many elements, all of them deep', async (t) => {
  const deep = (times: number) => '<div>'.repeat(400) + '<i></i>'.repeat(times)
  t.ok(parseMarkup(deep(50_000)))
  t.throws(() => parseMarkup(deep(Math.ceil(maxNesting / 400))), tooComplex)
})

t.test('a name that does not end', async (t) => {
  t.throws(() => parseMarkup(`<${'x'.repeat(2_200_000)}>`), tooComplex)
  t.throws(() => parseMarkup(`<p ${'x'.repeat(2_200_000)}>`), tooComplex)
  t.ok(parseMarkup(`<p>${'x'.repeat(500_000)} `.repeat(6)))
})

t.test('the limit on attributes', async (t) => {
  const attributes = Array.from({ length: maxAttributes + 1 }, (_, i) => `a${i}=x`)
  t.ok(parseMarkup(`<p ${attributes.slice(1).join(' ')}>`))
  t.throws(() => parseMarkup(`<p ${attributes.join(' ')}>`), tooComplex)
  const endless = `<p ${attributes.join(' ')} `
  t.throws(() => parseMarkup(endless), tooComplex, 'counted as they come, before the tag ends')
})

t.test('the tree is one that cheerio can work on', async (t) => {
  const document = parseMarkup('<table>a<b>b<tr><td class=x>c</table><template><i>d</i></template>')
  const links = (node: (typeof document)['children'][number]): boolean => {
    if (!('children' in node)) return true
    return node.children.every(
      (child, i) =>
        child.parent === node &&
        child.prev === (node.children[i - 1] ?? null) &&
        child.next === (node.children[i + 1] ?? null) &&
        links(child),
    )
  }
  t.ok(document.children.every(links), 'parents and siblings agree')
})

t.test('attributes mean nothing but themselves', async (t) => {
  const document = parseMarkup('<p __proto__=a constructor=b hidden>x<html class=c><html class=d lang=e>')
  const html = document.children.find((node) => 'attribs' in node)
  t.ok(html && 'attribs' in html)
  if (!html || !('attribs' in html)) return
  t.same(
    Object.entries(html.attribs),
    [
      ['class', 'c'],
      ['lang', 'e'],
    ].sort(),
    'the first of each wins',
  )
  t.equal(html.attribs.toString, undefined)
  t.equal(html.attribs.hidden, undefined)
})
