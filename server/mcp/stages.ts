// How far a verification has come, for callers who watch it: stages that are counted, in words that are for people.
import type { State } from '../verification/request.ts'
import type { ToolCall } from './tool.ts'

const STAGES: readonly { reached: readonly State[]; message: string }[] = [
  { reached: ['accepted'], message: 'The payment is accepted; nothing is charged yet. The source is being read.' },
  { reached: ['observed'], message: 'The source is read. The claim is held against it.' },
  { reached: ['assessed', 'settling'], message: 'The claim is assessed. The payment is being settled.' },
  { reached: ['settled'], message: 'The payment is settled. The receipt is being signed.' },
  { reached: ['completed'], message: 'The receipt is signed.' },
]

/** 1 to the number of stages; 0 for a state that is on no way to a result. */
function stageOf(state: State): number {
  return STAGES.findIndex(({ reached }) => reached.includes(state)) + 1
}

export function describeStage(state: State): string | undefined {
  return STAGES[stageOf(state) - 1]?.message
}

/** Reports each stage once, in order, those too that were over before anybody looked. */
export function watchStages(progress: NonNullable<ToolCall['progress']>): (state: State) => void {
  let reported = 0
  return (state) => {
    for (const { message } of STAGES.slice(reported, stageOf(state))) progress(++reported, STAGES.length, message)
  }
}
