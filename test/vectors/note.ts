// Signed notes, made as they should be or in a way that must be refused.
import { type IssuerKey, LOG_NAME, verifierKey } from '../client/log-issuer.ts'

interface Forgery {
  /** On the signature lines; the text may name another one. */
  name?: string
  /** The key whose id the lines have. */
  idOf?: IssuerKey
}

/** @param text its first line is the name of the log */
export function signNote(text: string, signers: readonly IssuerKey[], forgery: Forgery = {}): string {
  const name = forgery.name ?? text.split('\n')[0] ?? LOG_NAME
  const lines = signers.map((key) => {
    const [, keyId = ''] = verifierKey(forgery.idOf ?? key, name).split('+')
    const bytes = Buffer.concat([Buffer.from(keyId, 'hex'), key.sign(text)])
    return `\u2014 ${name} ${bytes.toString('base64')}\n`
  })
  return `${text}\n${lines.join('')}`
}
