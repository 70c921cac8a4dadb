// Answers the form of try-form.ts in place: shows what is wrong with a field beside it, the stages of the work, and the answer.
import { render } from 'preact'
import { html } from '../html.ts'
import { askLook, type LookState } from './look-call.ts'
import { type LookAbout, LookView } from './look-view.ts'
import { problemsOf } from './try-form.ts'
import { questionIn } from './try-link.ts'

const FIELDS = ['source_url', 'claim'] as const

function enhance(form: HTMLFormElement, place: HTMLElement) {
  let asking = new AbortController()
  let isOurs = false
  const field = (name: string) => form.elements.namedItem(name) as HTMLInputElement | HTMLTextAreaElement

  function showProblems(problems: Record<string, string>) {
    for (const name of FIELDS) {
      const message = document.getElementById(`try-${name}-problem`)
      if (message) [message.textContent, message.hidden] = [problems[name] ?? '', !problems[name]]
      if (problems[name]) field(name).setAttribute('aria-invalid', 'true')
      else field(name).removeAttribute('aria-invalid')
    }
    const first = FIELDS.find((name) => problems[name])
    if (first) field(first).focus()
    return first !== undefined
  }

  function show(state: LookState, about: LookAbout) {
    // What the server put there is not a tree of ours.
    if (!isOurs) place.replaceChildren()
    isOurs = true
    render(html`<${LookView} state=${state} about=${about} />` as Parameters<typeof render>[0], place)
    if (state.kind === 'stage') return
    place.querySelector<HTMLElement>('#verdict')?.focus()
    place.scrollIntoView({ block: 'nearest' })
  }

  function fill() {
    const given = questionIn(location.hash)
    for (const name of FIELDS) if (given[name] !== undefined) field(name).value = given[name]
  }
  fill()
  addEventListener('hashchange', fill)

  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const { source_url: url, claim: text } = (event.submitter as HTMLElement | null)?.dataset ?? {}
    if (url !== undefined) field('source_url').value = url
    if (text !== undefined) field('claim').value = text
    const question = { source_url: field('source_url').value.trim(), claim: field('claim').value }
    if (showProblems(problemsOf(question))) return
    asking.abort()
    asking = new AbortController()
    const { signal } = asking
    const { methodology = '', price = '' } = place.dataset
    const about = { claim: question.claim, methodology, price }
    place.setAttribute('aria-busy', 'true')
    try {
      show({ kind: 'stage', stage: 'waiting' }, about)
      for await (const state of askLook(question, signal)) show(state, about)
    } catch {
      if (signal.aborted) return
      show(
        { kind: 'failed', code: 'unreachable', message: 'The service could not be reached.', retryable: true },
        about,
      )
    }
    place.removeAttribute('aria-busy')
  })
}

const form = document.querySelector<HTMLFormElement>('form.try')
const place = document.getElementById('answer')
if (form && place) enhance(form, place)
