// What a reader can do about what /verify does not check: an evidence package, which programs check, and the report of a check, which
// has no signature.
import { type Html, html } from '../html.ts'
import { Code, Facts, inFigures } from '../parts.ts'
import { type CheckReport, checkReportIn } from './check-report.ts'

/** What to do with an evidence package. */
export function Replay({ service }: { service: URL | null }): Html {
  const at = service?.origin ?? 'https://service.example'
  return html`<section class="replay" aria-labelledby="replay"><h3 id="replay">How to check it</h3>
    <ol>
      <li>Have its result beside it. The holder of the token of the purchase fetches both:
        <${Code} label="Fetch the package and its result" text=${`countersign recover ${at} REQUEST_ID --token token.txt --evidence package.wacz > result.json`} /></li>
      <li>Save the keys of the service, best from a source that is not the sender of the package:
        <${Code} label="Save the keys" text=${`curl -s ${at}/v1/keys > keys.json`} /></li>
      <li>Do the verification again. It needs no network:
        <${Code} label="Replay the package" text="countersign replay package.wacz result.json --keys keys.json" /></li>
      <li>Read its lines, one for each step. <code>ok</code>: it is proved, and the line says what. <code>FAIL</code>: it differs, and the
        line says how; then the package does not prove the result. <code>--</code>: it was not checked, and the line says why. The first steps prove that the package
        is whole and signed, the next that its bytes are the ones that were read, the last that they give this text, these quotes and this verdict.</li>
    </ol>
    <p>The result itself can be checked here: choose it above.${
      service &&
      html` <a href=${new URL('guide/auditing#redo-a-verification-offline', service).href}>What each step proves</a>`
    }</p></section>`
}

/** The serials of the receipts that its verdicts name, each once. */
function serialsIn({ citations }: CheckReport): number[] {
  const serials = citations.map(({ verdict }) => verdict?.receipt_serial)
  return [...new Set(serials.filter((one): one is number => Number.isSafeInteger(one)))]
}

function factsOf(report: CheckReport): [name: string, value: string][] {
  const { file, service, checked_at, citations } = report
  return [
    ['Report', file],
    ['Checked at', checked_at],
    ['By', service],
    ['Citations', inFigures(citations.length)],
    ['Verdicts with a receipt', inFigures(serialsIn(report).length)],
  ]
}

/** Most serials that are listed. */
const MAX_LISTED = 20

/** What to check in its place. */
export function InsteadOfReport({ value, service }: { value: unknown; service: URL | null }): Html {
  const report = checkReportIn(value)
  if (!report) return null
  const serials = serialsIn(report)
  const [first, ...others] = serials
  const folder = report.verdicts?.folder
  const files = `${named(folder, '.countersign-verdicts/*')}/*/results.jsonl`
  return html`<section class="replay" aria-labelledby="instead"><h3 id="instead">What to do instead</h3>
    ${
      first === undefined
        ? html`<p>Check the report yourself. Without verdicts it costs nothing:</p>
          <${Code} label="Check the report again" text=${`countersign check ${named(report.file, 'report.md')} --service ${service?.origin ?? 'https://service.example'} --key key.txt`} />`
        : html`<p>The verdicts in it come from results that are signed. The person who ran the check has them. Take one out by the serial
            of its receipt, and choose it above or verify it there:</p>
          <${Code} label=${`Take out the result of receipt ${first}, and verify it`} text=${`jq -nr 'first(inputs | select(.receipt_serial == ${first}).result_base64)' ${files} | base64 -d > result.json
countersign verify result.json --pin KEYID:HEX`} />
          <p>The receipts that it names: ${[first, ...others]
            .slice(0, MAX_LISTED)
            .map((serial, n) => html`${n > 0 && ', '}${serialLink(serial, service)}`)}${
            serials.length > MAX_LISTED && html` and ${inFigures(serials.length - MAX_LISTED)} more`
          }. A receipt shows that a result was sold, and not what it says.</p>`
    }</section>
    <section aria-label="What it says"><h3>What it says, which is not proved</h3><${Facts} facts=${factsOf(report)} /></section>`
}

const serialLink = (serial: number, service: URL | null): Html =>
  service ? html`<a href=${new URL(`receipts/${serial}`, service).href}>${inFigures(serial)}</a>` : inFigures(serial)

/** A name from a file, for a command that a reader copies; another one in place of a name that a shell or an option may be. */
const named = (name: unknown, other: string) =>
  typeof name === 'string' && /^[\w./][\w./-]*$/.test(name) ? name : other
