// The formats of a batch's input.

export const FORMATS = ['csv', 'tsv', 'jsonl'] as const
export type Format = (typeof FORMATS)[number]

/** The format by the ending of the file name; null for an unknown ending. */
export function formatOf(file: string): Format | null {
  const [, ending] = /\.(csv|tsv|jsonl|ndjson)$/i.exec(file) ?? []
  return ending === undefined ? null : ending.toLowerCase() === 'ndjson' ? 'jsonl' : (ending.toLowerCase() as Format)
}
