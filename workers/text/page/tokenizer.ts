// Parses HTML like parse5, but faster: a run of ordinary characters is read at once, and text that no later step reads is
// skipped. It overrides protected states of parse5, because in the CPU time in which parse5 parses one page, it parses 1.6 pages
// like the bench's article of 33 kB, 1.2 like its reference of 298 kB, and 4.3 like its application of 280 kB, which is mostly
// script (medians of nine turns each).
import { Parser, type ParserOptions, Token, Tokenizer, type TreeAdapterTypeMap } from 'parse5'
import { chunkLength, flat } from '../growing-text.ts'

/**
 * The tree that parse5 builds, except that comments are empty, and the text of scripts and blanks of framesets are left
 * out. The source has no carriage returns.
 * @param onAttribute called with the number of attributes that a tag has so far; what it throws ends the parsing
 */
export function parseFast<T extends TreeAdapterTypeMap>(
  html: string,
  options: ParserOptions<T>,
  onAttribute: (count: number) => void = () => {},
): T['document'] {
  const parser = new FastParser<T>(options)
  const tokenizer = new FastTokenizer(options, parser)
  tokenizer.onAttribute = onAttribute
  parser.tokenizer = tokenizer
  parser.tokenizer.write(html, true)
  return parser.document
}

/**
 * The parser keeps all text of a table that stands outside of its cells until the text ends. A null character ends a token and
 * is dropped, so each character may be a token of its own: together they are put into few.
 */
class FastParser<T extends TreeAdapterTypeMap> extends Parser<T> {
  override onCharacter(token: Token.CharacterToken) {
    super.onCharacter(token)
    this.#joinPending(token)
  }

  override onWhitespaceCharacter(token: Token.CharacterToken) {
    super.onWhitespaceCharacter(token)
    this.#joinPending(token)
  }

  /** The tree is the same: blanks beside other text are moved out of the table with it. */
  #joinPending(token: Token.CharacterToken) {
    const pending = this.pendingCharacterTokens
    const before = pending.at(-2)
    if (pending.at(-1) !== token || before === undefined) return
    if (before.chars.length >= chunkLength) return void flat(before.chars)
    pending.pop()
    before.chars += token.chars
    if (token.type === Token.TokenType.CHARACTER) before.type = token.type
  }
}

/**
 * Each state below takes one character as parse5 does, then all that follow up to one that means something in this
 * state. What is a run for parse5 is one here: `runEnd` is where the text ends that is yet to be taken over.
 */
class FastTokenizer extends Tokenizer {
  onAttribute: (count: number) => void = () => {}

  protected override _leaveAttrName() {
    super._leaveAttrName()
    this.onAttribute((this.currentToken as Token.TagToken).attrs.length)
  }

  // Blanks after other characters count as such: the tree is the same, and words need not be put together again.
  protected override _stateData(cp: number) {
    if (cp === lessThan || cp === ampersand || cp <= 0) return super._stateData(cp)
    if (isBlank(cp) && this.currentCharacterToken?.type !== Token.TokenType.CHARACTER) return this.#takeBlanks(cp)
    this.#takeText(cp, true)
  }

  protected override _stateRcdata(cp: number) {
    if (cp === lessThan || cp === ampersand || cp <= 0 || isBlank(cp)) return super._stateRcdata(cp)
    this.#takeText(cp, true)
  }

  protected override _stateRawtext(cp: number) {
    if (cp === lessThan || cp <= 0 || isBlank(cp)) return super._stateRawtext(cp)
    this.#takeText(cp, false)
  }

  protected override _statePlaintext(cp: number) {
    if (cp <= 0 || isBlank(cp)) return super._statePlaintext(cp)
    this._emitCodePoint(cp)
    this.#goTo(this.preprocessor.html.indexOf('\0', this.preprocessor.pos + 1))
  }

  protected override _stateScriptData(cp: number) {
    if (cp === lessThan || cp === end) super._stateScriptData(cp)
    else this.#skipTo(this.preprocessor.html.indexOf('<', this.preprocessor.pos + 1))
  }

  protected override _stateScriptDataEscaped(cp: number) {
    if (cp === lessThan || cp === hyphen || cp === end) super._stateScriptDataEscaped(cp)
    else this.#skipTo(this.#find(lessThanOrHyphen))
  }

  protected override _stateScriptDataDoubleEscaped(cp: number) {
    if (cp === lessThan || cp === hyphen || cp === end) super._stateScriptDataDoubleEscaped(cp)
    else this.#skipTo(this.#find(lessThanOrHyphen))
  }

  protected override _stateComment(cp: number) {
    if (cp === lessThan || cp === hyphen || cp === end) super._stateComment(cp)
    else this.#skipTo(this.#find(lessThanOrHyphen))
  }

  protected override _stateAttributeValueDoubleQuoted(cp: number) {
    super._stateAttributeValueDoubleQuoted(cp)
    if (cp !== doubleQuote && cp !== ampersand && cp > 0) this.#takeValue(doubleQuote)
  }

  protected override _stateAttributeValueSingleQuoted(cp: number) {
    super._stateAttributeValueSingleQuoted(cp)
    if (cp !== singleQuote && cp !== ampersand && cp > 0) this.#takeValue(singleQuote)
  }

  protected override _stateAttributeName(cp: number) {
    if (!isNameUnit(cp)) return super._stateAttributeName(cp)
    this.currentAttr.name += this.#takeName()
  }

  protected override _stateTagName(cp: number) {
    if (!isNameUnit(cp)) return super._stateTagName(cp)
    const token = this.currentToken as Token.TagToken
    token.tagName += this.#takeName()
  }

  #takeBlanks(cp: number) {
    this._emitCodePoint(cp)
    const { html, pos } = this.preprocessor
    let i = pos + 1
    while (isBlank(html.charCodeAt(i))) i++
    this.#goTo(i)
  }

  #takeText(cp: number, hasReferences: boolean) {
    if (this.currentCharacterToken?.type === Token.TokenType.CHARACTER) this._extendRun(cp)
    else this._emitCodePoint(cp)
    const { html, pos } = this.preprocessor
    let i = pos + 1
    for (; i < html.length; i++) {
      const unit = html.charCodeAt(i)
      if (unit > lessThan) continue
      if (unit === lessThan || unit === 0 || (hasReferences && unit === ampersand)) break
    }
    this.#goTo(i)
  }

  #takeValue(quote: number) {
    const { html, pos } = this.preprocessor
    let i = pos + 1
    for (; i < html.length; i++) {
      const unit = html.charCodeAt(i)
      if (unit > singleQuote) continue
      if (unit === quote || unit === ampersand || unit === 0) break
    }
    this.#goTo(i)
  }

  /** From the current character on, which is a part of a name in lower case. */
  #takeName(): string {
    const { html, pos } = this.preprocessor
    let i = pos + 1
    while (isNameUnit(html.charCodeAt(i))) i++
    this.preprocessor.pos = i - 1
    return html.slice(pos, i)
  }

  #find(pattern: RegExp) {
    pattern.lastIndex = this.preprocessor.pos + 1
    return pattern.exec(this.preprocessor.html)?.index ?? -1
  }

  /** Takes over all text before an index. */
  #goTo(place: number) {
    this.runEnd = place < 0 ? this.preprocessor.html.length : place
    this.preprocessor.pos = this.runEnd - 1
  }

  /** Leaves out all text before an index; -1 is the end. */
  #skipTo(place: number) {
    this.preprocessor.pos = (place < 0 ? this.preprocessor.html.length : place) - 1
  }
}

const end = -1
const doubleQuote = 0x22
const ampersand = 0x26
const singleQuote = 0x27
const hyphen = 0x2d
const lessThan = 0x3c

const lessThanOrHyphen = /[<-]/g

const isBlank = (unit: number) => unit === 0x20 || unit === 0x0a || unit === 0x09 || unit === 0x0c

/** a to z, 0 to 9, hyphen. */
const isNameUnit = (unit: number) => (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x30 && unit <= 0x39) || unit === hyphen
