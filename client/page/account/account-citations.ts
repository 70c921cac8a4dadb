// The citation watches of the account: whether a bought quote is still on its page, and the text that replaced it.
import type { CitationCheck, CitationWatch } from '../../operations/citation-watch.ts'
import { differenceOf } from '../../report/difference.ts'
import { type Html, html } from '../html.ts'
import { Badge, ShortTime, type Tone } from '../parts.ts'
import { webAddress } from '../result/passages.ts'
import { Alerts } from './account-alerts.ts'
import { Act, type SectionProps, Show, useLoaded } from './account-parts.ts'
import { Room } from './account-plans.ts'
import { WebhookTrouble } from './account-webhooks.ts'

export function CitationsSection({ client, ...account }: SectionProps): Html {
  const loaded = useLoaded(() => client.listCitationWatches(), [client])
  return html`<p>A citation watch reads a page again and again, and calls your webhook when a quote that you bought is changed or gone.${' '}
      <code>countersign citation set</code> makes one. <a href="/guide/control-toolkit#citation-watches">How to use one</a></p>
    <${Room} ...${account} limit="citation_watches" used=${loaded.value?.citation_watches.length} />
    <${Show} loaded=${loaded}>${({ citation_watches }: { citation_watches: CitationWatch[] }) =>
      citation_watches.length === 0
        ? html`<p class="empty">The quotes that you watch will be here, and how each reads now. Buy a verification, then watch one of its quotes with
            ${' '}<code>countersign citation set</code>.</p>`
        : html`<ul class="board">${citation_watches.map((one) => html`<${WatchCard} key=${one.name} watch=${one} client=${client} onDone=${loaded.reload} />`)}</ul>`}<//>`
}

const TONES: Record<CitationWatch['state'], Tone> = { present: 'good', changed: 'open', vanished: 'bad' }

interface CardProps extends Pick<SectionProps, 'client'> {
  watch: CitationWatch
  onDone(): void
}

function WatchCard({ watch, client, onDone }: CardProps): Html {
  const {
    name,
    state,
    source_url,
    quote,
    last_check,
    next_check_at,
    failures,
    every_hours,
    webhook_state,
    webhook_url,
  } = watch
  const link = webAddress(source_url)
  return html`<li class="card">
    <h3><bdi>${name}</bdi> <${Badge} tone=${failures > 0 ? 'plain' : TONES[state]}>${failures > 0 ? `${state} when last read` : state}<//>
      ${webhook_state !== 'active' && html` <${Badge} tone="bad">webhook ${webhook_state}<//>`}</h3>
    <p class="detail">${link ? html`<a href=${link} rel="noreferrer noopener" target="_blank"><bdi>${source_url}</bdi></a>` : html`<bdi>${source_url}</bdi>`}</p>
    <${WebhookTrouble} name=${name} url=${webhook_url} state=${webhook_state} list=${() => client.listCitationAlerts({ name })} onDone=${onDone}
      change=${(webhook_url: string) => client.putCitationWatch({ name, webhook_url, every_hours })}
      test=${() => client.testCitationWatch({ name })} />
    <blockquote><bdi>${quote}</bdi></blockquote>
    <${Found} quote=${quote} check=${last_check} />
    <p class="detail">Read every ${every_hours} h, next <${ShortTime} ms=${Date.parse(next_check_at)} />${failures > 0 && `; ${failures === 1 ? 'the last check' : `the last ${failures} checks`} failed`}.</p>
    <p class="actions">
      <${Act} label="Check now" to=${name} run=${() => client.checkCitationWatch({ name })} onDone=${onDone} />
      <${Act} label="Send a test alert" to=${name} run=${() => client.testCitationWatch({ name })} onDone=${onDone} />
      <${Act} label="Delete" to=${name} question="The watch and the history of its alerts are deleted." run=${() => client.deleteCitationWatch({ name })} onDone=${onDone} />
    </p>
    <${Alerts} name=${name} list=${(page: { before?: number }) => client.listCitationAlerts({ name, ...page })}
      redeliver=${(id: string) => client.redeliverCitationAlert({ name, id })} />
  </li>`
}

function Found({ quote, check }: { quote: string; check: CitationCheck | null }): Html {
  if (!check) return html`<p>It was not read again yet.</p>`
  const on = html`on <${ShortTime} ms=${Date.parse(check.checked_at)} /> UTC`
  switch (check.outcome) {
    case 'present':
      return html`<p>It still stood there ${on}.</p>`
    case 'vanished':
      return html`<p>It was gone ${on}, and nothing like it stood on the page.</p>`
    case 'unreadable':
      return html`<p>The page could not be read ${on}: ${check.message}</p>`
    case 'changed':
      return html`<p>It read otherwise ${on}. <span class="difference"><del>Struck through</del></span> is what stood there before,
          ${' '}<span class="difference"><ins>underlined</ins></span> what stands there now:</p>
        <blockquote class="difference">${differenceOf(quote, check.nearest.quote).map(({ in: where, text }, n) =>
          where === 'both'
            ? html`<span key=${n}>${text}</span>${' '}`
            : where === 'first'
              ? html`<del key=${n}>${text}</del>${' '}`
              : html`<ins key=${n}>${text}</ins>${' '}`,
        )}</blockquote>`
  }
}
