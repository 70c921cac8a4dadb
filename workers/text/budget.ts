// The work that a page may cost.

/**
 * A number of steps. Work is charged before it is done, so the cost of every page is bounded, and depends on
 * neither clock nor load. A step is about a comparison.
 */
export class Budget {
  #left: number
  #isSpent = false

  constructor(steps: number) {
    this.#left = steps
  }

  /** Whether that many steps may be done. Where they may not, none may be done from then on. */
  take(steps: number): boolean {
    this.#left -= steps
    if (this.#left >= 0) return true
    this.#left = Number.NEGATIVE_INFINITY
    this.#isSpent = true
    return false
  }

  /** Says that some work is not done because of another limit. */
  passOver(): void {
    this.#isSpent = true
  }

  /** Whether some work was not done. */
  get isSpent(): boolean {
    return this.#isSpent
  }

  get left(): number {
    return Math.max(0, this.#left)
  }
}

/** What the style of a page may cost. */
export interface StyleBudgets {
  /** For reading the sheets. */
  reading: Budget
  /** For finding the rules of each element. */
  matching: Budget
}

/** Several times what the richest real pages cost. */
export const readingSteps = 4_000_000
export const matchingSteps = 2_000_000

export const openBudgets = (): StyleBudgets => ({
  reading: new Budget(readingSteps),
  matching: new Budget(matchingSteps),
})
