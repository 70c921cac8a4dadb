// The text of a page of type text/plain.
import { cleanCharacters, type Unseen } from '../characters.ts'
import { piecesOf } from '../pieces.ts'
import type { Lines } from './lines.ts'
import { TextRefusalError } from './refusal.ts'

/** text/plain keeps its lines and its indentation; blanks at the end of a line and second empty lines go. */
export function addPlainText(source: string, lines: Lines, unseen: Unseen) {
  if (source.includes('\0')) throw new TextRefusalError('source_unsupported_type', 'The body is binary data, not text.')
  for (const piece of piecesOf(source)) lines.preformatted(cleanCharacters(piece, unseen), 'keep')
}
