// What the search of /docs and /guide looks through: every section of the guide, every operation and every error. The browser fetches
// it once and searches by itself.
import { errorTable } from '../../errors.ts'
import type { Operation } from '../../operation.ts'
import { meaningOf } from '../reference/member-meanings.ts'
import type { Document } from './documents.ts'

/** Address, title, and the words that it is found by. */
export type SearchEntry = readonly [path: string, title: string, words: string]

export function searchEntries(documents: ReadonlyMap<string, Document>, catalog: readonly Operation[]): SearchEntry[] {
  return [
    ...catalog.map(
      ({ name, method, path, summary, description = '', input }): SearchEntry => [
        `/docs/${name}`,
        summary,
        `${name.replaceAll('_', ' ')} ${method} ${path} ${description} ${membersOf(name, input.shape)}`,
      ],
    ),
    ...[...documents.values()].flatMap(({ path, title, sections }): SearchEntry[] =>
      sections.map(({ id, heading, words }) =>
        id === '' ? [path, title, words] : [`${path}#${id}`, `${title}: ${heading}`, words],
      ),
    ),
    ...Object.entries(errorTable).map(
      ([code, { about }]): SearchEntry => [`/docs/errors#error-${code}`, `Error ${code}`, about],
    ),
  ]
}

/** The members of the input, with what each means. */
function membersOf(operation: string, shape: Operation['input']['shape']): string {
  return Object.entries(shape)
    .map(([name, schema]) => `${name} ${schema.description ?? meaningOf(operation, name) ?? ''}`)
    .join(' ')
}
