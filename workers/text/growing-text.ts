// Texts that are put together from many parts. Joined text is a chain of as many objects as it has parts until it is made
// flat, and a list of parts is no smaller: either takes twenty times the memory of the text.

/** UTF-16 units after which joined text is made flat. */
export const chunkLength = 16_384

/** The text in one piece: a search makes it so. Reading one character does not suffice: the compiler removes such a read. */
export function flat(text: string) {
  anything.test(text)
  return text
}

const anything = /^/

/** A text that takes little more memory than its characters while it grows. */
export class GrowingText {
  #whole: string[] = []
  #last = ''

  add(part: string) {
    this.#last += part
    if (this.#last.length < chunkLength) return
    this.#whole.push(flat(this.#last))
    this.#last = ''
  }

  toString() {
    return this.#whole.join('') + this.#last
  }
}
