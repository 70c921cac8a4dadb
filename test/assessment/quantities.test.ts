import t from 'tap'
import { agree, agreeingShare, disagreement } from '../../workers/assessment/agreement.ts'
import { quantitiesOf } from '../../workers/assessment/quantities.ts'
import type { Quantity } from '../../workers/assessment/quantity.ts'

function shown(quantity: Quantity): string {
  if (quantity.kind === 'number') return `${quantity.value}${quantity.unit ? ` ${quantity.unit.name}` : ''}`
  return [quantity.year ?? '?', quantity.month ?? '?', quantity.day ?? '?'].join('-')
}

t.test('numbers are read with their scale, sign and unit', (t) => {
  for (const [text, ...expected] of [
    ['It cost $3.5 million, 12% more.', '3500000 dollar', '12 percent'],
    ['US$5m, £3bn, EUR 5 and 1.234,50 €', '5000000 dollar', '3000000000 pound', '5 euro', '1234.5 euro'],
    ['−5 °C, 40°F and 5-10 km', '-5 celsius', '40 fahrenheit', '5', '10 kilometre'],
    ['twenty-five people, two hundred, a million', '25', '200', '1000000'],
    ['人口は1億2000万人、5000円、3万', '120000000', '5000 yen', '30000'],
    ['5 млн рублей и 20 км', '5000000 rouble', '20 kilometre'],
    ['5 करोड़', '50000000'],
    ['Kessa-4b and COVID-19'],
    ['no numbers'],
  ] as const)
    t.same(quantitiesOf(text).map(shown), expected, text)
  t.end()
})

t.test('numbers in words, fractions and dozens have their value', (t) => {
  for (const [text, ...expected] of [
    ['thirty-one minutes and twenty one people', '31 minute', '21'],
    ['the forty-fourth president, the fifty-first state', '44', '51'],
    ['two hundred and fifty people', '250'],
    ['two thousand five hundred and six', '2506'],
    ['two hundred and fifty thousand dollars', '250000 dollar'],
    ['between two hundred and three hundred', '200', '300'],
    ['two thousand two thousand', '2000', '2000'],
    ['two hundred, fifty', '200', '50'],
    ['one thousand nine hundred and eighty-four', '1984'],
    ['half a million, a quarter of a million', '500000', '250000'],
    ['three and a half million', '3500000'],
    ['one and a half years, two and a half weeks', '1.5 year', '2.5 week'],
    ['an hour and a half, a year and a half', '1.5 hour', '1.5 year'],
    ['half an hour, a half-hour show', '0.5 hour', '0.5 hour'],
    ['a quarter of a century', '0.25 century'],
    ['a dozen, two dozen, half a dozen', '12', '24', '6'],
    ['2½ miles, 3 3/4 hours', '2.5 mile', '3.75 hour'],
    ['the second half of a match, half of it, a half'],
    ['on 5 1/2/2010', '5', '2010-2-1'],
  ] as const)
    t.same(quantitiesOf(text).map(shown), expected, text)
  t.end()
})

t.test('dates are read with the precision they have', (t) => {
  for (const [text, ...expected] of [
    ['on May 5, 2019', '2019-5-5'],
    ['5 May 2019 and 5th of May', '2019-5-5', '?-5-5'],
    ['2019-05-05, 2019/5/5, 05.05.2019', '2019-5-5', '2019-5-5', '2019-5-5'],
    ['May 2020. In 2021', '2020-5-?', '2021-?-?'],
    ['5 de marzo de 2019', '2019-3-5'],
    ['am 5. März 2019', '2019-3-5'],
    ['le 1er août 1998', '1998-8-1'],
    ['3 мая 2021 г.', '2021-5-3'],
    ['2019年3月5日に、2020年、3月5日', '2019-3-5', '2020-?-?', '?-3-5'],
    ['2019년 5월', '2019-5-?'],
    ['في 5 مايو 2020', '2020-5-5'],
    ['ב־5 במאי 2020 ו־1999', '5', '2020-?-?', '1999-?-?'],
  ] as const)
    t.same(quantitiesOf(text).map(shown), expected, text)
  t.end()
})

t.test('a century is a span of years', (t) => {
  for (const [text, ...expected] of [
    ['the 19th century', '1800 to 1899'],
    ['the early twentieth century', '1900 to 1999'],
    ['a 21st-century and twenty-first-century building', '2000 to 2099', '2000 to 2099'],
    ['the 18th and 19th centuries', '1700 to 1799', '1800 to 1899'],
    ['in the fourteenth or fifteenth century', '1300 to 1399', '1400 to 1499'],
    ['im 19. Jahrhundert, au 19e siècle', '1800 to 1899', '1800 to 1899'],
  ] as const)
    t.same(
      quantitiesOf(text).map((date) => date.kind === 'date' && `${date.year} to ${date.until}`),
      expected,
      text,
    )
  for (const text of ['19 centuries', 'the 12th century BC', 'the 5th century', 'the 12th and 13th place'])
    t.ok(
      quantitiesOf(text).every(({ kind }) => kind === 'number'),
      text,
    )
  for (const [a, b] of [
    ['the 19th century', '1854'],
    ['the 19th century', '5 May 1854'],
    ['the late nineteenth century', '1887'],
    ['the 20th century', 'the 1950s'],
    ['the 20th century', 'the twentieth century'],
  ] as const)
    t.ok(agree(one(a), one(b)) && agree(one(b), one(a)), `${a} | ${b}`)
  for (const [a, b] of [
    ['the 19th century', '1954'],
    ['the 19th century', 'the 18th century'],
  ] as const)
    t.notOk(agree(one(a), one(b)), `${a} | ${b}`)
  t.end()
})

t.test('a month or a day of any year is a bound', (t) => {
  for (const [a, b] of [
    ['before June', '20 March 1963'],
    ['before June', 'March 20'],
    ['after June', '5 July 2010'],
    ['before 5 June', '3 June'],
    ['since April', 'in May'],
    ['until July', 'in May 2010'],
  ] as const)
    t.ok(agree(one(a), one(b)), `${a} | ${b}`)
  for (const [a, b] of [
    ['before June', '20 August 1963'],
    ['after June', 'May 2010'],
    ['before 5 June', '7 June'],
  ] as const)
    t.notOk(agree(one(a), one(b)), `${a} | ${b}`)
  t.end()
})

t.test('a month alone is read behind the words that stand before dates', (t) => {
  for (const text of ['from May to July', 'until July', 'every July', 'before July'])
    t.equal(quantitiesOf(text).at(-1)?.kind === 'date' && shown(quantitiesOf(text).at(-1)!), '?-7-?', text)
  t.same(quantitiesOf('it may be closed, and they march to the pier'), [])
  t.end()
})

function one(text: string): Quantity {
  return quantitiesOf(text)[0]!
}

t.test('quantities agree if they agree in what both state', (t) => {
  for (const [a, b] of [
    ['1,000', '1000'],
    ['8.3 million', '8,336,817'],
    ['12 %', '12 percent'],
    ['12 people', 'twelve'],
    ['5 km', '5 kilometres'],
    ['2019', 'May 2019'],
    ['5 May', '5 May 2019'],
    ['5/4/2019', '4 May 2019'],
    ['5/4/2019', '5 April 2019'],
    ['30', '30 km'],
    ['2,019 people', '2019 people'],
    ['80 %', '80 and 90 %'],
  ] as const)
    t.ok(agree(one(a), one(b)) && agree(one(b), one(a)), `${a} | ${b}`)
  for (const [a, b] of [
    ['8.3 million', '8.4 million'],
    ['12', '13'],
    ['5 km', '5 miles'],
    ['$5', '€5'],
    ['2019', '2020'],
    ['5 May', '6 May'],
    ['5 May', '2019'],
    ['−5 °C', '5 °C'],
    ['2019', '2020 people'],
  ] as const)
    t.notOk(agree(one(a), one(b)) || agree(one(b), one(a)), `${a} | ${b}`)
  t.end()
})

t.test('quantities disagree only if they are of the same kind', (t) => {
  for (const [claimed, given, expected] of [
    ['12 %', '13 % of 14', 'number'],
    ['12 %', '12 people', null],
    ['5 km', '5 miles', 'unit'],
    ['5 km', '6 miles', 'number'],
    ['5 km', '5 kg', null],
    ['May 2019', 'May 2020', 'date'],
    ['May 2019', '14 people', null],
    ['7', '7 or 8', null],
  ] as const)
    t.equal(disagreement(one(claimed), quantitiesOf(given)), expected, `${claimed} | ${given}`)
  t.equal(agreeingShare(quantitiesOf('5 km in 2019'), quantitiesOf('5 km in 2020')), 0.5)
  t.equal(agreeingShare([], quantitiesOf('5')), 0)
  t.end()
})

t.test('a long list of ordinals is no deep one', async (t) => {
  for (const unit of ['18th and ', 'eighteenth and '])
    t.doesNotThrow(() => quantitiesOf(`The ${unit.repeat(20_000)}19th centuries`), unit)
})
