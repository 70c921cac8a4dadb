// The fixed question by which a model is tried: at the start, and whenever strangers' questions fail. It is as small as a
// question can be, and has everything that a question has.
import { type Heard, heard, readAnswer } from './answer.ts'
import { linesOf } from './lines.ts'
import { claimPart, pagePart, type Question, SYSTEM } from './prompt.ts'

const TEXT = 'Lighthouses of the coast\nThe lighthouse of Kelby is 21 metres high.'
const CLAIM = 'The lighthouse of Kelby is 21 metres high.'
const NONCE = '5eed5eed5eed5eed'
const LINES = linesOf(TEXT)
const WHOLE = { first: 0, last: LINES.length - 1 }

export const TRIAL: Question = {
  system: SYSTEM,
  page: pagePart({ text: TEXT, lines: LINES, masked: new Set(), nonce: NONCE, retrieved: '2026-01-01' }, WHOLE, ''),
  claim: claimPart(CLAIM, NONCE),
}

/** Reads the answer as any other is read. Throws UnusableAnswerError if it is not of the form. */
export function readTrial(written: string): Heard {
  return heard(readAnswer(written), written, WHOLE, new Set())
}
