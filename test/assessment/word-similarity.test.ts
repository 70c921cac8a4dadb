// Which words count as forms of one word, and how similar they are.
import t from 'tap'
import { stemmed, wordSimilarity } from '../../workers/assessment/word-similarity.ts'

const similarity = (one: string, other: string) => wordSimilarity(stemmed(one), stemmed(other))

t.test('forms of one word are more similar than words that only begin alike, and other words are not related', (t) => {
  const [sameStem, sameBeginning, beginsAlike] = [0.95, 0.8, 0.6]
  for (const [one, other, strength] of [
    ['harbour', 'harbour', 1],
    ['increase', 'increasing', sameStem],
    ['win', 'wins', sameStem],
    ['relational', 'relate', sameStem],
    ['painter', 'paintings', sameBeginning],
    ['bibliothek', 'bibliotheken', sameBeginning],
    ['гавани', 'гавань', sameBeginning],
    ['nation', 'nationalist', beginsAlike],
    ['nation', 'native', beginsAlike],
    ['increase', 'international', 0],
    ['win', 'wind', 0],
    ['sin', 'sing', 0],
    ['', 'a', 0],
  ] as const) {
    t.equal(similarity(one, other), strength, `${one}, ${other}`)
    t.equal(similarity(other, one), strength, `${other}, ${one}`)
  }
  t.end()
})

t.test('a long run of letters is no English word', (t) => {
  t.equal(similarity('y'.repeat(50_000), `${'y'.repeat(50_000)}s`), 0.8)
  t.end()
})
