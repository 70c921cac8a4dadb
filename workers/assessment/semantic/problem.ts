// What is said of a model's server that fails, for operators.

/** A server may repeat the key that it was sent; what it says is shown to operators, and on /readyz. */
export function withoutKey(problem: string, key: string): string {
  const text = key.length < SHORTEST_KEY ? problem : problem.replaceAll(key, '(key hidden)')
  return text.slice(0, LONGEST_PROBLEM)
}

/** Shorter texts are stand-ins for servers that need no key. */
const SHORTEST_KEY = 8
const LONGEST_PROBLEM = 400
