// Checks of the payment setup, made when a process starts and by `cli doctor`.
import { AppError } from '../errors.ts'

export interface Inspection {
  /** `wrong`: payments would certainly be lost or refused. `away`: the check got no answer. */
  verdict: 'right' | 'wrong' | 'away'
  subject: string
  detail: string
  cure?: string
}

/** Thrown at the start of a process whose payment setup is wrong. */
export class PaymentSetupError extends Error {
  override name = 'PaymentSetupError'
  constructor(wrong: readonly Inspection[]) {
    const lines = wrong.map(({ subject, detail, cure }) => `  - ${subject}: ${detail}${cure ? `; ${cure}` : ''}`)
    super(`The payment setup is wrong:\n${lines.join('\n')}`)
  }
}

/** Makes one check; if `question` throws anything but an AppError, the verdict is `away`. */
export async function inspect(
  subject: string,
  cureWhenAway: string,
  question: () => Promise<{ ok: boolean; detail: string; cure?: string }>,
): Promise<Inspection> {
  try {
    const { ok, detail, cure } = await question()
    return { verdict: ok ? 'right' : 'wrong', subject, detail, cure }
  } catch (error) {
    if (error instanceof AppError) throw error
    const name = error instanceof Error ? error.name : 'unknown error'
    return { verdict: 'away', subject, detail: `does not answer (${name})`, cure: cureWhenAway }
  }
}
