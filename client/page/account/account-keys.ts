// The API keys of the account: made, and ended at once or after a day, which is how a key is changed without a gap.
import type { ApiKeyKind, ApiKeyRow } from '../../operations/account.ts'
import { type Html, html } from '../html.ts'
import { Field, ShortTime, Table } from '../parts.ts'
import { Act, Entry, type SectionProps, Show, useLoaded } from './account-parts.ts'

const DAY_S = 86_400
/** What a key of each kind may do. */
const KINDS: Record<ApiKeyKind, string> = { full: 'everything', read_only: 'read', heartbeat: 'send heartbeats' }
const ABOUT: Record<ApiKeyKind, string> = {
  full: 'Everyone who has this API key can use the account, and a lost one cannot be recovered.',
  read_only:
    'Everyone who has this API key can read what the account has. A lost one cannot be recovered: make another one.',
  heartbeat:
    'Everyone who has this API key can send heartbeats of your watchdogs, and nothing else. A lost one cannot be recovered: make another one.',
}

export function KeysSection({ client, onSecret }: SectionProps): Html {
  const loaded = useLoaded(() => client.listApiKeys(), [client])
  const make = async ({ kind = 'full', label = '' }) => {
    const made = await client.createApiKey({ kind: kind as ApiKeyKind, ...(label && { label }) })
    onSecret({
      what: `the new API key ${label || kind}`,
      about: ABOUT[kind as ApiKeyKind],
      text: made.api_key,
      file: `countersign-${label || kind}.key`,
    })
  }
  return html`<p>To change an API key without a gap: make a new one, give it to your programs, and end the old one in a day. A lost key cannot be
      recovered.</p>
    <${Entry} title="Make a key" button="Make it" submit=${make} onDone=${loaded.reload}>
      <p><label for="kind">What it may do</label>
        <select id="kind" name="kind">${Object.entries(KINDS).map(([kind, may]) => html`<option key=${kind} value=${kind}>${may}</option>`)}</select></p>
      <${Field} id="label" label="Label" hint="For you. May be empty." /><//>
    <${Show} loaded=${loaded}>${({ api_keys }: { api_keys: ApiKeyRow[] }) => html`
      <${Table} caption="API keys" unseen columns=${[{ name: 'Label' }, { name: 'May' }, { name: 'Made (UTC)' }, { name: 'Last used' }, { name: 'Ends' }, { name: '' }]}
        rows=${api_keys.map((one) => {
          const { id, kind, label, created_at, last_used_at, expires_at } = one
          const lock = lockOf(one, api_keys)
          return [
            html`<bdi>${label ?? 'no label'}</bdi>`,
            KINDS[kind],
            html`<${ShortTime} ms=${Date.parse(created_at)} />`,
            last_used_at ? html`<${ShortTime} ms=${Date.parse(last_used_at)} />` : 'never',
            expires_at ? html`<${ShortTime} ms=${Date.parse(expires_at)} />` : '',
            html`<span class="actions"><${Act} label="End in a day" to=${label ?? kind} question=${`Programs that still use it stop working then.${lock && ` ${lock} Make another one before.`}`}
              run=${() => client.revokeApiKey({ id, after_s: DAY_S })} onDone=${loaded.reload} />
            <${Act} label="End now" to=${label ?? kind} question=${lock ? `${lock} Make another one first.` : 'Programs that use it stop working at once. This page too, if it is the key that you entered.'}
              run=${() => client.revokeApiKey({ id })} onDone=${loaded.reload} /></span>`,
          ]
        })} />`}<//>`
}

/** What is lost with the last key that may do everything, which the service lets a caller end; empty for another one. */
function lockOf(key: ApiKeyRow, keys: readonly ApiKeyRow[]): string {
  if (key.kind !== 'full') return ''
  const others = keys.filter(({ id, kind }) => id !== key.id && kind === 'full')
  if (others.some(({ expires_at }) => expires_at === null)) return ''
  const which = others.length === 0 ? 'It is the only key' : 'It is the only lasting key'
  return `${which} of this account that may do everything: after it nobody can make a key or change the account again.`
}
