// Sentences in the languages that are known, and the flag for those that are not.
import t from 'tap'
import { assessLiterally } from '../../workers/assessment/literal/search-thread.ts'
import { isAttributed, isKnownLanguage, mayShareLanguage } from '../../workers/text/language.ts'
import { sentencesOf } from '../../workers/text/sentences.ts'

const DIGESTS = { sourceSha256: '0'.repeat(64), textSha256: '0'.repeat(64) }

const texts: Record<string, string> = {
  English:
    'The harbour was opened in 1874 by the engineer of the county. It has three piers, and the ferry to the island sails from the second of them. In the winter it is closed because of the storms that come from the west.',
  German:
    'Der Hafen wurde im Jahr 1874 von dem Ingenieur des Kreises eröffnet. Er hat drei Piere, und die Fähre zu der Insel fährt von dem zweiten ab. Im Winter ist er wegen der Stürme, die aus dem Westen kommen, nicht offen.',
  French:
    "Le port a été ouvert en 1874 par l'ingénieur du comté, qui l'avait aussi dessiné. Il a trois jetées, et le bac pour l'île part de la deuxième d'entre elles. En hiver il est fermé à cause des tempêtes qui viennent de l'ouest.",
  Spanish:
    'El puerto fue abierto en 1874 por el ingeniero del condado, que también lo había diseñado. Tiene tres muelles, y el barco para la isla sale del segundo de ellos. En el invierno está cerrado por las tormentas que vienen del oeste.',
  Portuguese:
    'O porto foi aberto em 1874 pelo engenheiro do condado, que também o tinha desenhado. Tem três cais, e o barco para a ilha sai do segundo deles. No inverno está fechado por causa das tempestades que vêm do oeste.',
  Japanese:
    '港は1874年に郡の技師によって開かれた。桟橋は三本あり、島への船は二番目から出る。冬は西から来る嵐のために閉じられる。',
  Chinese: '港口于1874年由郡工程师开放。它有三座码头，去岛上的渡轮从第二座出发。冬天因为来自西边的风暴而关闭。',
  Arabic:
    'تم افتتاح الميناء في عام 1874 من قبل مهندس المقاطعة الذي كان قد رسمه أيضا. له ثلاثة أرصفة، و تبحر العبارة إلى الجزيرة من الرصيف الثاني. هو مغلق في الشتاء بسبب العواصف التي تأتي من الغرب.',
}

const unknown: Record<string, string> = {
  Finnish:
    'Satama avattiin vuonna 1874 ja sen rakensi läänin insinööri, joka oli myös piirtänyt sen. Satamassa on kolme laituria, ja lautta saarelle lähtee toisesta laiturista joka päivä. Talvella satama suljetaan lännestä tulevien myrskyjen takia, jolloin lautta kulkee mantereen puolelta.',
  Hungarian:
    'A kikötőt 1874-ben nyitotta meg a megye mérnöke, aki maga tervezte az egészet. Három mólója van, a szigetre induló komp a második mólóról indul minden reggel. Télen a nyugatról érkező viharok miatt bezárják, ilyenkor a komp a szárazföld másik oldaláról közlekedik.',
  Swahili:
    'Bandari ilifunguliwa mwaka 1874 na mhandisi wa wilaya ambaye pia aliichora mwenyewe. Ina gati tatu, na kivuko cha kwenda kisiwani huondoka kutoka gati ya pili kila siku asubuhi. Wakati wa baridi bandari hufungwa kwa sababu ya dhoruba zinazotoka magharibi mwa nchi hiyo.',
  Georgian:
    'ნავსადგური გაიხსნა 1874 წელს საგრაფოს ინჟინრის მიერ. მას აქვს სამი ნავმისადგომი და ბორანი კუნძულზე მეორედან გადის.',
}

t.test('sentences', (t) => {
  for (const [language, text] of Object.entries(texts)) t.equal(sentencesOf(text).length, 3, language)
  t.end()
})

t.test('a flag names an unknown language', (t) => {
  for (const [language, text] of Object.entries(texts)) t.ok(isKnownLanguage(text), language)
  for (const [language, text] of Object.entries(unknown)) {
    t.notOk(isKnownLanguage(text), language)
    const { risk_flags } = assessLiterally({ claim: text.split('. ')[0]!, text, digests: DIGESTS })
    t.ok(risk_flags.includes('language_not_supported'), language)
  }
  t.ok(isKnownLanguage('Bern\t134,000\nBasel\t173,000\nZug\t31,000'), 'a table')
  t.end()
})

t.test('whether a claim and a page may be in one language', (t) => {
  const { English, German, Japanese, Arabic } = texts as Record<string, string>
  t.ok(mayShareLanguage('The harbour of Kelby was opened in 1874.', English!))
  t.notOk(mayShareLanguage('Der Hafen wurde im Jahr 1874 von einem Ingenieur eröffnet.', English!))
  t.ok(mayShareLanguage('Kelby', German!), 'a name is of any language')
  t.notOk(mayShareLanguage('The harbour was opened in 1874.', Arabic!))
  t.ok(mayShareLanguage('港は1874年に開かれた。', Japanese!))
  t.notOk(mayShareLanguage('港は1874年に開かれた。', English!))
  t.end()
})

t.test('words by which a text is attributed to a speaker', (t) => {
  for (const said of [
    'The mayor said "we will win".',
    'Laut dem Bürgermeister ist der Hafen offen.',
    '市长说港口已经开放。',
  ])
    t.ok(isAttributed(said), said)
  t.notOk(isAttributed('The harbour is called "The Old One".'))
  t.end()
})
