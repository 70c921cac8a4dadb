// Writes docs/configuration.md from the table of variables in config.ts.
import { type Variable, variables } from './config.ts'

const INTRODUCTION = `# Configuration

<!-- Made by \`npm run --silent cli -- config --markdown > docs/configuration.md\`. Do not edit it by hand: a test compares it
with the table in server/config.ts. -->

Every setting is an environment variable. An empty value counts as unset. A process reads them once, when it starts, and
refuses to start when a value is not valid or when two values contradict each other; it then prints all problems.

- \`npm run cli -- config\` prints every variable with its value. Secrets are masked.
- \`npm run cli -- doctor\` checks the settings together with the database, the workers and the payment provider.
- Web and worker processes of one deployment need the same variables.

| variable | default | secret | meaning |
| --- | --- | --- | --- |
`

/** The page as Markdown, with a line feed at its end. */
export function renderConfigurationPage(): string {
  const rows = Object.entries<Variable>(variables).map(
    ([name, { default: fallback = '', secret, about }]) =>
      `| \`${name}\` | ${fallback && `\`${fallback}\``} | ${secret ? 'yes' : ''} | ${about} |\n`,
  )
  return INTRODUCTION + rows.join('')
}
