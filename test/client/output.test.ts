// What commands print as JSON is the same value for a program, and moves nothing on a terminal.
import t from 'tap'
import { json, jsonLine } from '../../client/commands/output.ts'

t.test('a text of a service moves no cursor, and is the same text for a program', (t) => {
  const text = '\u001b[2J \u009b2J \u007f \u202e \u2028 \u{e0001} \u00ad é \u{1f6a2} "\\'
  const value = { [text]: [text] }
  for (const printed of [json(value), jsonLine(value)]) {
    t.same(JSON.parse(printed), value)
    t.notMatch(printed.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    t.match(printed, 'é \u{1f6a2}', 'what is seen stays as it is')
  }
  t.end()
})
