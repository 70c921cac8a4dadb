// Prints the audit: npm run cli -- audit.
import { AUDIT_CHECKS, AUDIT_NAMES, auditAll } from '../audit.ts'
import { type OperatorCommand, printable, printJson } from './command.ts'

export const auditCommands: Record<string, OperatorCommand> = {
  audit: {
    about:
      'Recompute chain and ledger: every charge is made once and has a result, and nothing is orphaned. Exit 1 with a list of faults.',
    options: { signatures: { about: 'check every signature, not only the last of each key' } },
    async run(db, _config, { options, json }) {
      const onProgress = process.stderr.isTTY
        ? (serial: number, head: number) =>
            void process.stderr.write(`\rreceipt ${serial} of ${head}${serial === head ? '\n' : ''}`)
        : undefined
      const { checked, faults } = await auditAll(db, {
        signatures: options.signatures ? 'every' : 'ends',
        ...(onProgress && { onProgress }),
      })
      if (json) printJson({ ok: faults.length === 0, checked, faults })
      else
        for (const name of AUDIT_NAMES) {
          const found = faults.filter(({ check }) => check === name)
          console.log(`${found.length === 0 ? 'ok  ' : 'FAIL'} ${AUDIT_CHECKS[name]} (${checked[name]} checked)`)
          for (const { subject, detail } of found) console.log(`     ${printable(`${subject}: ${detail}`)}`)
        }
      return faults.length === 0 ? 0 : 1
    },
  },
}
