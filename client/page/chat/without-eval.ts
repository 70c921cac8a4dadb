// Imported before the package for chat hosts. zod otherwise tries, for the schemas that the package makes while it is loaded, whether
// code may be made from text; the policy of the page refuses that, and the browser reports the attempt.
// package.json names this file among those with effects, or the bundler would leave it out.
import { config } from 'zod/v4/core'

config({ jitless: true })
