// The page of one receipt, /receipts/{serial}: its meaning in words, its neighbours in the chain, and the proof that it is
// in the log. Also the results of the search for receipts.
import { type Html, html } from '../../client/page/html.ts'
import { Code, counted, Facts, inFigures, Notice, Time } from '../../client/page/parts.ts'
import { CAPTURE_REQUESTED_BY } from '../evidence/manifest.ts'
import type { Attestation } from '../interface/attestation.ts'
import type { Inclusion } from '../receipts/tree.ts'
import { renderPage, type Site } from './layout.ts'

export interface ShownReceipt {
  attestation: Attestation
  inclusion: Inclusion
  checkpoint: string
  previous: Attestation | null
  next: Attestation | null
}

export function receiptPage(site: Site, { attestation, inclusion, checkpoint, previous, next }: ShownReceipt): string {
  const { serial, ts_ms, requested_by, label, subject_sha256, receipt_hash, prev_hash, key_id, pubkey_hex } =
    attestation
  const { thing, unshown } = purposeOf(requested_by) ?? FILE
  return renderPage(site, {
    title: `Receipt ${serial}`,
    path: `/receipts/${serial}`,
    description: `Receipt ${serial} of the public chain: ${meaningOf(requested_by)}`,
    body: html`<h1>Receipt ${inFigures(serial)}</h1>
      <p class="lead">${meaningOf(requested_by)} It shows that ${thing} with the digest below, its fingerprint, was known
        on <${Time} ms=${ts_ms} />: this service signed the digest then. It does not show ${unshown}.</p>
      <p>The server wrote this page, so it proves nothing by itself. Your browser can check the signature and the proof.</p>
      <p class="actions"><a class="button" href=${`/verify#${serial}`}>Verify in your browser</a>
        <a class="button quiet" href="/chain">All receipts</a> <a class="button quiet" href=${`/v1/receipt/${serial}`}>JSON</a></p>
      <${Facts} facts=${[
        ['Made for', madeFor(requested_by)],
        ['Label', label],
        ['Signed', html`<${Time} ms=${ts_ms} />, with key ${key_id}`],
        ['Digest', html`<code>${subject_sha256}</code>`],
        ['Its own hash', html`<code>${receipt_hash}</code>`],
      ]} />
      <${Neighbours} serial=${serial} previous=${previous} next=${next} prevHash=${prev_hash} />
      <h2>Its place in the list</h2>
      <p>The list has ${counted(inclusion.tree_size, 'receipt')}. ${
        inclusion.hashes.length === 0
          ? 'This is the only one, so its hash leads to the signed newest one by itself.'
          : `From this one, ${counted(inclusion.hashes.length, 'hash leads', 'hashes lead')} to the newest, which is signed below. A person who kept such lines can check that this receipt was in the list and still is.`
      }</p>
      <${Code} label="The newest receipt, signed (checkpoint)" text=${checkpoint} />
      <details><summary>The proof and the signature</summary>
        <${Code} label=${`Hashes from receipt ${serial} to the head, leaf index ${inclusion.leaf_index}`} text=${inclusion.hashes.join('\n') || 'none'} />
        <${Code} label=${`Signature (Ed25519) with key ${key_id}`} text=${attestation.sig_ed25519_hex} />
        <${Code} label="Public key" text=${pubkey_hex} /></details>
`,
  })
}

/** Who asked for a receipt, in a few words: the service for one of its own operations, or an account. */
export function madeFor(requestedBy: string): string {
  return purposeOf(requestedBy)?.name ?? `account ${requestedBy}`
}

/** The same as a sentence. */
function meaningOf(requestedBy: string): string {
  return purposeOf(requestedBy)?.meaning ?? `The account ${requestedBy} submitted it.`
}

interface Purpose {
  name: string
  /** As a sentence. */
  meaning: string
  /** What has the digest. */
  thing: string
  /** What the receipt does not show of it. */
  unshown: string
}

const FILE = { thing: 'a file', unshown: 'that what the file says is true' }
const ALERT = { thing: 'an alert', unshown: 'what has happened since' }
const PURPOSES: Readonly<Record<string, Purpose>> = {
  'source-verification': {
    name: 'a verification',
    meaning: 'It belongs to a verification that was bought; its buyer has the result.',
    thing: 'a result',
    unshown: 'that what the result says is true',
  },
  lease: {
    name: 'a lease',
    meaning: 'It belongs to a lease that an account granted, renewed or revoked.',
    thing: 'a signed lease or revocation',
    unshown: 'whether the lease is in force now',
  },
  watchdog: { name: 'an alert of a watchdog', meaning: 'It belongs to an alert of a watchdog.', ...ALERT },
  'citation-watch': {
    name: 'an alert about a quote',
    meaning: 'It belongs to an alert about a quote on a page.',
    ...ALERT,
  },
  'key-rotation': {
    name: 'a new signing key',
    meaning: 'It introduces a new signing key.',
    thing: 'the introduction of a key',
    unshown: 'who holds the key',
  },
  [CAPTURE_REQUESTED_BY]: {
    name: 'the evidence of a verification',
    meaning: 'It belongs to what was captured of a page for a verification: every request and response.',
    thing: 'a list of what was captured',
    unshown: 'that what the page says is true',
  },
}

/** Undefined for an account, whose handle may be the name of any member. */
const purposeOf = (requestedBy: string) => (Object.hasOwn(PURPOSES, requestedBy) ? PURPOSES[requestedBy] : undefined)

interface NeighboursProps {
  serial: number
  previous: Attestation | null
  next: Attestation | null
  prevHash: string
}

function Neighbours({ serial, previous, next, prevHash }: NeighboursProps): Html {
  return html`<h2>Its neighbours</h2>
    <${Facts} facts=${[
      [
        'Before it',
        previous
          ? html`<a href=${`/receipts/${previous.serial}`}>Receipt ${inFigures(previous.serial)}</a>, of <${Time} ms=${previous.ts_ms} />. ${
              previous.receipt_hash === prevHash ? 'This receipt names its hash:' : 'This receipt names another hash:'
            } <code>${prevHash}</code>`
          : 'Nothing. The chain begins here, with 64 zeros in place of a hash.',
      ],
      [
        'After it',
        next
          ? html`<a href=${`/receipts/${next.serial}`}>Receipt ${inFigures(next.serial)}</a>, of <${Time} ms=${next.ts_ms} />`
          : `Nothing yet. Receipt ${inFigures(serial)} is the head of the chain.`,
      ],
    ]} />`
}

/** The form that finds a receipt. Works without JavaScript. */
export function ReceiptSearch({ value = '', problem }: { value?: string; problem?: string }): Html {
  return html`<form class="search" action="/receipts" method="get" role="search">
    <div class="field">
      <label for="q">Find a receipt by its serial, its hash, or the digest of a file</label>
      <input class="mono" id="q" name="q" type="search" value=${value} maxlength="100" spellcheck=${false} autocomplete="off"
        aria-describedby=${problem ? 'q-hint q-problem' : 'q-hint'} aria-invalid=${problem ? 'true' : undefined} />
      <p id="q-hint" class="detail">A number, or 64 characters from 0 to 9 and a to f: <code>sha256sum FILE</code> prints the digest of a file.</p>
      ${problem && html`<p id="q-problem" class="problem" role="alert">${problem}</p>`}
    </div>
    <p class="actions"><button type="submit">Find</button></p>
  </form>`
}

export interface Search {
  given: string
  /** The serials found; null if there was no search. */
  found: readonly number[] | null
  problem?: string
}

export function receiptSearchPage(site: Site, { given, found, problem }: Search): string {
  return renderPage(site, {
    title: 'Find a receipt',
    path: '/receipts',
    description: 'Finds a receipt of the public chain by its serial, its hash, or the digest that it is for.',
    unlisted: given !== '',
    body: html`<h1>Find a receipt</h1>
      <p class="lead">A receipt shows that a file existed at a time. Its number, or the digest of the file, finds it.</p>
      <${ReceiptSearch} value=${given} problem=${problem} />
      ${found && found.length === 0 && html`<${Notice} title="Nothing found.">No receipt of this chain has this hash or is for this digest.<//>`}
      ${
        found &&
        found.length > 0 &&
        html`<p>${counted(found.length, 'receipt is', 'receipts are')} for this digest:</p>
        <ul>${found.map((serial) => html`<li key=${serial}><a href=${`/receipts/${serial}`}>Receipt ${inFigures(serial)}</a></li>`)}</ul>`
      }
      <p class="aside">The digest that a result's receipt is for is its <code>subject_sha256</code>. <a href="/chain">All receipts</a></p>`,
  })
}
