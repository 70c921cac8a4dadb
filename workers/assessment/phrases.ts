// Longest common runs: for each token of a text, the length of the longest run of tokens that ends there and also
// occurs in the claim. A suffix automaton of the claim keeps this linear in the text, also when both repeat themselves.

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
  /** The state of the longest run that is a suffix of this one's runs. Null at the root. */
  link: State | null
  firstEnd: number
  next: Map<number, State>
}

/** Follows a text through the automaton of all runs of `symbols`, which has at most two states per symbol. */
export function phraseFollower(symbols: readonly number[]): PhraseFollower {
  const root = buildAutomaton(symbols)
  let at = root
  let length = 0

  return {
    follow(symbol) {
      let next = at.next.get(symbol)
      while (next === undefined && at.link !== null) {
        at = at.link
        length = at.length
        next = at.next.get(symbol)
      }
      if (next === undefined) return 0
      at = next
      return ++length
    },
    get endInClaim() {
      return at.firstEnd
    },
    restart() {
      at = root
      length = 0
    },
  }
}

/** Blumer's construction: symbols are appended one at a time, and a state is split when its runs begin to differ. */
function buildAutomaton(symbols: readonly number[]): State {
  const root: State = { length: 0, link: null, firstEnd: -1, next: new Map() }
  let last = root
  for (const [position, symbol] of symbols.entries()) {
    const current: State = { length: last.length + 1, link: root, firstEnd: position, next: new Map() }
    let from: State | null = last
    let target = from.next.get(symbol)
    while (from !== null && target === undefined) {
      from.next.set(symbol, current)
      from = from.link
      target = from?.next.get(symbol)
    }
    if (from !== null && target !== undefined) current.link = stateAfter(from, symbol, target)
    last = current
  }
  return root
}

/** The state that `from` reaches by `symbol`, split off from `target` first if `target` also holds longer runs. */
function stateAfter(from: State, symbol: number, target: State): State {
  const length = from.length + 1
  if (target.length === length) return target
  const split: State = { length, link: target.link, firstEnd: target.firstEnd, next: new Map(target.next) }
  target.link = split
  for (let state: State | null = from; state !== null && state.next.get(symbol) === target; state = state.link)
    state.next.set(symbol, split)
  return split
}
