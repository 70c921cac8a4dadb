// The stages of a verification, for callers who asked for progress: counted, with a text for people.
import type { State } from '../verification/request.ts'
import type { ToolCall } from './tool.ts'

const STAGES: readonly { states: readonly State[]; message: string }[] = [
  { states: ['accepted'], message: 'The payment is accepted; nothing is charged yet. The source is being read.' },
  { states: ['observed'], message: 'The source is read. The claim is being compared with it.' },
  { states: ['assessed', 'settling'], message: 'The claim is assessed. The payment is being settled.' },
  { states: ['settled'], message: 'The payment is settled. The receipt is being signed.' },
  { states: ['completed'], message: 'The receipt is signed.' },
]

/** 1 to the number of stages; 0 for a state that leads to no result. */
function stageOf(state: State): number {
  return STAGES.findIndex(({ states }) => states.includes(state)) + 1
}

export function describeStage(state: State): string | undefined {
  return STAGES[stageOf(state) - 1]?.message
}

/** Reports each stage once, in order, including those that were over before the first call. */
export function reportStages(progress: NonNullable<ToolCall['progress']>): (state: State) => void {
  let reported = 0
  return (state) => {
    for (const { message } of STAGES.slice(reported, stageOf(state))) progress(++reported, STAGES.length, message)
  }
}
