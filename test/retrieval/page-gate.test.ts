// Which pages are refused because they are not the document itself, with a corpus of small pages (fixtures/gate). One
// phrase must not refuse a page that has text or the words of the claim. A page with neither is refused and not charged.
import t from 'tap'
import { judgePage } from '../../workers/retrieval/page-quality.ts'
import { gatePages } from './gate.ts'

const page = (text: string) => ({ source: { normalized_text: text, decoded_bytes: 4000 } })
const refused = gatePages('refused')
const readable = gatePages('readable')

/** Claims that no page is related to; the second names a site, as many pages do. */
const UNRELATED = [
  'The copper mine at Quillota closed in 1931 after a flood.',
  'The Kelby Herald reported that rents in the old quarter rose by a tenth.',
]

t.test('a paywall, bot check, error page or empty shell without words of the claim is refused', (t) => {
  for (const { outcome: code, name, text } of refused)
    for (const claim of UNRELATED)
      t.throws(() => judgePage(claim, page(text)), { name: 'AppError', code }, `${code}: ${name}`)
  t.end()
})

t.test('a page with such a phrase that has the words of the claim is read, with a flag', (t) => {
  for (const { outcome, name, claim, text } of readable)
    t.same(judgePage(claim, page(text)), outcome === 'none' ? [] : [outcome], name)
  t.end()
})

t.test('a page is read for a claim in other words, too', (t) => {
  const text = (name: string) => readable.find((one) => one.name.startsWith(name))!.text
  t.same(judgePage('It is a library to read serial ports.', page(text('a repository'))), [])
  t.same(judgePage("Kelby's harbour master resigned.", page(text('a teaser'))), ['login_wall_suspected'])
  t.same(judgePage('The height of the lighthouse of Kelby is 31 m.', page(text('an encyclop'))), ['soft_404_suspected'])
  t.end()
})

t.test('a page with enough text is read, also for a claim it says nothing about', (t) => {
  for (const name of [
    'a product page with a sign-in line in its menu',
    'an article about pay walls',
    'an article about subscriptions below a log-in line',
  ]) {
    const { outcome, text } = readable.find((one) => one.name === name)!
    for (const claim of UNRELATED) t.same(judgePage(claim, page(text)), [outcome], name)
  }
  t.end()
})

t.test('words of the claim do not count where an error page only repeats its URL', (t) => {
  const claim = 'The harbour of Kelby was opened in 1874 by the county engineer.'
  const { text } = refused.find(({ name }) => name.startsWith('repeats the address'))!
  t.throws(() => judgePage(claim, page(text)), { code: 'source_not_found' })
  t.end()
})

t.test('a page that asks for a sign-in only for one action, such as a comment, is read', (t) => {
  for (const line of [
    'You must be signed in to change notification settings',
    'Please log in to leave a comment.',
    'You need to log in to write a review',
    'Leave a reply\nYou must be logged in to continue.',
    'To comment on a\nstory, you must be logged in to an account.',
    'Please sign in to join the discussion',
    'You must be logged in to vote',
    'Bitte melden Sie sich an, um einen Kommentar zu schreiben.',
    'Connectez-vous pour laisser un commentaire',
    'Debes iniciar sesión para comentar',
    'Необходимо войти, чтобы оставить комментарий',
  ])
    t.same(judgePage(UNRELATED[0]!, page(`Tinyport\n${line}`)), [], line)
  t.end()
})
