// Exponential and logarithm from additions, multiplications and divisions alone. The language leaves the last digit of
// `Math.exp` and `Math.log` to the engine; these give the same bits in every engine.

const { LN2 } = Math
const LN2_HIGH = 0.6931471803691238
const LN2_LOW = 1.9082149292705877e-10

/** e to the power of x, for x from -700 to 0; 0 below that. */
export function exp(x: number): number {
  if (x < LEAST) return 0
  const power = Math.round(x / LN2)
  const rest = x - power * LN2_HIGH - power * LN2_LOW
  let term = 1
  let sum = 1
  for (let i = 1; i <= TERMS; i++) {
    term = (term * rest) / i
    sum += term
  }
  // Halving is exact down to the least normal number.
  for (let i = power; i < 0; i++) sum /= 2
  return sum
}

/** The natural logarithm of x, for finite x from 1 on. */
export function log(x: number): number {
  let power = 0
  let mantissa = x
  while (mantissa > Math.SQRT2) {
    mantissa /= 2
    power++
  }
  const ratio = (mantissa - 1) / (mantissa + 1)
  const square = ratio * ratio
  let term = ratio
  let sum = 0
  for (let i = 1; i <= ODD_TERMS; i += 2) {
    sum += term / i
    term *= square
  }
  return power * LN2 + 2 * sum
}

/** To nine digits after the point. Every comparison of computed numbers in the verifier is between rounded ones. */
export const rounded = (x: number): number => Math.round(x * 1e9) / 1e9

/** The probabilities of logits, rounded. */
export function softmax(logits: readonly number[]): number[] {
  const top = Math.max(...logits)
  const powers = logits.map((logit) => exp(logit - top))
  const sum = powers.reduce((total, one) => total + one, 0)
  return powers.map((one) => rounded(one / sum))
}

const LEAST = -700
/** Enough for the last digit where |x| is at most half of LN2. */
const TERMS = 16
/** Enough for the last digit where the ratio is at most 0.172. */
const ODD_TERMS = 25
