// Phrases of pages that are not the requested page, and phrases that accompany them, in the most common languages of pages.
// Compared with lower-cased lines.

export type Family = 'challenge' | 'script' | 'missing' | 'login'

interface Phrases {
  /** Found anywhere in a line. Without groups that capture: lines are split by it. */
  phrases: RegExp
  /** A whole line, on a page of few lines. */
  alone?: RegExp
  /** A line with this phrase asks to log in for one action, such as a comment; the page itself is open. */
  aside?: RegExp
  /** Further lines of such a page without content, such as the fields of a form and the prices of an offer. */
  besides?: RegExp
}

const anyOf = (...parts: string[]): RegExp => new RegExp(parts.join('|'), 'u')

export const PHRASES: Record<Family, Phrases> = {
  challenge: {
    phrases: anyOf(
      'checking (?:if the site connection is secure|your browser)',
      "verif(?:y|ying) (?:that )?(?:you are|you’re|you're) (?:a |not a )?(?:human|robot|bot)",
      'are you a (?:robot|human)\\?',
      "i(?:’|')?a?m not a robot",
      'complete the (?:security check|captcha|challenge)',
      'solve the captcha',
      'enable javascript and cookies to continue',
      'attention required! \\| cloudflare',
      'performing security verification',
      'review the security of your connection',
      'ddos protection by',
      'unusual traffic from your',
      'believe you are using automation',
      'pardon our interruption',
      'press (?:&|and) hold to confirm',
      'incapsula incident',
      'robot challenge screen',
      '(?:sorry, )?you have been blocked',
      'security check to access',
      'using a security service to protect itself',
      'you can email the site owner to let them know you were blocked',
      'made us think you were a bot',
      'bestätigen sie, dass sie (?:ein mensch|kein roboter)',
      'ich bin kein roboter',
      'ihr browser wird überprüft',
      'vérifi(?:ez|er|ons) que vous êtes (?:bien )?(?:un )?humain',
      'je ne suis pas un robot',
      'verifi(?:ca|que|camos) que (?:eres|usted es|es) (?:un )?humano',
      'no soy un robot',
      'verifi(?:que|car) (?:se|que) (?:você é|voce e) humano',
      'não sou um robô',
      'non sono un robot',
      'verifica di essere (?:un )?uman',
      'ik ben geen robot',
      'nie jestem robotem',
      'ben robot değilim',
      'insan olduğunuzu doğrula',
      'подтвердите, что вы (?:не робот|человек)',
      'я не робот',
      'проверка вашего браузера',
      '请完成(?:安全)?验证',
      '人机验证',
      '正在检查您的浏览器',
      '(?:确认|验证)您(?:是|不是)(?:真人|机器人)',
      '私はロボットではありません',
      '人間であることを確認',
      'お使いのブラウザを確認',
      '로봇이 아닙니다',
      '사람인지 확인',
      'أنا لست برنامج روبوت',
      'تحقق من أنك (?:إنسان|بشري)',
    ),
    alone:
      /^(?:just a moment|one more step|human verification|einen moment|un instant|un momento|только одну секунду|请稍候|しばらくお待ちください|잠시만 기다리(?:십시오|세요))[.…!]*$/u,
  },
  script: {
    phrases: anyOf(
      '(?:enable|activate|turn on|allow|requires?|needs?|without) (?:java ?script)',
      'java ?script (?:is |must be |has been |to be )?(?:required|disabled|enabled|turned off|not enabled)',
      'javascript(?: ist)? (?:deaktiviert|erforderlich|aktiviert)',
      '(?:aktivieren sie|bitte) (?:bitte )?javascript',
      'activ(?:ez|er) (?:le )?javascript',
      '(?:habilit|activ)(?:a|e|ar) (?:el )?javascript',
      '(?:ative|habilite|ativar|habilitar) o javascript',
      '(?:abilit|attiv)(?:a|are|ate|i) javascript',
      'schakel javascript in',
      'włącz (?:obsługę )?javascript',
      'включите (?:поддержку )?javascript',
      "javascript(?:’i|'i)? etkinleştir",
      '(?:启用|开启|打开|啟用) ?javascript',
      'javascript ?を(?:有効|オン)',
      '(?:javascript|자바스크립트)(?:를|을)? ?(?:활성화|사용)',
    ),
    alone:
      /^(?:loading|please wait|wird geladen|laden|chargement(?: en cours)?|cargando|carregando|caricamento|ładowanie|yükleniyor|загрузка|加载中|載入中|読み込み中(?:です)?|로딩 ?중(?:입니다)?|جار[يٍ]? التحميل)[\s.…。!]*$/u,
  },
  missing: {
    phrases: anyOf(
      '^(?:error |http )?404(?:$|[\\s:–—-]{1,3}(?:error|page|file|not|oops|seite|página|pagina|page|страниц|页面|ページ).{0,60}$)',
      '\\b(?:page|file|article|document) (?:was |could |can )?(?:not be |not |cannot be )(?:found|located)',
      '^not found$',
      "(?:this|that|the) page (?:does not|doesn’t|doesn't|no longer) exists?",
      "the page you (?:are|were|’re|'re) looking for",
      'the (?:page|url) you (?:requested|have requested|entered)',
      "(?:can’t|can't|cannot|couldn’t|couldn't|could not) find (?:the|that|this) page",
      'seite (?:wurde |konnte )?nicht gefunden',
      'diese seite existiert (?:leider )?nicht',
      'page (?:introuvable|non trouvée|not found)',
      "cette page n(?:’|')existe (?:pas|plus)",
      'página (?:no encontrada|não encontrada|inexistente)',
      '(?:esta página|la página que buscas) no existe',
      'esta página não existe',
      'pagina (?:non trovata|niet gevonden|inesistente)',
      'sidan (?:kunde inte hittas|hittades inte|finns inte)',
      'siden (?:blev ikke fundet|finnes ikke|findes ikke)',
      'sivua ei löyt',
      'nie znaleziono strony|strona nie (?:istnieje|została znaleziona)',
      'stránka (?:nebyla nalezena|nenalezena|neexistuje)',
      'sayfa bulunamadı',
      'страница не (?:найдена|существует)|такой страницы (?:нет|не существует)',
      'сторінку не знайдено',
      'η σελίδα δεν (?:βρέθηκε|υπάρχει)',
      'الصفحة (?:غير موجودة|المطلوبة غير)',
      '(?:הדף|העמוד) (?:לא נמצא|אינו קיים)',
      'पृष्ठ नहीं मिला|पेज नहीं मिला',
      '(?:页面|網頁|頁面)(?:不存在|未找到|找不到)|找不到(?:该|此|您要的)?(?:页面|網頁|頁面)',
      'ページ(?:が|は)見つかりません|お探しのページ',
      '페이지를 찾을 수 없',
      'ไม่พบหน้า',
    ),
  },
  login: {
    phrases: anyOf(
      '(?:log|sign)[ -]?in (?:or (?:sign|register|create)[^.]{0,30} )?to (?:continue|view|see|read|access|proceed|your account)',
      '(?:must|need to|have to) (?:be (?:logged|signed) in|(?:log|sign) in)',
      'please (?:log|sign) in',
      '(?:log-?in|sign-?in|authentication|registration) (?:is )?required',
      '(?:for|to) (?:registered )?(?:members|subscribers) only|subscribers? only',
      '(?:subscribe|register|create (?:a free |an )?account) to (?:continue|keep|read|view|unlock)',
      '(?:melden sie sich|bitte melden sie sich|loggen sie sich) (?:bitte )?(?:an|ein)',
      'anmeldung erforderlich|nur für (?:abonnenten|mitglieder|angemeldete)|um weiterzulesen',
      '(?:connectez|identifiez)-vous (?:pour|afin)|réservé aux (?:abonnés|membres)',
      'inici(?:a|e|ar) sesión para|(?:debes|debe|tienes que) iniciar sesión|(?:solo|exclusivo) para (?:suscriptores|socios)',
      '(?:faça|fazer) (?:o )?login para|(?:exclusivo|apenas) para (?:assinantes|membros)',
      "accedi per|effettua (?:il login|l(?:’|')accesso)|riservat[oa] agli (?:abbonati|utenti)",
      'log in om|je moet ingelogd zijn',
      'zaloguj się, aby|musisz być zalogowan',
      'logga in för att|log ind for at|logg inn for å',
      'войдите, чтобы|необходимо (?:войти|авторизоваться)|только для (?:подписчиков|зарегистрированных)',
      '(?:devam etmek|görmek) için giriş|giriş yapmalısınız',
      'سجل(?:ي)? الدخول (?:ل|من أجل)|يجب (?:عليك )?تسجيل الدخول',
      'יש להתחבר|התחבר(?:ו)? כדי',
      '请先?登录|登录后(?:才能|即可|可)?(?:查看|继续|阅读)|請先登入',
      'ログイン(?:してください|が必要)|会員限定',
      '로그인(?:이 필요|해 주세요|하세요| 후)',
    ),
    aside: anyOf(
      '^(?:leave a |post a |add a |write a )?(?:comments?|reviews?|replies|reply|discussion|your review)\\b.{0,30}$',
      '\\bto (?:leave|post|write|add|reply|comment|discuss|join (?:the|this) (?:discussion|conversation)|review|vote|rate|follow|edit|star|like|share|upload|contribute|participate|report|bookmark|answer|(?:change|manage) notification)',
      'kommentar|kommentier|bewertung|zu bewerten|commentaire|commenter|(?:un|votre) avis|coment[aá]|reseña|opinar|avaliação',
      'avaliar|commentare|un commento|recension|reactie|te reageren|komentarz|kommentoid|yorum|комментар|отзыв|коментар',
      'تعليق|תגובה|להגיב|टिप्पणी|评论|評論|留言|コメント|レビュー|댓글|리뷰',
    ),
    besides: anyOf(
      'password|pass ?code|user ?name|e-?mail|forgot|remember me|create an account|new here|already a (?:member|subscriber)',
      'subscri(?:be|ption|ber)|unlimited access|cancel any ?time|free trial|per (?:week|month|year)\\b|a (?:week|month) for|billed',
      'passwort|kennwort|benutzername|abonn|jederzeit kündbar|im monat|probemonat|mot de passe|identifiant|par mois',
      'contraseña|suscri|al mes|senha|assin(?:e|ante|atura)|por mês|abbon|al mese|wachtwoord|lösenord|adgangskode|hasło|şifre',
      'пароль|логин|подпис(?:ка|ат|чик)|в месяц|كلمة المرور|סיסמה|पासवर्ड|密码|密碼|手机号|验证码|パスワード|月額|비밀번호|월 구독',
    ),
  },
}

/** Notices that any page may carry: of cookies and of rights. */
export const FURNITURE = anyOf(
  '(?:use|accept|verwend|nutz|utilis|utiliz|usiamo|gebruik|använd|bruger|bruker|używa|kullan|использ|使用|利用|사용).{0,60}(?:cookie|クッキー|куки|쿠키)',
  '(?:cookie|クッキー|куки|쿠키).{0,40}(?:policy|settings|preferences|notice|page|richtlinie|einstellung|politique|política|akzept|accept|политик|设置|設定|설정)',
  '©|\\(c\\) ?\\d{4}|copyright \\d{4}|rights reserved|rechte vorbehalten|droits réservés|derechos reservados|direitos reservados|diritti riservati|права защищены|版权所有',
)
