// The words in which two texts differ.

export interface Run {
  /** In both, in the first alone, in the second alone. */
  in: 'both' | 'first' | 'second'
  text: string
}

/** The longest common sequence of words. Takes the product of their numbers; texts beyond MAX_WORDS count as all different. */
export function differenceOf(first: string, second: string): Run[] {
  const one = first.split(/\s+/).filter(Boolean)
  const two = second.split(/\s+/).filter(Boolean)
  if (Math.max(one.length, two.length) > MAX_WORDS) return [runOf('first', one), runOf('second', two)]
  const width = two.length + 1
  const common = new Uint16Array((one.length + 1) * width)
  for (let i = one.length - 1; i >= 0; i--)
    for (let j = two.length - 1; j >= 0; j--)
      common[i * width + j] =
        one[i] === two[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!)
  const runs: { in: Run['in']; words: string[] }[] = []
  const add = (where: Run['in'], word: string) => {
    if (runs.at(-1)?.in === where) runs.at(-1)!.words.push(word)
    else runs.push({ in: where, words: [word] })
  }
  let i = 0
  let j = 0
  while (i < one.length || j < two.length)
    if (i < one.length && j < two.length && one[i] === two[j]) {
      add('both', one[i++]!)
      j++
    } else if (j >= two.length || (i < one.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!))
      add('first', one[i++]!)
    else add('second', two[j++]!)
  return runs.map(({ in: where, words }) => runOf(where, words))
}

const MAX_WORDS = 1200

const runOf = (where: Run['in'], words: readonly string[]): Run => ({ in: where, text: words.join(' ') })
