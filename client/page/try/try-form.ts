// The form in which a page and a claim are tried: on the front page and at /try. It works without a script, and then the service
// answers with a page; try.ts answers in place.
import { type Html, html } from '../html.ts'

export interface TryExample {
  name: string
  label: string
  source_url: string
  claim: string
}

export interface TryFormProps {
  examples: readonly TryExample[]
  /** Pairs that one address may try in a day. */
  perDay: number
  source_url?: string | undefined
  claim?: string | undefined
  /** What is wrong with a field, by its name. */
  problems?: Readonly<Record<string, string>>
}

export function TryForm({ examples, perDay, source_url = '', claim = '', problems = {} }: TryFormProps): Html {
  return html`<form class="try" method="post" action="/try" novalidate aria-label="Try it">
    <div class="field">
      <label for="try-source_url">Page</label>
      <input id="try-source_url" name="source_url" type="url" value=${source_url} placeholder="https://" autocomplete="off"
        spellcheck=${false} aria-describedby="try-source_url-problem" aria-invalid=${problems.source_url ? 'true' : undefined} />
      <p id="try-source_url-problem" class="problem" hidden=${!problems.source_url}>${problems.source_url}</p>
    </div>
    <div class="field">
      <label for="try-claim">Claim: what it is said to say</label>
      <textarea id="try-claim" name="claim" rows="2" aria-describedby="try-claim-problem"
        aria-invalid=${problems.claim ? 'true' : undefined}>${claim}</textarea>
      <p id="try-claim-problem" class="problem" hidden=${!problems.claim}>${problems.claim}</p>
    </div>
    <p class="actions"><button type="submit">Check it</button><span class="detail">Free, without an account: ${perDay} a day.</span></p>
    <div class="examples" role="group" aria-labelledby="try-examples">
      <p id="try-examples" class="detail">Or take an example:</p>
      ${examples.map(
        ({
          name,
          label,
          source_url,
          claim,
        }) => html`<button key=${name} type="submit" class="quiet" name="example" value=${name}
          data-source_url=${source_url} data-claim=${claim}>${label}</button>`,
      )}
    </div>
  </form>`
}

/** What is wrong with the fields before they are sent, by name. */
export function problemsOf({ source_url, claim }: { source_url: string; claim: string }): Record<string, string> {
  const problems: Record<string, string> = {}
  if (!/^https?:\/\/\S+$/.test(source_url)) problems.source_url = 'Name one page: its address begins with https://.'
  if (claim.trim() === '') problems.claim = 'Say in one sentence what the page is said to say.'
  return problems
}
