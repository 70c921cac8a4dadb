// Counts the characters that the parser of Markdown reads, and reads again where a construct that began did not end.
import { UnreadableReportError } from './report.ts'

/** The parts of the parser (micromark) that are used here. */
interface Tokenizer {
  previous: unknown
  parser: Record<(typeof LEVELS)[number], (from?: unknown) => Tokenizer>
}

const LEVELS = ['content', 'flow', 'string', 'text'] as const

/** For each character of a report. Ordinary reports take about ten. */
const MAX_READS = 60

/**
 * An extension of the parser that refuses a report once its characters were read too often. Before the parser takes a
 * character it stores the one before, in every construct: that is where it is counted.
 */
export function meter(length: number) {
  let left = 10_000 + MAX_READS * length
  const count = (tokenizer: Tokenizer): Tokenizer => {
    let previous = tokenizer.previous
    Object.defineProperty(tokenizer, 'previous', {
      get: () => previous,
      set(character) {
        if (--left < 0)
          throw new UnreadableReportError('The report has marks that begin and do not end, too many to read it.')
        previous = character
      },
    })
    return tokenizer
  }
  const metered = new WeakSet<object>()
  return {
    document: {
      null: {
        // Tried before the first line is read, when no other level has begun. It never takes anything.
        tokenize(this: Tokenizer, _effects: unknown, _ok: unknown, nok: unknown) {
          const { parser } = this
          if (!metered.has(parser))
            for (const level of LEVELS) {
              const open = parser[level]
              parser[level] = (from) => count(open(from))
            }
          metered.add(parser)
          return nok
        },
      },
    },
  }
}
