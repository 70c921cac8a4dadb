// `countersign mcp`: its options and its help. `mcp-run.ts` runs it.
import { PURCHASE } from '../buy/buy.ts'
import { command } from '../command.ts'
import { ACCOUNT } from '../toolkit.ts'

export const mcp = command({
  summary: 'serve tools that pay, for hosts of MCP that cannot',
  operands: [],
  usage: '--service URL --wallet FILE --budget USD',
  about:
    'A server of the Model Context Protocol on standard input and output. Its tools: verify_source buys the verdict of a\n' +
    'page on a claim, check_quotes and check_report are free and need an account (--key), verify_receipt works offline.\n\n' +
    'Where the host can ask a person, each purchase is asked about, unless --yes. Nothing is paid beyond --budget: by this\n' +
    'process, or for ever with --budget-file. A purchase is never paid twice, as with countersign buy.',
  examples: [
    'countersign mcp --service https://service.example --wallet wallet.key --budget 1.00',
    'claude mcp add countersign -- npx -y countersign mcp --service https://service.example --wallet ~/wallet.key --budget 1.00',
  ],
  exitStatus: '0 the host has closed the connection, 2 wrong usage, 130 ended by a signal.',
  json: false,
  options: { ...PURCHASE, key: ACCOUNT.key },
  run: async (_, options) => (await import('./run.ts')).runMcp(options),
})
