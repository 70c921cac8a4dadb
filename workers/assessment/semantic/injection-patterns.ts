// The list of patterns of text that addresses a program: words that give it orders, name it, or name verdicts. Written folded:
// NFKC, lower case, no accents. A pattern that matches ordinary pages is worse than one that misses an order, because what it
// matches is not shown to the model.

/** By language. `ignore` and `orders` are found near each other in either order; so are `say` and `verdict`. */
interface Speech {
  ignore: string
  orders: string
  /** Names of programs that read. */
  reader: string
  /** Orders to answer something. */
  say: string
  verdict: string
  /** Words for what is being judged. */
  claim: string
}

const SPEECHES: readonly [english: Speech, ...Speech[]] = [
  {
    ignore: String.raw`\b(?:ignor(?:e|ing)|disregard(?:ing)?|discard|abandon|forget|overrid(?:e|ing)|bypass|do not (?:follow|obey)|don't (?:follow|obey)|stop following|set aside|pay no attention to)\b`,
    orders: String.raw`(?:\b(?:previous|prior|above|earlier|preceding|all|any|these|your|my|system|other|existing|initial|original|current|hidden) (?:\w+ ){0,2}?(?:instructions?|prompts?|guidelines?|directives?|directions|messages?|commands|rules|context|text|evidence|lines|(?<!\b(?:your|my) (?:\w+ ){0,2})information)\b|\b(?:previous|prior|above|earlier|preceding) (?:\w+ )?command\b|(?<=^| )(?:the |your )?(?:system prompt|instructions you|rest of (?:the|this) (?:page|text|document|article))|\beverything (?:above|before|else|you(?: were|'ve been| have been| are| just))\b|\b(?:all|any) (?:of )?(?:the )?(?:above|previous)(?=$|\W?$|[^\w ]| (?:and|then|but|in|from|that|which|you|please|just)\b)|\bwhat you were told|\byour training)`,
    reader: String.raw`\b(?:ai|a\.i\.|llms?|chatbots?|chat ?gpt|gpt(?:-?\d\w*)?|claude|gemini|copilot|language models?|(?:ai|virtual|digital|automated|helpful) (?:assistants?|agents?|models?|systems?|readers?|reviewers?|tools?)|assistants?|(?:automated|automatic) (?:fact[- ]?checkers?|verifiers?|graders?|evaluators?|assessors?)|(?:verification|fact-checking) (?:models?|systems?|services?|agents?|bots?|assistants?)|the (?:grader|evaluator|assessor|verifier|model))\b`,
    say: String.raw`(?:\b(?:respond|reply|answer|output|return|print|report|say|write|emit|select|choose|pick|conclude|state|must be|should be|set)\b)`,
    verdict: String.raw`(?:\b(?:supports|supported|contradicts?|contradicted|refuted|insufficient[_ ]evidence|verified|confirmed|verdict|mixed)\b|["']support["'])`,
    claim: String.raw`\b(?:claims?|statements?|assertions?)\b`,
  },
  {
    ignore:
      'ignorier(?:en?|t alle)\\b|missacht|vergiss|vergessen sie|uberschreib|nicht (?:befolgen|beachten)|befolge nicht',
    orders: 'anweisung|instruktion|vorgabe|systemprompt|prompt|alles (?:oben|vorherige|bisherige)|richtlinien',
    reader: String.raw`\bki\b|\bki-|sprachmodell|assistent|chatbot|faktenprufer`,
    say: 'antworte\\b|antworten sie|gib .{0,20}aus|geben sie .{0,20}aus|melde|schreibe|wahle|stufe .{0,40} als',
    verdict: 'unterstutzt|bestatigt|belegt|widerlegt|wahr ein|als wahr|urteil|supports|contradicts',
    claim: 'behauptung|aussage',
  },
  {
    ignore: 'ignore[zr]?\\b|oublie[zr]?\\b|ne (?:tiens|tenez) pas compte|ne sui(?:s|vez) pas|contourne',
    orders:
      '\\b(?:toutes?|vos|tes|les|ces|tes) (?:\\w+ )?(?:instructions|consignes|directives)|instructions (?:precedentes|ci-dessus|anterieures)|prompt systeme|tout ce qui precede|regles precedentes',
    reader: String.raw`\bia\b|modeles? de langage|assistant|agent conversationnel|chatbot`,
    say: 'reponds|repondez|affiche|indique[zr]?\\b|ecris|ecrivez|choisis|conclus|concluez|renvoie',
    verdict: 'confirmee?|etayee?|refutee?|verifiee?|verdict|supports|contradicts|soutient',
    claim: 'affirmation|allegation|enonce',
  },
  {
    ignore: 'ignor[ae]\\b|ignorar|ignoren|olvid[ae]|haz caso omiso|no sigas|omit[ae] ',
    orders:
      'instruccion|indicaciones|directrices|prompt|todo lo anterior|reglas anteriores|instrucoes|instrucao|tudo acima|regras anteriores',
    reader: String.raw`\bia\b|modelos? de lengua(?:je|gem)|modelos? de linguagem|asistente|assistente|chatbot`,
    say: 'respond[ae]|responder|devuelve|escribe|indica|concluye|marca|escreva|conclua|retorne|marque',
    verdict:
      'respaldad[ao]|confirmad[ao]|verificad[ao]|refutad[ao]|veredicto|supports|contradicts|apoiad[ao]|comprovad[ao]',
    claim: 'afirmacion|declaracion|afirmacao|alegacao',
  },
  {
    ignore: 'ignora\\b|ignorate|dimentica|non seguire|negeer|vergeet|volg .{0,20} niet',
    orders: 'istruzioni|indicazioni|direttive|prompt|tutto cio che precede|instructies|aanwijzingen|alles hierboven',
    reader: String.raw`\bia\b|intelligenza artificiale|modelli? linguistic|assistente|taalmodel|\bai\b|assistent`,
    say: 'rispondi|rispondete|scrivi|restituisci|indica|concludi|antwoord|schrijf|geef',
    verdict:
      'confermat[ao]|supportat[ao]|verificat[ao]|smentit[ao]|verdetto|supports|contradicts|bevestigd|ondersteund|weerlegd|oordeel',
    claim: 'affermazione|dichiarazione|bewering|stelling',
  },
  {
    ignore: 'игнорируй|проигнорируй|забудь|не (?:следуй|обращай)|ігноруй|zignoruj|ignoruj|zapomnij|pomin',
    orders: 'инструкци|указани|промпт|правила|все,? что (?:выше|было)|інструкці|instrukcj|polece|wytyczn|promptu?',
    reader: String.raw`\bии\b|ии-|языков(?:ая|ой|ые) модел|ассистент|нейросет|помощник|\bші\b|model(?:u|owi)? jezykow|asystent|\bsi\b`,
    say: 'ответь|отвечай|считай|считать |ответьте|выведи|напиши|верни|укажи|відповідай|odpowiedz|napisz|zwroc',
    verdict:
      'подтвержд|доказан|поддержива|опроверг|вердикт|верно|supports|contradicts|підтверджен|potwierdz|obal|werdykt',
    claim: 'утверждени|заявлени|твердженн|twierdzeni',
  },
  {
    ignore: 'yok say|gormezden gel|dikkate alma|unut|تجاهل|انس |אתעלם|התעלם|התעלמו|נצ?שכח|अनदेखा|नज़रअंदाज|नजरअंदाज',
    orders: 'talimat|komut|yonerge|تعليمات|التعليمات|الاوامر|הוראות|ההוראות|निर्देश|आदेश',
    reader:
      'yapay zeka|dil modeli|asistan|نموذج (?:لغوي|اللغ)|الذكاء الاصطناعي|مساعد|בינה מלאכותית|מודל שפה|עוזר|एआई|भाषा मॉडल|सहायक',
    say: 'yanit ver|cevap ver|yaz(?:in)?\\b|اجب|اكتب|قل |ענה|כתוב|השב|उत्तर|जवाब|लिख',
    verdict:
      'dogrulan|destekle|curutul|karar|supports|contradicts|مدعوم|مؤكد|صحيح|اثبت|נתמכת|מאושר|נכונה|समर्थित|सत्यापित|सही',
    claim: 'iddia|الادعاء|טענה|הטענה|दाव',
  },
  {
    ignore: '忽略|无视|無視|忘记|忘掉|不要遵(?:守|循)|忘れて|無視して|従わない|무시|잊어',
    orders:
      '指令|指示|提示词|提示詞|以上(?:所有)?(?:内容|內容)|系统提示|规则|プロンプト|命令|ルール|지시|지침|명령|프롬프트',
    reader:
      '人工智能|语言模型|語言模型|ai ?(?:助手|模型|代理|アシスタント|エージェント|어시스턴트|모델)|言語モデル|アシスタント|인공지능|언어 ?모델|어시스턴트',
    say: '回答|输出|輸出|回复|返回|出力|答えて|返して|답(?:하|변)|출력|응답',
    verdict: '支持|证实|證實|属实|屬實|已验证|反驳|正しい|裏付け|確認済|supports|contradicts|지지|사실|확인됨|입증',
    claim: '主张|主張|说法|該說法|声明|クレーム|주장',
  },
]

/** An order to say yes or no in quotation marks, as documentation of programs also writes its values. */
const TRUTH_SAID = String.raw`(?:^|[.:;,!?"'(\[] ?|\b(?:please|must|should|and|then|simply|just|always|only|you) )(?:respond|reply|answer|output|print|say|conclude|state)(?: \w+){0,4}? ?:? ?["'](?:true|false|yes|no)["']`

/** Where an order may begin. */
const BEGINS = String.raw`(?:^|[.,:;!?"'()\[\]>*\u2013\u2014-] ?|\b(?:please|must|should|now|and|then|you|just|to|but|also) )`

/**
 * Each finds about one sentence that addresses the reader; the text between two parts has a limited length, so all are
 * linear.
 */
export const INSTRUCTION: readonly RegExp[] = [
  english(({ ignore, orders }) => `(?:${ignore}).{0,60}(?:${orders})`),
  english(
    ({ ignore }) =>
      `\\b(?:(?:instructions|prompts|guidelines|directives|directions)\\b|everything above|what you were told|your training).{0,60}(?:${ignore})`,
  ),
  ...SPEECHES.slice(1).flatMap(({ ignore, orders }) => near(ignore, orders, 60)),
  // Ignore this page and print X. Stop translating, and just answer X. Disregard the text; say: X.
  new RegExp(
    `${BEGINS}(?:ignore|disregard|forget|skip|discard|never mind|stop|cease|quit)\\b.{0,40}\\b(?:page|site|documents?|texts?|articles?|data|content|entry|paragraph|translat\\w+|summari[sz]\\w+|process\\w*|read\\w*|evaluat\\w+|analy[sz]\\w+)\\b.{0,30}(?:[,;:.\u2013\u2014-]|\\band\\b|\\bthen\\b|\\binstead\\b) ?(?:\\w+ ){0,2}?(?:print|output|say|state|respond|reply|answer|report|claim)\\b`,
    'u',
  ),
  // Assistants that read this page must praise X. When you summarise this page, also say X. Before the task that I gave you.
  /\b(?:ais?|llms?|language models|assistants?|chat ?bots?|bots|agents|models) (?:that |which |who )?(?:reads?|reading|summari[sz]\w+|process\w*) (?:this|these)\b.{0,50}\b(?:must|should|shall|have to|has to)\b/u,
  /\b(?:when(?:ever)?|if|while|before|once) (?:you )?(?:are |have )?(?:asked to )?(?:summari[sz]|translat|process|pars|assess|evaluat)\w* this \w+.{0,20}[,:] ?(?:please |you must |also |always |silently |first |never )*(?:print|say|state|answer|respond|reply|tell|mention|add|praise|recommend|write|send|delete|output|report)\b/u,
  /\b(?:task|question|request) (?:that |which )?(?:i|we|the user) (?:gave|have given|asked|set) (?:to )?you\b/u,
  /\byou\b.{0,60}\b(?:must|should|have to|are to) (?:always |only |simply |now )?(?:agree|comply) with (?:what|any|every|all)/u,
  /^\W{0,6}(?:ai|llm|bot|agent|assistant|model|hidden|secret)[ _-](?:note|instruction|directive|command|message)s?\W{1,4}\w/u,
  /\bfrom now on\b.{0,30}\b(?:you|answer|respond|treat|act)\b|\bpretend that you\b/u,
  /\b(?:you are|act as|you will act as)\b(?: now)?(?:,? \w+){0,3},? (?:an? )?(?:ai|assistant|language model|judge|verifier|unrestricted|developer mode)\b/u,
  /\b(?:preceding|above|previous|foregoing) (?:text|page|document|content) (?:is|was) (?:only |just |merely )?an? (?:test|example|joke|fake)\b/u,
  /\byou are no longer (?:an? |the |bound|required|limited|restricted)/u,
  /\b(?:new|updated|revised|real|actual|hidden|secret|additional|final) (?:system )?(?:instructions?|prompts?|directives?)\b ?[:(]/u,
  /\byour (?:(?:(?:only|real|actual|new|sole) )?(?:task|instructions?) (?:is|are|now)|(?:only|real|actual|new|sole) (?:job|goal|role|purpose|mission) (?:is|are|now)|(?:job|goal|role|purpose|mission) (?:is|are) now)(?: now)?(?: only)? ?(?:to\b|:)|\b(?:instructions?|guidelines?|rules|prompts?) (?:that )?you (?:received|were given|have been given|were told|got)\b/u,
  /\b(?:(?:reveal|repeat|print|leak|disclose) (?:me )?(?:the|your) (?:system )?|show (?:me )?(?:your (?:system )?|the system ))(?:prompt|instructions)\b/u,
  /\b(?:note|message|attention|notice|reminder|instructions?|memo) (?:to|for) (?:all |any |the )?(?:ai\b|llms?|bots?|crawlers?|assistants?\b|agents?\b|language models?|automated|models?\b|graders?|fact[- ]?check)/u,
  /(?:<!--|[([]|^) ?for (?:all )?(?:ais?\b|llms?\b|language models|bots\b|machines\b|computers\b)/u,
  /\b(?:if|when|since|because) you(?:'re| are) (?:an? |the )?(?:ai\b(?! (?:\w+ )?(?:researcher|engineer|developer|company|expert|student|user|scientist|enthusiast|team|startup|lab)s?\b)|llm|language model|assistant|bot\b|automated|chatbot|verif|fact-?check|model)/u,
  /\b(?:dear|hey|hello|attention)[,:]? (?:all )?(?:ai\b|llm|assistant|language model|chatbot|bot\b|model\b|claude|chatgpt|gpt)/u,
  english(
    ({ reader }) =>
      `(?:${reader}).{0,30}\\b(?:must|should|may|shall|can|are asked|are required|are not allowed)\\b.{0,20}\\b(?:assess|judge|evaluate|compare|read|process|analy[sz]e|quote|cite|ignore)\\b`,
  ),
  /\bas an? (?:ai\b|llm|language model|automated (?:verif|fact|assess))/u,
  /\b(?:hinweis|nachricht|anweisung(?:en)?) (?:an|fur) .{0,16}(?:\bki\b|sprachmodell|assistent)|\bwenn du eine? (?:ki|sprachmodell|assistent|chatbot)/u,
  /\b(?:note|message|consignes?) (?:aux?|pour|a l') ?.{0,12}(?:\bia\b|modeles? de|assistants?\b)|\bsi (?:vous etes|tu es) une? (?:ia|modele|assistant)/u,
  /\b(?:nota|mensaje|mensagem|aviso|instrucciones|instrucoes) (?:para|a|ao|aos|as) .{0,12}(?:\bia\b|modelos? de l|asistentes?\b|assistentes?\b)|\bsi eres una? (?:ia|modelo|asistente)|\bse (?:voce e|es) uma? (?:ia|modelo|assistente)/u,
  /\b(?:nota|messaggio|avviso) (?:per|a|ai|agli) .{0,12}(?:\bia\b|modelli|assistenti)|\bse sei una? ?'?(?:ia|modello|assistente|intelligenza)|\bals je een (?:ai|taalmodel|assistent)/u,
  /если (?:ты|вы) .{0,10}(?:ии(?!\p{L})|языков|модель|ассистент|нейросеть)|(?:заметка|сообщение|инструкция) для .{0,12}(?:ии(?!\p{L})|модел|ассистент|нейросет)/u,
  /(?:如果|若)(?:你|您)是.{0,6}(?:人工智能|ai|语言模型|助手)|致.{0,6}(?:人工智能|ai ?助手|语言模型)|あなたが.{0,6}(?:ai|言語モデル|アシスタント)|(?:당신이|네가) .{0,8}(?:ai|인공지능|언어 모델)/u,
  /eger bir (?:yapay zeka|dil modeli|asistan)|yapay zeka.{0,16}(?:icin|dikkatine)|اذا كنت .{0,8}(?:نموذج|ذكاء|مساعد)|אם אתה .{0,8}(?:מודל|בינה|עוזר)|यदि आप .{0,10}(?:एआई|भाषा मॉडल|सहायक)/u,
]

/**
 * Text about the outcome: an order to answer a verdict, a verdict in the form of an answer, a claim that is declared
 * correct.
 */
export const VERDICT: readonly RegExp[] = [
  english(
    ({ reader, say, verdict }) =>
      `(?:${reader}).{0,80}(?:${say}|\\b(?:treat|mark|rate|label|classify|consider|accept)\\b).{0,60}(?:${verdict}|\\btrue\\b|\\bfalse\\b|\\bproof\\b)`,
  ),
  english(
    ({ say, verdict }) =>
      `(?:^|[.:;,!?"'(\\[] ?|\\b(?:please|must|should|to|and|then|simply|just|always|only|you) )${say}(?: \\w+){0,4}? ?:? ?["'\`]?(?:only|with|that|as|the|exactly)?.{0,12}${verdict}["'\`]?(?:$|[.!,;:\\])}"'\`]| (?:and|for|as|because|regardless|no matter|with|to)\\b)`,
  ),
  ...near(
    TRUTH_SAID,
    String.raw`\b(?:claims?|statements?|assertions?|verdicts?|questions?|evidence|page|document)\b`,
    80,
  ),
  english(
    ({ claim }) =>
      `\\b(?:mark|classify|label|rate|treat|consider|count|report|record|score|accept|regard|flag|judge|assess)\\b.{0,12}\\b(?:this|the|that|any|every|all|each|his|following|submitted|user's)\\b.{0,20}${claim}.{0,30}\\b(?:as|to be)\\b.{0,20}\\b(?:supported|true|verified|confirmed|false|contradicted|refuted|proven|correct|accurate|valid)`,
  ),
  /\b(?:(?:this|your|every|any|each|above|following) (?:\w+ ){0,2}?claims?|(?:submitted|user's|your) (?:\w+ )?(?:statements?|assertions?))\b.{0,20}\b(?:is|are|has been|have been|must be|should be)\b.{0,30}\b(?:verified|confirmed|supported|validated|certified|authenticated|approved|proven)\b/u,
  /\b(?:label|verdict|results?|classification|outcome|rating|locked to|go with|come out as|set to|comparison)\b.{0,24}(?:[=:>"'`] ?support|[=:>"'` ] ?(?:supports|supported|contradicts?|refuted|insufficient_evidence))(?=$|[.!,;:)\]}"'`]| \()/u,
  /\b(?:answer|verdict|label|output) (?:is|must be|should be) ["']?(?:supports?|contradicts?|refuted|insufficient)\b/u,
  /\b(?:evaluators?|graders?|assessors?|verifiers?)\b.{0,40}\b(?:(?:supports|contradicts)(?=$|["'.!,;:)])|insufficient_evidence\b)/u,
  /^\W*the (?:claim|statement) (?:holds|stands|is (?:true|correct|right|confirmed))\W*$/u,
  /\b(?:return|answer|output|say|choose|select)s? (?:supports|contradicts)\b/u,
  /\b(?:find|finds|found|deem|deemed) (?:the|this|any|every) (?:claim|statement|assertion)s? (?:to be )?(?:supported|confirmed|contradicted|refuted)\b/u,
  /\b(?:this|the) (?:page|text|document|site) (?:supports|contradicts) (?:it|the claim|any|every|all|whatever)\b/u,
  /[{([] ?(?:verdict|stance|claim_support) ?[:=]/u,
  /\b(?:claims?|statements?) (?:that is |that are )?being (?:checked|verified|assessed|reviewed|compared|judged|tested)\b|\bwhat(?:ever)? the claims? (?:says?|states?|asserts?)\b/u,
  /\b(?:silence|missing evidence|absence of evidence|lack of evidence)\b.{0,12}\bas\b.{0,12}\b(?:support|evidence (?:in favou?r|for)|proof|confirmation)/u,
  /\bthe (?:claims?|statements?) (?:that )?you (?:are|were|have|will|may)\b|\bthe (?:user's|caller's|customer's) (?:claims?|statements?)\b/u,
  /\b(?:all|any|every|each|whatever) (?:claims?|statements?|assertions?) (?:about|made|on|concerning|regarding|of)\b.{0,40}\b(?:is|are|be|been)\b.{0,20}\b(?:certified|supported|verified|confirmed|true|contradicted|refuted|false)\b/u,
  /\byou (?:must|should|will|shall|are to|have to|need to)\b.{0,20}\b(?:confirm|support|endorse|accept|approve|validate|agree)\b.{0,20}\bclaim/u,
  /\b(?:models?|programs?|machines?|software|systems?|bots?|crawlers?|reviewers?|readers?)\b.{0,60}\b(?:in favou?r of|against) (?:the|any|every|each) claims?\b/u,
  /\b(?:models?|programs?|machines?|systems?|bots?) (?:that|which|who) (?:answer|respond|reply|output|return|say|choose|select|conclude)s?\b.{0,20}\b(?:supports?|supported|contradicts?|true|false|verified|confirmed)\b/u,
  /\b(?:answer|verdict|assessment|judgement)\b.{0,30}\b(?:this|the) (?:page|text|document|site)\b.{0,30}\b(?:supports?|contradicts?|confirms?) (?:the|any|every) claims?\b/u,
  /\bthe claims? (?:is|are|has been|have been|must be|should be) (?:hereby |fully |completely |independently |officially |already )?(?:verified|supported|validated|certified|authenticated|approved)\b/u,
  /\b(?:verdict|claim_support|stance|classification|final answer|assessment|conclusion)["'`]?\s?[:=]\s?["'`]?(?:supports?|supported|contradicts?|contradicted|true|false|verified|confirmed|mixed|refuted|insufficient[_ ]?evidence)(?=$|[.!,;:"'`)\]}])/u,
  /\b(?:correct|right|final|expected|only (?:valid|acceptable|correct)) (?:(?:verdict|label|classification) (?:is|must be|should be|here is)\b|(?:answer|output|response) (?:is|must be|should be|here is) ?(?:["':]|\b(?:supports?|contradicts?|true|false|yes|no|verified|confirmed|refuted|insufficient|mixed)\b))/u,
  /["'`](?:verdict|evidence|stance|basis|suspicious|claim_support)["'`]\s?:/u,
  ...others(({ reader, say, claim, verdict }) => `(?:${reader}).{0,60}(?:${say}).{0,80}(?:${verdict}|${claim})`),
  ...others(({ claim, verdict, say }) => `(?:${say}).{0,40}(?:${claim}).{0,40}(?:${verdict})`),
  ...others(({ claim, verdict, say }) => `(?:${claim}).{0,30}(?:${verdict}).{0,40}(?:${say})`),
  ...others(({ say, verdict }) => `(?:${say}).{0,24}["'«“「„](?:${verdict}).{0,12}["'»”」“]`),
  ...others(({ say, verdict }) => `["'«“「„](?:${verdict}).{0,12}["'»”」“].{0,24}(?:${say})`),
]

/** Forged seams: the marks that separate the speakers in chats, prompts and documents. */
export const SEAM: readonly RegExp[] = [
  /<\|[a-z_]{2,24}\|>|\[\/?inst\]|<<\/?sys>>|\[\/?sys(?:tem)?\]|(?<![a-z])<\/s>|'''(?:system|instructions?)|<\/?(?:system|instructions?|prompt|assistant|human|claim|untrusted|evidence)\s?>/u,
  /^\W{0,4}(?:system|developer|assistant|human)(?: (?:message|prompt|note|override))?\s?:/u,
  /^\W{0,6}(?:end|begin|start|close|stop) (?:of )?(?:the )?(?:untrusted|user|system|context|claim)(?: (?:text|content|data|input|message|prompt|section))?\W{0,6}$/u,
  /^\s*[-=*#~[<]{2,}\s?(?:end|begin|start|close) (?:of )?(?:the |this )?(?:page|document|text|source|article|content|file|data)\W{0,6}$/u,
  /^\W{0,3}(?=[a-f]*\d)[0-9a-f]{4,32}[ -](?:\d+\||.{0,16}\b(?:begins?|ends?)\b)/u,
  /^\W{0,4}#{2,} ?(?:instruction|response|system|assistant|human|user)\b/u,
]

function near(a: string, b: string, distance: number): RegExp[] {
  return [pattern(`(?:${a}).{0,${distance}}(?:${b})`), pattern(`(?:${b}).{0,${distance}}(?:${a})`)]
}

function english(source: (speech: Speech) => string): RegExp {
  return pattern(source(SPEECHES[0]))
}

function others(source: (speech: Speech) => string): RegExp[] {
  return SPEECHES.slice(1).map((speech) => pattern(source(speech)))
}

/** Folded as the text is, so that marks of Hindi or Japanese are gone on both sides. Syntax is ASCII and stays. */
function pattern(source: string): RegExp {
  return new RegExp(
    source
      .normalize('NFKD')
      .replace(/\p{Mn}/gu, '')
      .normalize('NFC'),
    'u',
  )
}

/**
 * The form in which text is compared with the patterns: without compatibility forms, accents, marks, case and invisible
 * characters.
 */
export function fold(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/[\p{Mn}\p{DI}]/gu, '')
    .normalize('NFC')
    .toLowerCase()
}
