// A report of 60 citations with planted faults, and the pages that it cites. Each citation comes with the status that a check
// must find.
import type { Page } from '../site.ts'

interface Place {
  name: string
  path: string
  year: number
  engineer: string
  length: number
  trade: string
}

const PLACES: Place[] = [
  { name: 'Kelby', path: '/kelby', year: 1874, engineer: 'Ada Norrish', length: 212, trade: 'herring' },
  { name: 'Orsay', path: '/orsay', year: 1881, engineer: 'Tom Abbot', length: 340, trade: 'slate' },
  { name: 'Marrow', path: '/marrow', year: 1902, engineer: 'Elsa Quint', length: 97, trade: 'barley' },
  { name: 'Tain Head', path: '/tain', year: 1866, engineer: 'Owen Price', length: 455, trade: 'coal' },
  { name: 'Saltby', path: '/saltby', year: 1911, engineer: 'Ida Crane', length: 128, trade: 'timber' },
  { name: 'Dunmere', path: '/dunmere', year: 1859, engineer: 'Hugh Vane', length: 301, trade: 'granite' },
  { name: 'Ferrick', path: '/ferrick', year: 1890, engineer: 'Mary Oldham', length: 188, trade: 'linen' },
  { name: 'Holm', path: '/holm', year: 1923, engineer: 'Karl Lund', length: 276, trade: 'oysters' },
]

function html({ name, year, engineer, length, trade }: Place): string {
  return `<!doctype html><title>${name}</title><h1>The harbour of ${name}</h1>
<p>The harbour of ${name} was opened in ${year} by ${engineer}, who had drawn its plans as a student. Its main pier is ${length}
metres long and carries a lighthouse that the county repainted twice.</p>
<p>“For forty years the trade in ${trade} fed every family in the town,” the chronicle of ${name} says. The last cargo of
${trade} left on a Sunday; the warehouses have stood empty since then.</p>
<p>A ferry calls twice a week between April and October. Visitors may climb the lighthouse for a small fee.</p>`
}

export const PAGES: Record<string, string | Page> = {
  ...Object.fromEntries(PLACES.map((place) => [place.path, html(place)])),
  '/holm-old': { status: 301, headers: { location: '/holm' }, body: '' },
  '/archive/saltby': { status: 302, headers: { location: '/saltby' }, body: '' },
  '/marrow/': { status: 301, headers: { location: '/marrow' }, body: '' },
  '/lost': { body: '<title>Not found</title><h1>404</h1><p>Page not found</p>' },
  '/map': { type: 'image/png', body: 'no text' },
}

/** One place of the report: its Markdown, and the statuses of its citations in the order of the text. */
interface Passage {
  text: string
  found: [path: string, status: string][]
}

const passage = (text: string, ...found: Passage['found']): Passage => ({ text, found })

/** The sentences of a section about one place, all of them right. */
function section({ name, path, year, engineer, length, trade }: Place, n: number): Passage[] {
  return [
    passage(`## ${name}`),
    passage(
      `According to [the county](${path}), "the harbour of ${name} was opened in ${year}". Its pier is the pride of the town: ` +
        `“Its main pier is ${length} metres long” [${n}].`,
      [path, 'typographic'],
      [path, 'ok'],
    ),
    passage(
      `The town lived on one good. The chronicle says:\n\n> For forty years the trade in ${trade} fed\n> every family in the town\n>\n` +
        `> — [Chronicle of ${name}](${path})`,
      [path, 'ok'],
    ),
    passage(
      `- The builder "${engineer}, who had drawn its plans as a student" [was young](${path}).\n` +
        `- Most people in ${name} depended on ${trade} for a living.[^${n}]`,
      [path, 'ok'],
      [path, 'unverified'],
    ),
  ]
}

const FAULTS: Passage[] = [
  passage('## Faults'),
  passage('The county writes that "the harbour of Kelby was opened in 1847" [as we know](/kelby).', [
    '/kelby',
    'wrong',
  ]),
  passage('Its lighthouse is “a lighthouse that the county repainted three times”[^1].', ['/kelby', 'wrong']),
  passage('Of the last cargo it says ([Tain Head](/tain)):\n\n> The last cargo of coal left on a Friday', [
    '/tain',
    'wrong',
  ]),
  passage('"The trade in slate fed every family in the town" was said of [Marrow](/marrow).', ['/marrow', 'wrong']),
  passage('The keeper wrote that "the sea took the bell in the great storm" [at Dunmere](/dunmere).', [
    '/dunmere',
    'wrong',
  ]),
  passage('The council gave up the dock long ago, as [its minutes](/minutes) show.', ['/minutes', 'dead']),
  passage('Nothing was rebuilt afterwards.[^lost]', ['/lost', 'dead']),
  passage('Holm has a pier of its own, [an older page](/holm-old) says.', ['/holm-old', 'moved']),
  passage('The page says that "its main pier is 267 metres long" [at Holm](/holm-old).', ['/holm-old', 'wrong']),
  passage('It was "opened in 1911 by Ida Crane" [the archive says](/archive/saltby).', ['/archive/saltby', 'moved']),
  passage('The [map of the coast](/map) shows all of these places.', ['/map', 'unreadable']),
]

const GOOD: Passage[] = [
  passage('## Other forms'),
  passage('Marrow has "its main pier" as [a page with a slash](/marrow/) says it.', ['/marrow/', 'typographic']),
  passage('The [ferry](/ferrick#:~:text=A%20ferry%20calls-,twice%20a%20week,October) runs in summer only.', [
    '/ferrick#:~:text=A%20ferry%20calls-,twice%20a%20week,October',
    'ok',
  ]),
  passage('The [winter ferry](/ferrick#:~:text=between%20May%20and%20August) is another matter.', [
    '/ferrick#:~:text=between%20May%20and%20August',
    'wrong',
  ]),
  passage(
    '| place | words | page |\n| --- | --- | --- |\n| Orsay | "calls twice a week" | [Orsay](/orsay) |\n' +
      '| Holm | "The last cargo of [...] left on a Sunday" | [Holm](/holm) |\n' +
      '| Dunmere | "opened in 1859 by Hugh Vain" | [Dunmere](/dunmere) |',
    ['/orsay', 'ok'],
    ['/holm', 'ok'],
    ['/dunmere', 'wrong'],
  ),
  passage('Visitors „may climb the **lighthouse** for a small fee“, [they say](/tain).', ['/tain', 'ok']),
  passage('«The   warehouses have stood EMPTY since then», it goes on [there](/saltby).', ['/saltby', 'typographic']),
  passage('The so-called "harbour" of [Orsay](/orsay) is hardly more than a quay.', ['/orsay', 'unverified']),
]

const NOTES = [
  '[^1]: The county on Kelby, SITE/kelby',
  ...PLACES.slice(1).map(({ name, path }, n) => `[^${n + 2}]: ${name}: [county page](SITE${path})`),
  '[^lost]: [Minutes](SITE/lost), no longer kept.',
]

const REFERENCES = [
  '## References',
  ...PLACES.map(({ name, path }, n) => `${n + 1}. County of ${name}. "The harbour of ${name}, a history". SITE${path}`),
]

/** The report for a site, and its citations in the order of the text: 60. */
export function buildReport(site: string): { markdown: string; expected: { url: string; status: string }[] } {
  const passages = [...PLACES.flatMap((place, n) => section(place, n + 1)), ...FAULTS, ...GOOD]
  const body = passages.map(({ text }) => text.replaceAll('](/', `](${site}/`))
  const markdown = ['# Eight harbours', ...body, NOTES.join('\n'), REFERENCES.join('\n')].join('\n\n')
  const expected = passages.flatMap(({ found }) => found.map(([path, status]) => ({ url: site + path, status })))
  return { markdown: `${markdown.replaceAll('SITE', site)}\n`, expected }
}
