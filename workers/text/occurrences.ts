// Where a pattern occurs in a text, found by Knuth, Morris and Pratt. The search of the language takes the product of both
// lengths for hostile texts, and quotes and pages are chosen by strangers.

/** The UTF-16 indices at which the pattern begins, ascending, overlapping ones included. Linear in both lengths. */
export function* occurrencesOf(pattern: string, text: string): Generator<number, void> {
  if (pattern === '') return
  // Where `matched` chooses a border it is 1 to the pattern's length, and each such prefix has one.
  const borders = bordersOf(pattern)
  let matched = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    while (matched > 0 && pattern.charCodeAt(matched) !== unit) matched = borders[matched - 1]!
    if (pattern.charCodeAt(matched) === unit) matched++
    if (matched < pattern.length) continue
    yield i + 1 - matched
    matched = borders[matched - 1]!
  }
}

/** For each prefix of the pattern, the length of the longest shorter prefix that also ends it. */
function bordersOf(pattern: string): Uint32Array {
  const borders = new Uint32Array(pattern.length)
  let length = 0
  // Where `length` chooses a border it is 1 to `i`: a prefix whose border is known.
  for (let i = 1; i < pattern.length; i++) {
    while (length > 0 && pattern.charCodeAt(i) !== pattern.charCodeAt(length)) length = borders[length - 1]!
    if (pattern.charCodeAt(i) === pattern.charCodeAt(length)) length++
    borders[i] = length
  }
  return borders
}
