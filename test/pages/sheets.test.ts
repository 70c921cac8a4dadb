// The sheets on which people look at the pictures of all pages: every part of every picture is on them once, and nothing covers another.
import t from 'tap'
import { cut, type Picture, PRINT, ROWS, SHEET, VARIANTS } from '../../bench/pictures/camera.ts'

const [wide, narrow] = VARIANTS
const picture = (variant = PRINT, height = 0): Picture => ({ variant, height, overflow: 0, pieces: [] })

for (const heights of [
  [900, 740],
  [900, 5000],
  [2000, 1900],
  [9000, 30_000],
  [1700, 2100],
] as const)
  t.test(`pages of ${heights.join(' and ')} pixels`, async (t) => {
    const pictures = [picture(wide, heights[0]), picture(narrow, heights[1])]
    const sheets = cut(pictures)
    for (const one of pictures) {
      const parts = sheets.flat().filter((part) => part.picture === one)
      let next = 0
      for (const { from, length } of parts) {
        t.equal(from, next)
        next += length
      }
      t.equal(next, one.height)
    }
    for (const parts of sheets)
      for (const [n, one] of parts.entries()) {
        t.ok(one.x + one.picture.variant.width <= SHEET && one.y + one.length <= ROWS, 'on the sheet')
        for (const other of parts.slice(n + 1)) {
          const isBeside =
            one.x + one.picture.variant.width <= other.x || other.x + other.picture.variant.width <= one.x
          t.ok(isBeside || one.y + one.length <= other.y, 'beside or below')
        }
      }
  })

t.test('a narrow page goes on below a wide one that has ended, on the same sheet', async (t) => {
  t.equal(cut([picture(wide, 900), picture(narrow, 4000)]).length, 1)
})

t.test('a printed page is in two columns', async (t) => {
  t.same(
    cut([picture(PRINT, ROWS + 100)]).map((parts) => parts.length),
    [2],
  )
})
