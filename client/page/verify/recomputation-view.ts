// The part of /verify that makes the verdict of a result again in this browser and compares it with the one in the file. It is
// shown after the report, which says first whether the file was changed.
import type { LocalAssessment } from 'countersign-verifier'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Check } from '../../checks.ts'
import { compareVerdicts, type Recomputable, recomputableIn } from '../../recomputation.ts'
import { type Html, html } from '../html.ts'
import { Badge, Code, Notice, Table } from '../parts.ts'
import { WORKER_POLICY } from '../policy.ts'
import type { Report } from './examine.ts'
import { megabytes } from './megabytes.ts'
import type { RecomputationNews, RecomputationTask, ServedVerifier } from './served-verifier.ts'

/** How a verdict that was made again compares with the one in the file; `undone`: it could not be made. */
export type Again = 'same' | 'differs' | 'undone'

export interface RecomputationProps {
  report: Report
  /** Null for the file that works from disk: it has no service that could send the verifier. */
  verifier: ServedVerifier | null
  /** Host of the service. */
  host: string | null
  /** Called when the verdict was made again, or could not be. */
  onAgain(again: Again): void
}

/** Nothing for what holds no verdict of a local verifier. */
export function RecomputationView({ report, verifier, host, onAgain }: RecomputationProps): Html {
  const given = recomputableIn(report.value)
  if (typeof given === 'string') return null
  return html`<section class="recomputation" aria-labelledby="recompute">
    <h3 id="recompute">Make the verdict again</h3>
    ${
      verifier === null
        ? html`<p>This file cannot do it. The page <code>/verify</code> of a service can, and${' '}
          <code>countersign verify FILE --recompute</code>.</p>`
        : given.procedure !== verifier.procedure
          ? html`<p>Other weights gave this verdict: it names <code>${given.procedure}</code>, and ${host} offers${' '}
            <code>${verifier.procedure}</code>.</p>`
          : html`<${Recomputing} given=${given} isChanged=${report.status === 'bad'} verifier=${verifier} host=${host} onAgain=${onAgain} />`
    }
  </section>`
}

interface RecomputingProps extends Pick<RecomputationProps, 'host' | 'onAgain'> {
  given: Recomputable
  isChanged: boolean
  verifier: ServedVerifier
}

type State = 'offered' | RecomputationNews

function Recomputing({ given, isChanged, verifier, host, onAgain }: RecomputingProps): Html {
  const [state, setState] = useState<State>('offered')
  const [running, setRunning] = useState<{ worker: Worker; before: State } | null>(null)
  // It holds hundreds of megabytes, and what it still said must not be shown.
  const ended = useRef<Worker | null>(null)
  const terminate = (worker: Worker) => {
    ended.current = worker
    worker.terminate()
  }
  useEffect(() => () => running?.worker.terminate(), [running])
  const begin = () => {
    const started = startWorker(verifier.worker)
    const end = (news: RecomputationNews) => {
      if (ended.current === started) return
      setState(news)
      if ('progress' in news) return
      terminate(started)
      onAgain('problem' in news ? 'undone' : compareVerdicts(given, news.assessments).ok ? 'same' : 'differs')
    }
    started.addEventListener('message', ({ data }: MessageEvent<RecomputationNews>) => end(data))
    started.addEventListener('error', () =>
      end({ problem: 'The browser ended the program; it may have too little memory.' }),
    )
    const claims = given.verdicts.map(({ claim }) => claim)
    started.postMessage({ verifier, text: given.text, claims } satisfies RecomputationTask)
    setRunning({ worker: started, before: state })
    setState({ progress: { step: 'Fetching the verifier', done: null } })
  }
  const cancel = () => {
    if (!running) return
    terminate(running.worker)
    setState(running.before)
    setRunning(null)
  }
  const progress = state !== 'offered' && 'progress' in state ? state.progress : null
  const { weights, tables, runtime } = verifier
  const size = megabytes(weights.bytes + tables.bytes + runtime.bytes)
  return html`
    <p>A small model gave this verdict, and your browser can run it too, on the text and the claim in this file. For that it
      fetches ${size} from ${host}, once: the weights (${megabytes(weights.bytes)}), the program that runs
      them (${megabytes(runtime.bytes)}) and the vocabulary (${megabytes(tables.bytes)}). The text and the claim stay in
      your browser.</p>
    ${isChanged && html`<p>The file is not genuine. The verdict is made for what the file holds now.</p>`}
    <p role="status" class="progress">${progress && `${progress.step} …`}</p>
    ${progress && html`<p class="advance"><progress aria-label=${progress.step} value=${progress.done?.count} max=${progress.done?.of} /> ${progress.done?.words}</p>`}
    ${
      (progress || state === 'offered' || 'problem' in state) &&
      html`<p class="actions"><button type="button" class=${progress || isChanged ? 'quiet' : undefined} onClick=${progress ? cancel : begin}>${
        progress ? 'Cancel' : state === 'offered' ? 'Recompute the verdict' : 'Try again'
      }</button></p>`
    }
    <div aria-live="polite">
      ${state !== 'offered' && 'problem' in state && html`<${Undone} problem=${state.problem} />`}
      ${state !== 'offered' && 'assessments' in state && html`<${Outcome} given=${given} found=${state.assessments} isChanged=${isChanged} />`}
    </div>`
}

function Undone({ problem }: { problem: string }): Html {
  return html`<${Notice} title="It could not be recomputed.">${problem} That says nothing about the verdict, and nothing about the
      signature.<//>
    <p>Try again above, or make it on another computer, where the command line does the same:</p>
    <${Code} label="Make the verdict again" text=${COMMAND} />`
}

const COMMAND = 'countersign verify result.json --pin KEYID:HEX --recompute'

/**
 * Above a result whose signature holds, but not its verdict: what that means, and what to do.
 * @param isKnown its key is pinned, or the service of this page publishes it
 */
export function Differs({ isKnown, service }: { isKnown: boolean; service: URL | null }): Html {
  return html`<header class="standing tone-refuted">
      <h2 tabindex="-1" ref=${focus}>${isKnown ? 'The verdict made again differs from the signed one' : 'The verdict made again differs from the one in the file'}</h2>
      <p>${isKnown && 'The signature is real: this verdict is what was signed. '}But the verifier that it names, run in this browser on the same text and the
        same claim, says otherwise. They should agree to the letter.</p>
    </header>
    <div class="remedy">
      <p>Do not rely on the verdict; the quotes and the text can still be read for themselves.</p>
      <ol>
        <li>Keep the file as it is. ${isKnown && 'Its signature shows who signed this verdict, and when.'}</li>
        <li>Make the verdict again on another computer, to rule this browser out: <code>${COMMAND}</code>${
          service &&
          html`. <a href=${new URL('guide/auditing#recompute-a-verdict', service).href}>How a verdict is recomputed</a>`
        }</li>
        <li>If it differs there too, send the file to the operator of ${isKnown && service ? service.host : 'the service that signed it'}, with the
          difference that is named below, under “Make the verdict again”.</li>
      </ol>
    </div>`
}

const focus = (heading: HTMLElement | null) => heading?.focus()

interface OutcomeProps {
  given: Recomputable
  found: readonly LocalAssessment[]
  isChanged: boolean
}

function Outcome({ given, found, isChanged }: OutcomeProps): Html {
  const { ok, detail }: Check = compareVerdicts(given, found)
  return html`
    ${
      ok
        ? html`<p class="recomputed"><${Badge} tone="proved">The same.<//> Made again here, verdict, explanation and quotes are the
            ones in the file.${isChanged && ' That does not make the file genuine: see above.'}</p>`
        : html`<p class="recomputed"><${Badge} tone="refuted">Not the same.<//> Made again here, something differs.</p>
          <p class="detail">${detail}</p>`
    }
    <details><summary>What the verifier read</summary>
      ${found.map(
        ({ reading }, i) => html`<${Table} key=${i} stacks empty="It read no passage."
          caption=${`The passages nearest to “${given.verdicts[i]?.claim ?? ''}”, each with the model's three logits`}
          columns=${[{ name: 'Passage' }, { name: 'Supports', number: true }, { name: 'Contradicts', number: true }, { name: 'Insufficient', number: true }]}
          rows=${reading.windows.map(({ text, logits }) => [text, ...logits.map(String)])} />`,
      )}
    </details>`
}

/** The policy of trusted types lets one script become a worker. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(path: string): string },
  ): { createScriptURL(path: string): string }
}

let policy: ReturnType<TrustedTypes['createPolicy']> | undefined
const WORKER = /^\/assets\/verifier-worker-[\w-]+\.js$/

function startWorker(path: string): Worker {
  if (!WORKER.test(path)) throw new Error('the page names no script of a worker')
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  policy ??= trustedTypes?.createPolicy(WORKER_POLICY, {
    createScriptURL: (path) => (WORKER.test(path) ? path : ''),
  })
  return new Worker(policy?.createScriptURL(path) ?? path)
}
