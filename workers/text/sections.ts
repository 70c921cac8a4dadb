// Lists that are kept as text, such as patterns in many languages: `[section]`, then one entry a line. A line that begins with #
// is a comment.
import { readFileSync } from 'node:fs'

/** The entries of each section of a file, in its order. */
export function readSections(file: URL): ReadonlyMap<string, readonly string[]> {
  const sections = new Map<string, string[]>()
  let entries: string[] = []
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const [, section] = SECTION.exec(line) ?? []
    if (section !== undefined) {
      entries = []
      sections.set(section, entries)
    } else if (line !== '' && !line.startsWith('#')) entries.push(line)
  }
  return sections
}

const SECTION = /^\[([a-z][a-z ,:]*)\]$/
