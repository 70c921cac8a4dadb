// How long a document is in a narrow window, without a browser: lines by the average width of a character, in the sizes of the style.
import type { Token, Tokens } from 'marked'

/** Of a window that is 360 pixels wide. A screen of it is 740 pixels high. */
const TEXT = { characters: 40, line: 24 }
const CODE = { characters: 34, line: 21 }
const CELL = { characters: 25, line: 21 }
const FIRST_CELL = { characters: 40, line: 21 }
const SPACE = 16

/** In pixels, without the frame of the page. */
export function lengthOf(tokens: readonly Token[]): number {
  return tokens.reduce((sum, token) => sum + lengthOfBlock(token), 0)
}

function lengthOfBlock(token: Token): number {
  switch (token.type) {
    case 'heading':
      return linesOf(token.text, { characters: 30, line: 27 }) + 32
    case 'code':
      return sum((token as Tokens.Code).text.split('\n'), (line) => linesOf(line, CODE)) + 25 + 2 * SPACE
    case 'list':
      return sum((token as Tokens.List).items, ({ tokens }) => lengthOf(tokens)) + SPACE
    case 'table':
      return sum((token as Tokens.Table).rows, lengthOfRow) + SPACE
    case 'text':
      return linesOf(token.text, { ...TEXT, characters: TEXT.characters - 2 })
    case 'space':
      return 0
    default:
      return linesOf('text' in token ? token.text : token.raw, TEXT) + SPACE
  }
}

/** The cells of a row stand below each other. */
function lengthOfRow([first, ...others]: Tokens.TableCell[]): number {
  return linesOf(first?.text ?? '', FIRST_CELL) + sum(others, ({ text }) => (text === '' ? 0 : linesOf(text, CELL))) + 9
}

/** A link counts with its words alone. */
function linesOf(text: string, { characters, line }: { characters: number; line: number }): number {
  const shown = text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  return Math.max(1, Math.ceil(shown.length / characters)) * line
}

function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0)
}
