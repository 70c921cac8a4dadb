// What a run has opened, closed in the opposite order at its end. Node 24 has the same as AsyncDisposableStack; Node 20 and 22 have
// only the symbols.

export class Opened implements AsyncDisposable {
  #resources: AsyncDisposable[] = []

  /** Closes it at the end, too. Returns it. */
  use<R extends AsyncDisposable>(resource: R): R {
    this.#resources.push(resource)
    return resource
  }

  /** Leaves the closing to the owner of what is returned: an opening that fails half-way closes what it has opened. */
  move(): Opened {
    const moved = new Opened()
    moved.#resources = this.#resources
    this.#resources = []
    return moved
  }

  /** Closes everything, even if one of them cannot be closed, and throws the first error after that. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = []
    for (let one = this.#resources.pop(); one; one = this.#resources.pop())
      try {
        await one[Symbol.asyncDispose]()
      } catch (error) {
        failures.push(error)
      }
    if (failures.length > 0) throw failures[0]
  }
}
