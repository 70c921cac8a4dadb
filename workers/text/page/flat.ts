// Texts that were joined from many parts.

/** The text in one piece: a search makes it so. Reading one character does not suffice: the compiler removes such a read. */
export function flat(text: string) {
  anything.test(text)
  return text
}

const anything = /^/
