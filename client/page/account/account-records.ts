// The receipts that the account asked for, and the slots of its journal.
import { useState } from 'preact/hooks'
import { sha256Hex } from '../../bytes.ts'
import type { Attestation } from '../../chain/attestation.ts'
import type { JournalSlot } from '../../operations/journal.ts'
import { type Html, html } from '../html.ts'
import { Field, inFigures, ShortTime, Table } from '../parts.ts'
import { Act, Entry, FieldError, type SectionProps, Show, save, useLoaded } from './account-parts.ts'
import { Room } from './account-plans.ts'

const PAGE = 50

export function ReceiptsSection({ client, ...account }: SectionProps): Html {
  const usage = useLoaded(() => client.getUsage(), [client])
  const [before, setBefore] = useState<number | undefined>()
  const loaded = useLoaded(() => client.listReceipts({ limit: PAGE, before }), [client, before])
  const make = async ({ subject_sha256 = '', label = '' }, form: HTMLFormElement) => {
    const [file] = form.querySelector<HTMLInputElement>('input[type=file]')?.files ?? []
    const digest = file ? sha256Hex(new Uint8Array(await file.arrayBuffer())) : subject_sha256.trim().toLowerCase()
    if (digest === '') throw new FieldError('file', 'Choose a file, or give its digest.')
    if (!/^[0-9a-f]{64}$/.test(digest))
      throw new FieldError(
        'subject_sha256',
        'This is no SHA-256: it has 64 characters from 0 to 9 and a to f. Or choose the file.',
      )
    return client.createReceipt({ subject_sha256: digest, label: label || null })
  }
  return html`<p>A receipt shows that you named a file’s digest, its fingerprint, at a time. Only the digest is sent. The list of receipts is public:
      your handle and the labels can be read by anyone. <a href="/guide/control-toolkit#receipts">How to use one</a></p>
    <${Room} ...${account} limit="receipts_per_day" used=${usage.value?.used.receipts_today} />
    <${Entry} title="Ask for a receipt" button="Ask for it" submit=${make} onDone=${() => {
      loaded.reload()
      usage.reload()
    }}>
      <p><label for="file">File</label><input id="file" name="file" type="file" />
        <span class="detail">It stays in your browser, which computes its digest.</span></p>
      <${Field} id="subject_sha256" label="Or its digest" hint="SHA-256, 64 characters from 0 to 9 and a to f" />
      <${Field} id="label" label="Label" hint="Public. May be empty." /><//>
    <${Show} loaded=${loaded}>${({ receipts, next }: { receipts: Attestation[]; next: number | null }) =>
      html`<div class="receipt-rows"><${Table} caption="Receipts, newest first" unseen columns=${[{ name: 'Serial' }, { name: 'Time (UTC)' }, { name: 'Label' }, { name: 'Digest' }]}
          rows=${receipts.map(({ serial, ts_ms, label, subject_sha256 }) => [
            html`<a href=${`/receipts/${serial}`}>${inFigures(serial)}</a>`,
            html`<${ShortTime} ms=${ts_ms} />`,
            html`<bdi>${label}</bdi>`,
            html`<code>${subject_sha256.slice(0, 16)}…</code>`,
          ])} empty="The receipts that you ask for will be here, newest first. A receipt proves that you named the digest of a file by then: choose the file above." /></div>
        <p class="actions">${before !== undefined && html`<button type="button" class="quiet" onClick=${() => setBefore(undefined)}>Newest</button>`}
          ${next !== null && html`<button type="button" class="quiet" onClick=${() => setBefore(next)}>Older</button>`}</p>`}<//>`
}

export function JournalSection({ client, ...account }: SectionProps): Html {
  const loaded = useLoaded(() => client.listJournalSlots(), [client])
  const store = async ({ slot = '' }, form: HTMLFormElement) => {
    const [file] = form.querySelector<HTMLInputElement>('input[type=file]')?.files ?? []
    if (!file) throw new Error('Choose a file.')
    return client.putJournalSlot({ slot, data: new Uint8Array(await file.arrayBuffer()) })
  }
  const replaced = ({ slot = '' }) =>
    loaded.value?.slots.some((one) => one.slot === slot)
      ? `${slot} holds something. Its bytes are replaced and lost.`
      : null
  return html`<p>A journal is a small store for an agent. A slot of it keeps a file of up to 64 KiB. The service does not encrypt it: encrypt before you
      store. <a href="/guide/control-toolkit#journal">How to use one</a></p>
    <${Room} ...${account} limit="journal_slots" used=${loaded.value?.slots.length} />
    <${Entry} title="Store a file in a slot" button="Store it" submit=${store} question=${replaced} onDone=${loaded.reload}>
      <${Field} id="slot" label="Slot" required hint="Letters, digits, dots, hyphens and underscores. What the slot held is replaced." />
      <p><label for="content">File</label><input id="content" type="file" required /></p><//>
    <${Show} loaded=${loaded}>${({ slots }: { slots: JournalSlot[] }) => html`
      <${Table} caption="Slots of the journal" unseen columns=${[{ name: 'Slot' }, { name: 'Bytes', number: true }, { name: 'Changed (UTC)' }, { name: 'SHA-256' }, { name: '' }]}
        rows=${slots.map(({ slot, bytes, sha256, updated_at }) => [
          html`<bdi>${slot}</bdi>`,
          inFigures(bytes),
          html`<${ShortTime} ms=${Date.parse(updated_at)} />`,
          html`<code>${sha256.slice(0, 16)}…</code>`,
          html`<span class="actions"><${Act} label="Save as a file" to=${slot} run=${async () => save(slot, (await client.getJournalSlot({ slot })).data)} />
            <${Act} label="Delete" to=${slot} question="Its bytes are deleted." run=${() => client.deleteJournalSlot({ slot })} onDone=${loaded.reload} /></span>`,
        ])} empty="The slots that you store will be here. An agent keeps in them what it must remember: store a file above, or PUT /v1/journal/SLOT." />`}<//>`
}
