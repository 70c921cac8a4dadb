// The parts of an evidence package that can be large, by their names. A file of its own, because test/readers.ts loads it and not what
// makes packages.
export const PARTS = [
  'a comment of the page',
  'paragraphs of the page',
  'the body of a redirect',
  'a field of a response',
  'fields of a response',
  'a file beside the archive',
  'files beside the archive',
  'an OCSP response',
  'lines of the index',
  'lines of the list of pages',
  'an explanation',
] as const

export type Part = (typeof PARTS)[number]
