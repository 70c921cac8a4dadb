import t from 'tap'
import { openThreads } from '../../server/threads/pool.ts'
import { extractText } from '../../workers/text/page/extraction.ts'
import { extract } from '../../workers/text/page/text-thread.ts'
import { hostilePages } from './hostile-pages.ts'

const contentType = 'text/html; charset=utf-8'
const bytes = (html: string) => new TextEncoder().encode(html)

/** What holds for the text of every page. */
function violations(text: string) {
  return [
    !text.isWellFormed() && 'lone surrogates',
    text !== text.normalize('NFC') && 'not composed',
    Array.from(text).length > 100_000 && 'too long',
    /^\n|\n$/.test(text) && 'begins or ends with a break',
    /[^\S\n](\n|$)/.test(text) && 'blanks at the end of a line',
    text.includes('\n\n\n') && 'two empty lines',
    /[\p{Cc}\u2028\u2029]/u.test(text.replace(/[\n\t]/g, '')) && 'controls',
    /[\u200b\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/u.test(text) && 'unseen characters',
    /\p{M}{31}/u.test(text) && 'a pile of marks',
  ].filter(Boolean)
}

t.test('every hostile page comes to an end that has a name', async (t) => {
  for (const [name, build] of Object.entries(hostilePages)) {
    const page = { contentEncoding: 'identity', contentType } as const
    const outcome = extract({ ...page, body: bytes(build(50_000)) })
    const again = extract({ ...page, body: bytes(build(50_000)) })
    t.same(again, outcome, `${name}: the same twice`)
    if (outcome.ok) t.same(violations(outcome.extraction.text), [], `${name}: text`)
    else t.match(outcome.code, /^source_(too_complex|empty)$/, `${name}: ${outcome.message}`)
  }
})

t.test('the largest of them are held within the limits of a thread, beside the event loop', async (t) => {
  await using threads = openThreads({ maxThreads: 1 })
  const signal = AbortSignal.timeout(60_000)
  for (const name of [
    'deep div with text',
    'wide p with text',
    'entities',
    'misplaced text in table',
    'blanks between words in pre',
  ]) {
    const body = bytes(hostilePages[name]!(8_388_608))
    const outcome = await extractText(threads, { body, contentEncoding: 'identity', contentType }, { signal }).then(
      ({ codePoints }) => `${codePoints} code points`,
      (error) => error.code,
    )
    t.match(outcome, /^\d+ code points$|^source_too_complex$/, name)
  }
  t.equal(signal.aborted, false)
})
