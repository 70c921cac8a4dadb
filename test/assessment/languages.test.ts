// Numbers, dates, negations and sentences in the languages that are known, and the flag for those that are not.
import t from 'tap'
import { checkEvidence } from '../../workers/assessment/checks.ts'
import { isKnownLanguage } from '../../workers/assessment/language.ts'
import { linesOf } from '../../workers/assessment/lines.ts'
import { assessLiterally } from '../../workers/assessment/literal-thread.ts'
import { agreeAcrossUnits } from '../../workers/assessment/measures.ts'
import { quantitiesOf } from '../../workers/assessment/quantities.ts'
import { sentencesOf } from '../../workers/assessment/sentences.ts'
import { isNegation } from '../../workers/assessment/warnings.ts'

const DIGESTS = { sourceSha256: '0'.repeat(64), textSha256: '0'.repeat(64) }

/** What a claim may write, and how a page may write the same. */
const agreeing: [string, string, string][] = [
  ['German', '5. März 2019', '2019-03-05'],
  ['German', 'drei Brücken', '3 Brücken'],
  ['German', '1.234,5 Tonnen', '1234.5 tonnes'],
  ['German', 'fünfzig Prozent', '50 %'],
  ['French', '5 mars 2019', '05.03.2019'],
  ['French', 'quatre ponts', '4 ponts'],
  ['French', '1 234,5 km', '1234.5 km'],
  ['French', 'vingt ans', '20 years'],
  ['Spanish', '5 de marzo de 2019', 'March 5, 2019'],
  ['Spanish', 'cinco puentes', '5 puentes'],
  ['Spanish', '3 millones', '3,000,000'],
  ['Portuguese', '5 de março de 2019', '5 March 2019'],
  ['Portuguese', 'oito pontes', '8 pontes'],
  ['Portuguese', 'trinta anos', '30 anos'],
  ['Japanese', '2019年3月5日', '2019-03-05'],
  ['Japanese', '三十五人', '35'],
  ['Japanese', '1億2000万', '120,000,000'],
  ['Chinese', '2019年3月5日', '2019/3/5'],
  ['Chinese', '一千二百', '1200'],
  ['Chinese', '二十五', '25'],
  ['Arabic', '5 مارس 2019', '5 March 2019'],
  ['Arabic', '٣٥ كيلومتر', '35'],
  ['Arabic', 'خمسة جسور', '5 جسور'],
]

const negated: [string, string, string][] = [
  ['German', 'Der Hafen ist nicht offen.', 'Der Hafen ist offen.'],
  ['German', 'Es gibt keine Brücke.', 'Es gibt eine Brücke.'],
  ['French', "Le port n'est pas ouvert.", 'Le port est ouvert.'],
  ['French', "Il n'y a aucun pont.", 'Il y a un pont.'],
  ['Spanish', 'El puerto no está abierto.', 'El puerto está abierto.'],
  ['Spanish', 'Nunca se abrió el puerto.', 'Se abrió el puerto.'],
  ['Portuguese', 'O porto não está aberto.', 'O porto está aberto.'],
  ['Portuguese', 'Não há nenhuma ponte.', 'Há uma ponte.'],
  ['Japanese', '港は開いていません。', '港は開いています。'],
  ['Japanese', '橋はなかった。', '橋があった。'],
  ['Chinese', '港口没有开放。', '港口已经开放。'],
  ['Chinese', '这座桥不再使用。', '这座桥正在使用。'],
  ['Arabic', 'الميناء ليس مفتوحا في الشتاء.', 'الميناء مفتوح في الشتاء.'],
  ['Arabic', 'لم يتم بناء الجسر.', 'تم بناء الجسر.'],
]

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

t.test('numbers and dates', (t) => {
  for (const [language, claimed, given] of agreeing) {
    const [one] = quantitiesOf(claimed)
    t.ok(one && quantitiesOf(given).some((other) => agreeAcrossUnits(one, other)), `${language}: ${claimed} | ${given}`)
  }
  for (const [claim, text] of [
    ['Der Hafen wurde am 5. März 1874 eröffnet.', 'Der Hafen wurde am 7. März 1874 eröffnet.'],
    ['Le port a quatre jetées de pierre.', 'Le port a six jetées de pierre.'],
    ['El puerto tiene cinco muelles de piedra.', 'El puerto tiene nueve muelles de piedra.'],
    ['O porto foi aberto em 1874 pelo conde.', 'O porto foi aberto em 1901 pelo conde.'],
    ['港は1874年に開かれた。', '港は1901年に開かれた。'],
    ['港口于1874年开放。', '港口于1901年开放。'],
    ['تم افتتاح الميناء في عام 1874.', 'تم افتتاح الميناء في عام 1901.'],
  ] as const)
    t.match(flagsOf(claim, text), /mismatch/, claim)
  t.end()
})

t.test('negations', (t) => {
  for (const [language, denial, statement] of negated) {
    t.ok(isNegation(denial), `${language}: ${denial}`)
    t.notOk(isNegation(statement), `${language}: ${statement}`)
    t.match(flagsOf(statement, denial), /negation_mismatch/, `${language}: ${denial}`)
  }
  t.end()
})

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

function flagsOf(claim: string, text: string): string {
  const evidence = [{ start: 0, end: text.length, stance: 'supports' as const }]
  return checkEvidence(claim, text, linesOf(text), { verdict: 'supports', basis: 'stated', evidence }).flags.join(' ')
}
