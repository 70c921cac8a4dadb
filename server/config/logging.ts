// Variables of the log.
import { z } from 'zod'

export const logVariables = {
  LOG_LEVEL: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    default: 'info',
    about: 'Lowest level that is logged',
  },
  LOG_FORMAT: {
    schema: z.enum(['json', 'pretty']),
    about: 'json or pretty. Unset: pretty on a terminal, else json',
  },
}
