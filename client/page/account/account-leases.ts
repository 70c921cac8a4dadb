// The leases of the account: granted, renewed, revoked.
import { useState } from 'preact/hooks'
import type { LeaseAnswer } from '../../operations/lease-operations.ts'
import { type Html, html } from '../html.ts'
import { Badge, Field, ShortTime, type Tone } from '../parts.ts'
import { Act, Entry, type SectionProps, Show, span, useLoaded } from './account-parts.ts'
import { Room } from './account-plans.ts'

const PAGE = 50
const EVERY_SECONDS = 15

export function LeasesSection({ client, ...account }: SectionProps): Html {
  const [state, setState] = useState<'active' | 'all'>('active')
  const loaded = useLoaded(() => client.listLeases({ state, limit: PAGE }), [client, state], EVERY_SECONDS)
  return html`<p>A lease lets an agent do one thing for a while. The gateway, your program through which the agent acts, renews it every few seconds;
      a revoked one is refused within 30 seconds. <a href="/guide/control-toolkit#leases">How to use one</a></p>
    <${Room} ...${account} limit="active_leases" used=${loaded.value?.leases.filter((one: LeaseAnswer) => one.state === 'active').length} />
    <${Entry} title="Grant a lease" button="Grant it" onDone=${loaded.reload}
      submit=${({ agent = '', action = '', lim = '', ttl_s = '' }) => client.grantLease({ agent, action, lim, ttl_s: Number(ttl_s) })}>
      <${Field} id="agent" label="Agent" hint="Its name, as the gateway knows it" required />
      <${Field} id="action" label="Action" hint="What it may do, for example pay" required />
      <${Field} id="lim" label="Limits" hint="Text that the gateway reads, for example usd<=20. May be empty." />
      <${Field} id="ttl_s" label="Seconds" type="number" value="3600" hint="1 to 86,400" required /><//>
    <p><label class="check"><input type="checkbox" checked=${state === 'all'}
      onChange=${() => setState(state === 'all' ? 'active' : 'all')} /> Expired and revoked ones too</label></p>
    <${Show} loaded=${loaded}>${({ leases, next }: { leases: LeaseAnswer[]; next: string | null }) =>
      leases.length === 0
        ? html`<p class="empty">The leases of your agents will be here, with what each may do and until when. Grant one above; your gateway renews it by
            ${' '}<code>POST /v1/lease/ID/renew</code>.</p>`
        : html`<ul class="board">${leases.map((lease) => html`<${LeaseCard} key=${lease.lease.lease_id} answer=${lease} client=${client} onDone=${loaded.reload} />`)}</ul>
            ${next && html`<p class="detail">Only the newest ${PAGE} are shown. The command line lists all: countersign lease list.</p>`}`}<//>`
}

const TONES: Record<LeaseAnswer['state'], Tone> = { active: 'good', expired: 'plain', revoked: 'open' }

interface CardProps extends Pick<SectionProps, 'client'> {
  answer: LeaseAnswer
  onDone(): void
}

function LeaseCard({ answer, client, onDone }: CardProps): Html {
  const { lease, state, revoked_ms, server_now_ms, receipts } = answer
  const { lease_id, agent, action, lim, expires_ms, recheck_by_ms } = lease
  const left = (ms: number) => span(Math.max(0, ms - server_now_ms) / 1000)
  const isOverdue = state === 'active' && recheck_by_ms <= server_now_ms
  return html`<li class="card">
    <h3><bdi>${agent}</bdi> <${Badge} tone=${isOverdue ? 'open' : TONES[state]}>${isOverdue ? 'to be renewed' : state}<//></h3>
    <p><bdi>${action}</bdi>${lim && html`, within <bdi>${lim}</bdi>`}</p>
    <p class="detail">${
      state === 'active'
        ? html`Ends in ${left(expires_ms)}. ${isOverdue ? 'Its renewal is overdue: gateways refuse it until it is renewed.' : `To be renewed within ${left(recheck_by_ms)}.`}`
        : html`${state === 'revoked' ? 'Revoked' : 'Ended'} <${ShortTime} ms=${revoked_ms ?? expires_ms} />.`
    } Receipt <a href=${`/receipts/${receipts.granted}`}>${receipts.granted}</a>. <code>${lease_id}</code></p>
    ${
      state === 'active' &&
      html`<p class="actions"><${Act} label="Renew" to=${agent} run=${() => client.renewLease({ lease_id })} onDone=${onDone} />
        <${Act} label="Revoke" to=${agent} question="Its agent can act no more, and this cannot be taken back." run=${() => client.revokeLease({ lease_id })} onDone=${onDone} /></p>`
    }</li>`
}
