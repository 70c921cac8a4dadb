// What is particular to the file that an export is written to.
import { issueExport, VKEY } from '../client/log-issuer.ts'
import { old, short } from './chain.ts'
import { pinOf, pointOf } from './parts.ts'

const lines = issueExport(short).trimEnd().split('\n')
const text = (changed: string[]) => `${changed.join('\n')}\n`
const header = JSON.parse(lines[0]!)
const reheaded = (members: object) => text(lines.with(0, JSON.stringify({ ...header, ...members })))

/** What is particular to the file; what is wrong with the chain in it is among the cases above. */
export const exportVectors = {
  pins: [pinOf(old)],
  vkey: VKEY,
  cases: [
    { name: 'as it is written', text: text(lines), fails: [] },
    { name: 'no newline at the end', text: lines.join('\n'), fails: ['format'] },
    { name: 'an empty line at the end', text: `${text(lines)}\n`, fails: ['format'] },
    { name: 'lines that end as on Windows', text: lines.join('\r\n'), fails: ['format'] },
    { name: 'a byte order mark', text: `\ufeff${text(lines)}`, fails: ['format'] },
    { name: 'a blank', text: text(lines.with(5, lines[5]!.replace(',', ', '))), fails: ['format'] },
    { name: 'members in another order', text: text(lines.with(5, reordered(lines[5]!))), fails: ['format'] },
    { name: 'a member twice', text: text(lines.with(5, lines[5]!.replace('{', '{"v":1,'))), fails: ['format'] },
    { name: 'a member more', text: text(lines.with(5, lines[5]!.replace('}', ',"more":1}'))), fails: ['format'] },
    { name: 'a header of another version', text: reheaded({ countersign_export: 2 }), fails: ['format'] },
    { name: 'another head', text: reheaded({ head: pointOf(short[3]!) }), fails: ['head'] },
    { name: 'no checkpoint, for who has a verifier key', text: reheaded({ checkpoint: null }), fails: ['checkpoint'] },
    { name: 'without its last receipt', text: text(lines.slice(0, -1)), fails: ['head'] },
    { name: 'without its header', text: text(lines.slice(1)), fails: ['json'] },
  ],
}

function reordered(line: string): string {
  return JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).reverse()))
}
