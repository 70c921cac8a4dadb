import t from 'tap'
import { phraseFollower } from '../../workers/assessment/phrases.ts'
import { rounds } from '../long.ts'
import { seeded } from './fixtures/random.ts'

/** The longest run that ends at `at` and is also in the claim, by brute force. */
function longestRun(claim: readonly number[], text: readonly number[], at: number): number {
  for (let length = at + 1; length > 0; length--) {
    const run = text.slice(at + 1 - length, at + 1)
    for (let from = 0; from + length <= claim.length; from++)
      if (run.every((symbol, i) => symbol === claim[from + i])) return length
  }
  return 0
}

t.test('the longest runs are those that a brute-force search finds, and have the right positions', (t) => {
  const random = seeded(5)
  const symbols = (count: number, kinds: number) => Array.from({ length: count }, () => random(kinds))
  let compared = 0
  const count = rounds(400)
  for (let round = 0; round < count; round++) {
    const claim = symbols(1 + random(14), 3)
    const text = symbols(24, 4).map((symbol) => symbol - 1)
    const follower = phraseFollower(claim)
    for (const [at, symbol] of text.entries()) {
      const length = follower.follow(symbol)
      if (length !== longestRun(claim, text, at)) t.fail(JSON.stringify({ claim, text, at, length }))
      const inClaim = claim.slice(follower.endInClaim + 1 - length, follower.endInClaim + 1)
      if (length > 0 && inClaim.join() !== text.slice(at + 1 - length, at + 1).join()) t.fail('endInClaim')
      compared++
    }
  }
  t.equal(compared, 24 * count)
  t.end()
})

t.test('after a restart no earlier text affects the result', (t) => {
  const follower = phraseFollower([1, 2, 3])
  follower.follow(1)
  follower.follow(2)
  follower.restart()
  t.equal(follower.follow(3), 1)
  t.end()
})
