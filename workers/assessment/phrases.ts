// Longest common runs: while a text's tokens go by, how long the run of tokens ending here is that also stands in the
// claim. A suffix automaton of the claim keeps this linear in the text, whatever the two repeat.

export interface PhraseFollower {
  /**
   * Takes the text's next token (its number in the claim's alphabet, or -1 for a token the claim does not have).
   * Returns the length of the longest run that ends with it.
   */
  follow(symbol: number): number
  /** Where in the claim such a run ends first: the number of its last token. Meaningful after a run longer than 0. */
  readonly endInClaim: number
  restart(): void
}

interface State {
  length: number
  link: number
  firstEnd: number
  next: Map<number, number>
}

/** Follows a text through the automaton of all runs of `symbols`, which has at most two states per symbol. */
export function phraseFollower(symbols: readonly number[]): PhraseFollower {
  const states = buildStates(symbols)
  let at = 0
  let length = 0

  return {
    follow(symbol) {
      while (at !== 0 && !states[at]!.next.has(symbol)) {
        at = states[at]!.link
        length = states[at]!.length
      }
      const next = states[at]!.next.get(symbol)
      if (next === undefined) return 0
      at = next
      return ++length
    },
    get endInClaim() {
      return states[at]!.firstEnd
    },
    restart() {
      at = 0
      length = 0
    },
  }
}

/** Blumer's construction: symbols are appended one at a time, and a state is split when its runs come to differ. */
function buildStates(symbols: readonly number[]): State[] {
  const states: State[] = [{ length: 0, link: -1, firstEnd: -1, next: new Map() }]
  let last = 0
  for (const [position, symbol] of symbols.entries()) {
    const current = states.push({ length: states[last]!.length + 1, link: 0, firstEnd: position, next: new Map() }) - 1
    let from = last
    while (from !== -1 && !states[from]!.next.has(symbol)) {
      states[from]!.next.set(symbol, current)
      from = states[from]!.link
    }
    if (from !== -1) states[current]!.link = stateAfter(states, from, symbol)
    last = current
  }
  return states
}

/** The state that `from` reaches by `symbol`, split off first if it also holds longer runs. */
function stateAfter(states: State[], from: number, symbol: number): number {
  const target = states[from]!.next.get(symbol)!
  const { link, firstEnd, next } = states[target]!
  const length = states[from]!.length + 1
  if (states[target]!.length === length) return target
  const split = states.push({ length, link, firstEnd, next: new Map(next) }) - 1
  states[target]!.link = split
  for (let state = from; state !== -1 && states[state]!.next.get(symbol) === target; state = states[state]!.link)
    states[state]!.next.set(symbol, split)
  return split
}
