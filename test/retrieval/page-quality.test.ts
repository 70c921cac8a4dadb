import t from 'tap'
import { judgePage } from '../../workers/retrieval/page-quality.ts'
import { pageFlagMeanings } from '../../workers/retrieval/risk-flags.ts'

const page = (text: string, bytes = 2000) => ({ source: { normalized_text: text, decoded_bytes: bytes } })
const ARTICLE = `The harbour of Kelby was opened in 1874 by the county engineer and has three piers, a lighthouse and a slipway.
It was built for the herring trade, which moved away after the railway had come to the towns further south in 1891.
Today the ferry to Orsay sails on Mondays and Thursdays, and the old fish market houses a small museum of the coast.
Dogs are welcome on the piers in winter, and the café at the end of the western pier is open from April to October.`

const refused: [code: string, texts: string[]][] = [
  [
    'source_challenge',
    [
      'Just a moment...',
      'site.test\n\nVerifying you are human. This may take a few seconds.\n\nsite.test needs to review the security of your connection before proceeding.\n\nPerformance & security by a network',
      'Checking your browser before accessing site.test.\nThis process is automatic.',
      'Pardon Our Interruption\nAs you were browsing something about your browser made us think you were a bot.',
      'Access denied\nSorry, you have been blocked\nYou are unable to access site.test',
      'Bitte bestätigen Sie, dass Sie ein Mensch sind.',
      'Подтвердите, что вы не робот',
      '请完成安全验证\n为了您的账号安全',
      '私はロボットではありません',
    ],
  ],
  [
    'source_needs_script',
    [
      'Loading...',
      'You need to enable JavaScript to run this app.',
      'Please turn on JavaScript in your browser and reload the page.',
      'Bitte aktivieren Sie JavaScript, um diese Seite zu nutzen.',
      'Для работы сайта включите JavaScript',
      '请启用JavaScript后刷新页面',
      'JavaScriptを有効にしてください',
    ],
  ],
  [
    'source_not_found',
    [
      '404\nPage not found\nHome\nContact',
      'Home\nNews\nAbout\nOops! The page you are looking for does not exist.\nSearch\nImprint',
      'Seite nicht gefunden\nZur Startseite',
      'Cette page n’existe plus.\nAccueil',
      'Página no encontrada',
      'Страница не найдена\nНа главную',
      '页面不存在',
      'お探しのページは見つかりませんでした',
      'الصفحة غير موجودة',
    ],
  ],
  [
    'source_login_required',
    [
      'Sign in to continue\nEmail\nPassword\nForgot password?',
      'You must be logged in to view this page.',
      'Bitte melden Sie sich an.\nBenutzername\nKennwort',
      'Connectez-vous pour lire la suite',
      'Войдите, чтобы продолжить',
      '请先登录',
      'ログインが必要です',
    ],
  ],
]

t.test('error pages, bot checks and empty shells are refused, each with its own code', (t) => {
  for (const [code, texts] of refused)
    for (const text of texts)
      t.throws(() => judgePage('The harbour is old.', page(text)), { name: 'AppError', code }, text)
  t.end()
})

t.test('a page with content is assessed, with a flag where it has such phrases too', (t) => {
  t.same(judgePage('x', page(ARTICLE)), [])
  t.same(judgePage('x', page(`${ARTICLE}\nPlease log in to leave a comment.`)), [])
  t.same(judgePage('x', page(`${ARTICLE}\nSubscribe to continue reading.`)), ['login_wall_suspected'])
  t.same(judgePage('x', page(`${ARTICLE}\nThis page requires JavaScript for the map.`)), ['script_shell_suspected'])
  t.same(judgePage('x', page(`${ARTICLE}\n404 Page not found`)), ['soft_404_suspected'])
  const long = `${ARTICLE}\n`.repeat(20)
  t.same(judgePage('x', page(`How sites say "Verify you are human"\n${long}Page not found`)), [])
  t.end()
})

t.test('little text alone is no reason to refuse', (t) => {
  t.same(judgePage('x', page('The shop is open.')), [])
  t.same(judgePage('x', page('The shop is open.', 90_000)), ['script_shell_suspected'])
  t.same(judgePage('x', page('OK')), [])
  t.end()
})

t.test('a claim about such a phrase goes to the assessor', (t) => {
  t.same(judgePage('The site answers "Page not found".', page('404\nPage not found')), ['soft_404_suspected'])
  t.same(judgePage('One has to sign in to continue.', page('Sign in to continue')), ['login_wall_suspected'])
  t.end()
})

t.test('flags have names that the interface allows', (t) => {
  for (const flag of Object.keys(pageFlagMeanings)) t.match(flag, /^[a-z][a-z0-9_]*$/)
  t.end()
})
