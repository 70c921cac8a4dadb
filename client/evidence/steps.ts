// The steps of a replay: each is judged once, in order, and a step that rests on another one is not judged where that one does not
// hold.
import { type Check, Note } from '../checks.ts'

export type StepState = 'holds' | 'differs' | 'not_checked'

/**
 * Why a step was not checked: an earlier step that it rests on does not hold; something is missing that the caller can supply; or
 * nothing was given to check, and the others are whole without it.
 */
export type Cause = 'blocked' | 'missing' | 'optional'

export interface Step extends Check {
  /** What holds where the step is ok, as a clause. */
  proves: string
  state: StepState
  cause?: Cause
}

/** What a package or a result holds is not as it must be. The message says which bytes, as a clause. */
export class Fault extends Error {
  override name = 'Fault'
}

/** A step cannot be judged, and no fault was found. */
export class Unchecked {
  readonly reason: string
  readonly cause: Cause

  constructor(reason: string, cause: Cause = 'optional') {
    this.reason = reason
    this.cause = cause
  }
}

export type Judgement = Note | Unchecked | null | undefined

export class Steps {
  readonly all: Step[] = []

  /**
   * Judges one step. `judge` throws a Fault for what differs; other errors are those of the program.
   * @param needs names of earlier steps that must hold
   */
  async take(
    name: string,
    proves: string,
    needs: readonly string[],
    judge: () => Judgement | Promise<Judgement>,
  ): Promise<void> {
    const missing = needs.find((need) => !this.holds(need))
    this.all.push({ name, proves, ...(missing === undefined ? await stateOf(judge) : this.#blockedBy(missing)) })
  }

  holds(name: string): boolean {
    return this.#find(name)?.state === 'holds'
  }

  /** The step does not hold, or was not checked because of one that does not. */
  isRefuted(name: string): boolean {
    const step = this.#find(name)
    return step?.state === 'differs' || step?.cause === 'blocked'
  }

  /** Why a step that rests on this one, which does not hold, is not checked. */
  reasonOf(need: string): string {
    const why = this.#find(need)?.state === 'differs' ? 'does not hold' : 'was not checked'
    return `it rests on ${need}, which ${why}`
  }

  #find(name: string): Step | undefined {
    return this.all.find((step) => step.name === name)
  }

  #blockedBy(need: string): Omit<Step, 'name' | 'proves'> {
    return uncheckedFor(this.reasonOf(need), this.#find(need)?.cause ?? 'blocked')
  }
}

const uncheckedFor = (detail: string, cause: Cause) => ({ state: 'not_checked' as const, ok: false, detail, cause })

async function stateOf(judge: () => Judgement | Promise<Judgement>): Promise<Omit<Step, 'name' | 'proves'>> {
  try {
    const found = await judge()
    if (found instanceof Unchecked) return uncheckedFor(found.reason, found.cause)
    return { state: 'holds', ok: true, ...(found instanceof Note && { detail: found.text }) }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { state: 'differs', ok: false, detail: error.message }
  }
}
