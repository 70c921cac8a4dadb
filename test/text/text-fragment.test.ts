// Links by text fragments, by the rules of the specification.
import t from 'tap'
import { linkTo, textDirective } from '../../workers/text/text-fragment.ts'

/** The directive of the first occurrence of a passage. */
function directiveOf(text: string, passage: string, from = 0): string {
  const start = text.indexOf(passage, from)
  return textDirective(text, start, start + passage.length)
}

/** The parts of a directive, decoded: prefix, first words, last words, suffix. */
function read(directive: string) {
  t.match(directive, /^text=([^,&#\s-]+-,)?[^,&#\s-]+(,[^,&#\s-]+)?(,-[^,&#\s-]+)?$/)
  t.match(directive, /^[\x21-\x7e]+$/, 'ASCII')
  const parts = directive.slice('text='.length).split(',')
  return parts.map((part) =>
    part.endsWith('-') ? `${decodeURIComponent(part.slice(0, -1))}-` : decodeURIComponent(part),
  )
}

t.test('what has a meaning in a directive or in a link is percent-encoded', async (t) => {
  const text = `a-b, c & d (e) 'f' *g*! ü 漢 😀 100%`
  t.equal(
    directiveOf(text, text),
    'text=a%2Db%2C%20c%20%26%20d%20%28e%29%20%27f%27%20%2Ag%2A%21%20%C3%BC%20%E6%BC%A2%20%F0%9F%98%80%20100%25',
  )
  t.same(read(directiveOf(text, text)), [text])
})

t.test('a passage that cuts a word is widened to the whole word', async (t) => {
  const text = 'The harbour was opened.\nFishing ended.'
  t.same(read(directiveOf(text, 'arbour was open')), ['harbour was opened'])
  t.same(read(directiveOf(text, 'Fishing ended')), ['Fishing ended'])
  t.same(read(directiveOf('Ça va très bien, cœur', 'a va tr')), ['Ça va très'])
  t.same(read(directiveOf(`${'x'.repeat(300)} end`, 'x end')), [`${'x'.repeat(101)} end`], 'a very long word is cut')
})

t.test('a long passage, or one of several lines, is named by its first and last words', async (t) => {
  const lines = 'One two three four five six.\nSeven eight.\nNine ten eleven twelve thirteen fourteen.'
  t.same(read(directiveOf(lines, lines)), ['One two three four five', 'ten eleven twelve thirteen fourteen.'])
  const long = Array.from({ length: 90 }, (_, n) => `word${n}`).join(' ')
  t.same(read(directiveOf(long, long)), ['word0 word1 word2 word3 word4', 'word85 word86 word87 word88 word89'])
  const han = '港は開かれ'.repeat(100)
  const [first = '', last = ''] = read(directiveOf(han, han))
  t.ok(han.startsWith(first) && han.endsWith(last) && first.length < 120, `${first} ${last}`)
  t.ok(textDirective('😀'.repeat(400), 0, 800).isWellFormed())
})

t.test('words that come before as well get a prefix', async (t) => {
  const text = 'We say: THE FEE is 12. They say: the fee is 12.'
  const start = text.lastIndexOf('the fee')
  t.same(read(textDirective(text, start, start + 'the fee'.length)), ['FEE is 12. They say:-', 'the fee'])
  t.same(read(directiveOf(text, 'THE FEE')), ['THE FEE'])
})

t.test('the link keeps the page and the element of its fragment', async (t) => {
  t.equal(linkTo('https://a.example/b?c', 'text=x'), 'https://a.example/b?c#:~:text=x')
  t.equal(linkTo('https://a.example/b#part', 'text=x'), 'https://a.example/b#part:~:text=x')
  t.equal(linkTo('https://a.example/b#part:~:text=y', 'text=x'), 'https://a.example/b#part:~:text=x')
  t.equal(linkTo('https://a.example/b#:~:text=y', 'text=x'), 'https://a.example/b#:~:text=x')
  t.equal(linkTo('https://a.example/b#x', textDirective(' \n ', 0, 3)), 'https://a.example/b#x')
})
