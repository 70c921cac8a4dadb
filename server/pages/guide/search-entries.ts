// What the search of /docs and /guide looks through: every section of the guide, every operation and every error. The browser fetches
// it once and searches by itself.
import { errorTable } from '../../errors.ts'
import type { Operation } from '../../operation.ts'
import type { Document } from './documents.ts'

/** Address, title, and the words that it is found by. */
export type SearchEntry = readonly [path: string, title: string, words: string]

export function searchEntries(documents: ReadonlyMap<string, Document>, catalog: readonly Operation[]): SearchEntry[] {
  return [
    ...catalog.map(
      ({ name, method, path, summary, description = '' }): SearchEntry => [
        `/docs/${name}`,
        summary,
        `${name.replaceAll('_', ' ')} ${method} ${path} ${description}`,
      ],
    ),
    ...[...documents.values()].flatMap(({ path, title, summary, headings }): SearchEntry[] => [
      [path, title, summary],
      ...headings.map(({ id, text }): SearchEntry => [`${path}#${id}`, `${title}: ${text}`, '']),
    ]),
    ...Object.entries(errorTable).map(
      ([code, { about }]): SearchEntry => [`/docs/errors#error-${code}`, `Error ${code}`, about],
    ),
  ]
}
