// The sections of a document with the words of their texts, for the search.
import type { Token } from 'marked'
import { wordsOf } from '../../../client/page/search-words.ts'

export interface Section {
  /** Of its heading; empty for what stands before the first section. */
  id: string
  /** Its heading; empty for what stands before the first section. */
  heading: string
  /** The words of its text that tell it from others, each once, without those that are a part of another one. */
  words: string
}

interface Heading {
  id: string
  level: number
  text: string
}

/** A section begins at each heading of the second or the third level. @param headings all of the document, in order */
export function sectionsOf(tokens: readonly Token[], headings: readonly Heading[]): Section[] {
  const sections: { id: string; heading: string; texts: string[] }[] = [{ id: '', heading: '', texts: [] }]
  let passed = 0
  for (const token of tokens) {
    const heading = token.type === 'heading' ? headings[passed++] : undefined
    if (heading?.level === 2 || heading?.level === 3)
      sections.push({ id: heading.id, heading: heading.text, texts: [] })
    else sections.at(-1)?.texts.push(textOf(token))
  }
  return sections.map(({ id, heading, texts }) => ({ id, heading, words: tellingWords(texts.join('\n'), heading) }))
}

/** Markdown without comments and the addresses of links. */
function textOf({ raw, type }: Token): string {
  return type === 'html' ? '' : raw.replace(/\]\([^)]*\)/g, ']')
}

/** Without what a search for a part of a word finds already. */
function tellingWords(text: string, heading: string): string {
  const title = heading.toLowerCase()
  const words = wordsOf(text).filter((word) => word.length > 1 && !title.includes(word))
  const longest = words.filter((word) => !words.some((other) => other !== word && other.includes(word)))
  // In order they are smaller when they are compressed.
  return longest.sort().join(' ')
}
