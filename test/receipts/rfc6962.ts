// RFC 6962 section 2.1 written as its definitions: recursive, over whole lists of leaves. Tests compare the service's tree and
// the client's verifier with it. It shares no code with them.
import { createHash } from 'node:crypto'

const sha256 = (...parts: Uint8Array[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** The largest power of two smaller than n. */
function k(n: number): number {
  let power = 1
  while (power * 2 < n) power *= 2
  return power
}

/** The definitions over D[from:to] of a list, memoized. */
export function referenceTree(leaves: readonly Uint8Array[]) {
  const known = new Map<string, Buffer>()

  /** MTH */
  function root(to: number, from = 0): Buffer {
    const name = `${from}-${to}`
    const found = known.get(name) ?? work(from, to)
    known.set(name, found)
    return found
  }

  function work(from: number, to: number): Buffer {
    if (to === from) return sha256()
    if (to - from === 1) return sha256(Buffer.of(0), leaves[from]!)
    const middle = from + k(to - from)
    return sha256(Buffer.of(1), root(middle, from), root(to, middle))
  }

  /** PATH(m, D[from:to]): from the leaf up. */
  function path(m: number, to: number, from = 0): Buffer[] {
    if (to - from === 1) return []
    const middle = from + k(to - from)
    return m < middle ? [...path(m, middle, from), root(to, middle)] : [...path(m, to, middle), root(middle, from)]
  }

  /** PROOF(m, D[0:to]) */
  function proof(m: number, to: number): Buffer[] {
    return subproof(m, 0, to, true)
  }

  function subproof(m: number, from: number, to: number, whole: boolean): Buffer[] {
    if (m === to) return whole ? [] : [root(to, from)]
    const middle = from + k(to - from)
    return m <= middle
      ? [...subproof(m, from, middle, whole), root(to, middle)]
      : [...subproof(m, middle, to, false), root(middle, from)]
  }

  return { root, path, proof }
}
