// The page /chain: the head of the receipt chain, who witnessed it, its growth, and the latest receipts.
import { html } from '../../client/page/html.ts'
import {
  Badge,
  Code,
  counted,
  Facts,
  Figures,
  inFigures,
  Notice,
  ShortTime,
  Table,
  Time,
} from '../../client/page/parts.ts'
import type { Attestation } from '../interface/attestation.ts'
import type { Growth } from '../receipts/growth.ts'
import type { NewestTimestamp } from '../receipts/timestamps.ts'
import { renderPage, type Site } from './layout.ts'
import { Plot } from './plot.ts'
import { madeFor, ReceiptSearch } from './receipt-page.ts'

export interface ShownChain {
  serial: number
  receiptHash: string
  checkpoint: string
  growth: Growth
  /** Newest first. */
  latest: readonly Attestation[]
  /** Null where no time-stamp authority has signed a checkpoint. */
  stamp: NewestTimestamp | null
  witnesses: readonly { name: string; signed: boolean }[]
}

export function chainPage(site: Site, chain: ShownChain): string {
  const { serial, growth } = chain
  const days = growth.days
  const week = days.slice(-7).reduce((sum, { receipts }) => sum + receipts, 0)
  return renderPage(site, {
    title: 'Receipts',
    path: '/chain',
    description:
      'The public list of all receipts of this service: find one, and check that none was taken out or changed.',
    body: html`<h1>All receipts</h1>
      <p class="lead">A receipt shows that something existed at a time: a result that was bought, an alert, a file. All receipts of this service
        stand in one public list that only grows. Each names the one before it, so none can be taken out, changed or moved without a trace.</p>
      <${Figures} figures=${[
        ['receipts', inFigures(serial)],
        ['today (UTC)', inFigures(days.at(-1)?.receipts ?? 0)],
        ['in seven days', inFigures(week)],
      ]} />
      <${ReceiptSearch} />
      <h2>Latest receipts</h2>
      <${Table} caption="The latest receipts, newest first" unseen
        empty=${html`Receipts will be here, the newest first. Each verification that is <a href="/guide/buying">bought</a> adds one.`}
        columns=${[{ name: 'Serial' }, { name: 'Made for' }, { name: 'Time (UTC)' }, { name: 'Digest' }]}
        rows=${chain.latest.map(({ serial, ts_ms, requested_by, subject_sha256 }) => [
          html`<a href=${`/receipts/${serial}`}>${inFigures(serial)}</a>`,
          madeFor(requested_by),
          html`<${ShortTime} ms=${ts_ms} />`,
          html`<code>${subject_sha256.slice(0, 16)}…</code>`,
        ])} />
      ${serial > 0 && html`<${GrowthPlots} ...${growth} />`}
      <h2>The newest receipt, signed</h2>
      <${Head} ...${chain} />
      <h2>Witnesses</h2>
      <${Witnesses} witnesses=${chain.witnesses} />
      ${chain.stamp && html`<${OutsideTime} ...${chain.stamp} />`}
      <p class="aside">For programs: <a href="/v1/chain-head">head</a>, <a href="/v1/chain">export</a>, <a href="/checkpoint">checkpoint</a>,${' '}
        <a href="/v1/keys">keys</a>. <code>countersign export</code> saves the whole chain, <code>countersign watch</code> checks that it only grows.</p>`,
  })
}

function GrowthPlots({ days }: Growth) {
  return html`<${Plot} id="total" title="Receipts in all" shape="area" description="How many receipts the chain had at the end of each day."
      series=${[{ name: 'Receipts', points: days.map(({ at, total }) => ({ at, value: total })) }]} />
    <${Plot} id="daily" title="Receipts of each day" shape="bars" description="How many receipts were added on each day, in UTC."
      series=${[{ name: 'Receipts', points: days.map(({ at, receipts }) => ({ at, value: receipts })) }]} />`
}

function Head({ serial, receiptHash, checkpoint, latest }: ShownChain) {
  if (serial === 0)
    return html`<${Notice}>The list has no receipt yet. Its first one will name 64 zeros in place of the one before it.<//>`
  const time = latest[0]?.ts_ms
  return html`<${Facts} facts=${[
    ['Receipt', html`<a href=${`/receipts/${serial}`}>${inFigures(serial)}</a>`],
    ['Of', time === undefined ? null : html`<${Time} ms=${time} />`],
    ['Its hash', html`<code>${receiptHash}</code>`],
  ]} />
  <p>Keep the lines below. Every later list must begin with the receipts that they sign; one that does not was changed.${' '}
    <code>countersign watch</code> keeps them and checks this for you.</p>
  <${Code} label="The newest receipt, signed (checkpoint)" text=${checkpoint} />`
}

function Witnesses({ witnesses }: Pick<ShownChain, 'witnesses'>) {
  if (witnesses.length === 0)
    return html`<p>No witness is configured. The service alone vouches that it shows everyone the same chain; a person who pins a head can
      check that for themselves.</p>`
  return html`<p>A witness signs a head only if it continues the one that it signed before. So the service cannot show different
      chains to different readers.</p>
    <${Table} caption="Witnesses of the head" unseen columns=${[{ name: 'Witness' }, { name: 'The head' }]}
      rows=${witnesses.map(({ name, signed }) => [
        name,
        signed ? html`<${Badge} tone="good">signed<//>` : html`<${Badge} tone="open">not signed yet<//>`,
      ])} />`
}

function OutsideTime({ tree_size, generated_at, authority }: NewestTimestamp) {
  return html`<h2>Time from outside</h2>
    <p>The times of receipts are by the clock of this service. <strong>${authority}</strong>, which is not part of it, has signed that the
      first ${counted(tree_size, 'receipt')} existed on <${Time} ms=${generated_at.getTime()} />. <a href="/guide/auditing#outside-time">How to
      check that</a>, and the <a href="/checkpoint/timestamp">signed reply</a>.</p>`
}
