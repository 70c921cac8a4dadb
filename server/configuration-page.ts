// Writes docs/configuration.md from the table of variables in config.ts.
import { type Variable, variables } from './config.ts'

const INTRODUCTION = `# Configuration

<!-- Made by \`npm run --silent cli -- config --markdown > docs/configuration.md\`. Do not edit it by hand: a test compares it
with the table in server/config.ts. -->

Every setting is an environment variable; an empty one is unset. With values that are not valid or contradict each other, a
process prints all problems and does not start. Web and worker processes need the same variables.

- \`npm run cli -- config\` prints every value. Secrets (\\*) are masked.
- \`npm run cli -- doctor\` checks the settings with what they name.

| variable | default | meaning |
| --- | --- | --- |
`

/** The page as Markdown, with a line feed at its end. */
export function renderConfigurationPage(): string {
  const rows = Object.entries<Variable>(variables).map(
    ([name, { default: fallback = '', secret, about }]) =>
      `| \`${name}\`${secret ? '\\*' : ''} | ${fallback && `\`${fallback}\``} | ${about} |\n`,
  )
  return INTRODUCTION + rows.join('')
}
