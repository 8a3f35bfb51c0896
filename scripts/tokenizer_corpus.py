#!/usr/bin/env python3
"""Writes a text that is hard on tokenizers: prose in twenty scripts, code in ten languages, digits, emoji with joiners, combining marks,
every white space, special markers inside words, and (unless --no-runs) runs of 100,000 equal characters, each on a line of its own.

    python3 scripts/tokenizer_corpus.py --bytes 1200000 --seed 1 --out corpus.txt

The same options and the same Python give the same bytes; the standard library's sources are part of the text. --bytes counts without the
runs, which add 100,000 characters each. Control characters that are no white space are in the text with --controls only: some vocabularies
(falcon's) have no token for one of them, and llama.cpp then drops it.
"""

import argparse
import pathlib
import random
import sys
import unicodedata

# Two or three plain sentences for each script: words to shuffle, with the marks and punctuation that the script uses.
PROSE = {
    "Latin": "The old lamp in the harbour was lit at dusk, and nobody knew who'd lit it; it's been so since 1874. "
    "À la fin de l'été, les élèves rentrèrent : « déjà ? » Das Mädchen aß süße Äpfel, weil's schön war. "
    "Zażółć gęślą jaźń; příliš žluťoučký kůň. Tiếng Việt có nhiều dấu thanh, phải không? İstanbul'da ışık söndü.",
    "Greek": "Η θάλασσα ήταν ήσυχη το πρωί, και οι ψαράδες γύρισαν νωρίς. Τί ἐστιν ἀλήθεια; Ὁ ἄνθρωπος μέτρον.",
    "Cyrillic": "Старый маяк светил всю ночь, а утром пошёл снег. Їжак з'їв яблуко, чи не так? Ђак учи књигу; ћутао је дуго.",
    "Armenian": "Ծովը հանգիստ էր, և նավակները վերադարձան։ Ո՞վ գիտի, թե ինչո՛ւ։",
    "Georgian": "ზღვა მშვიდი იყო და ნავები ადრე დაბრუნდნენ. ვინ იცის, რატომ? ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ.",
    "Hebrew": "הים היה שקט בבוקר, והדייגים חזרו מוקדם. מִי יוֹדֵעַ מַדּוּעַ? ק״מ, ג׳ירפה.",
    "Arabic": "كان البحر هادئًا في الصباح، وعاد الصيادون مبكرًا. مَن يَعْلَمُ لِماذا؟ آب و هوا خوب است؛ نمی‌دانم. یہ کتاب ہے۔ ١٢٣٤٥ ۶۷۸",
    "Devanagari": "सुबह समुद्र शांत था, और मछुआरे जल्दी लौट आए। कौन जानता है क्यों? क्षेत्रज्ञः श्रीकृष्ण। १२३४५ वाँ",
    "Bengali": "সকালে সমুদ্র শান্ত ছিল, আর জেলেরা তাড়াতাড়ি ফিরে এল। কে জানে কেন? ১২৩",
    "Gurmukhi": "ਸਵੇਰੇ ਸਮੁੰਦਰ ਸ਼ਾਂਤ ਸੀ, ਤੇ ਮਛੇਰੇ ਛੇਤੀ ਮੁੜ ਆਏ। ਕੌਣ ਜਾਣਦਾ ਹੈ?",
    "Tamil": "காலையில் கடல் அமைதியாக இருந்தது, மீனவர்கள் சீக்கிரம் திரும்பினர். யாருக்குத் தெரியும்?",
    "Telugu": "ఉదయం సముద్రం ప్రశాంతంగా ఉంది, జాలరులు త్వరగా తిరిగి వచ్చారు. ఎవరికి తెలుసు?",
    "Sinhala": "උදේ මුහුද නිසලයි, ධීවරයෝ ඉක්මනින් ආපසු ආහ. කවුද දන්නේ? ශ්‍රී ලංකා",
    "Thai": "ตอนเช้าทะเลสงบ และชาวประมงกลับมาเร็ว ใครจะรู้ว่าทำไม? ๑๒๓๔๕ น้ำใจ",
    "Lao": "ຕອນເຊົ້າທະເລສະຫງົບ ແລະຊາວປະມົງກັບມາໄວ. ໃຜຮູ້?",
    "Myanmar": "မနက်ခင်းမှာ ပင်လယ်က ငြိမ်သက်နေပြီး တံငါသည်တွေ စောစော ပြန်လာကြတယ်။ ဘယ်သူသိလဲ။ ၁၂၃",
    "Khmer": "ពេលព្រឹក សមុទ្រស្ងប់ ហើយអ្នកនេសាទត្រឡប់មកវិញលឿន។ នរណាដឹង? ១២៣",
    "Ethiopic": "ጠዋት ባሕሩ ጸጥ ብሎ ነበር፣ ዓሣ አጥማጆችም ቶሎ ተመለሱ። ማን ያውቃል? ፩፪፫",
    "Hangul": "아침 바다는 고요했고, 어부들은 일찍 돌아왔다. 누가 알겠는가? ㅋㅋㅋ 한글은 1443년에. 각\u1112\u1161\u11ab",
    "Kana": "朝の海は静かで、漁師たちは早く帰ってきた。「なぜだろう？」カタカナ・ﾊﾝｶｸ、ゞヽー々〇。１２３ＡＢＣ",
    "Han": "清晨的海面很平静，渔夫们早早回来了。“谁知道为什么？”《千字文》：天地玄黄！繁體字與简体字；㐀䶵𠀀𪛖豈﨑2024年3月1日。",
    "Tifinagh": "ⴰⵣⵓⵍ ⴼⵍⵍⴰⵡⵏ, ⵎⴰⵏⵉⵎⴽ ⵜⴳⵉⴷ?",
    "Gothic": "𐌰𐍄𐍄𐌰 𐌿𐌽𐍃𐌰𐍂 𐌸𐌿 𐌹𐌽 𐌷𐌹𐌼𐌹𐌽𐌰𐌼. 𐐐𐐯𐑊𐐬! 𝒜𝓁𝓅𝒽𝒶 𝟙𝟚𝟛",
}

# Templates; NAME, OTHER, NUMBER and TEXT are filled in at random.
CODE = {
    "c": 'static int NAME(const char *OTHER, size_t n) {\n\tfor (size_t i = 0; i < n; ++i)\n\t\tif (OTHER[i] == \'\\n\') return NUMBER;\n\treturn -1; /* TEXT */\n}\n',
    "cpp": 'template <typename T, std::size_t N = NUMBER>\nclass NAME final : public OTHER<T> {\n public:\n  auto operator<=>(const NAME&) const = default;\n  std::vector<T> OTHER_{T{}, N};  // TEXT\n};\n',
    "rust": 'impl<\'a> NAME<\'a> {\n    pub fn OTHER(&mut self) -> Result<u64, Box<dyn Error>> {\n        let x = self.NAME.iter().map(|v| v * NUMBER).sum::<u64>();\n        println!("{x:?} TEXT");\n        Ok(x)\n    }\n}\n',
    "go": 'func (s *NAME) OTHER(ctx context.Context) (int64, error) {\n\tif err := s.NAME(ctx); err != nil {\n\t\treturn 0, fmt.Errorf("TEXT: %w", err)\n\t}\n\treturn NUMBER, nil\n}\n',
    "java": '@Override\npublic synchronized List<NAME> OTHER(final Map<String, Integer> NAME) throws IOException {\n    return NAME.entrySet().stream().filter(e -> e.getValue() > NUMBER).toList(); // TEXT\n}\n',
    "javascript": 'export const NAME = async ({ OTHER, ...rest }) => {\n  const r = await fetch(`/api/${OTHER}?n=NUMBER`);\n  return rest?.NAME ?? (r.ok ? r.json() : null); // TEXT\n};\n',
    "sql": "SELECT NAME, COUNT(*) AS OTHER FROM t_NAME WHERE id >= NUMBER AND note LIKE '%TEXT%'\nGROUP BY 1 HAVING COUNT(*) > 1 ORDER BY 2 DESC;\n",
    "html": '<div class="NAME OTHER" data-id="NUMBER">\n    <p style="margin:0 auto">TEXT &amp; more&nbsp;</p>\n    <!-- NAME --><br/>\n</div>\n',
    "shell": 'for NAME in "${OTHER[@]}"; do\n  [[ -f "$NAME" ]] && grep -nE \'^[A-Z_]+=NUMBER$\' "$NAME" | awk \'{print $2}\' >> out.log 2>&1 || true  # TEXT\ndone\n',
    "haskell": 'NAME :: (Ord a, Num a) => [a] -> Maybe a\nNAME [] = Nothing\nNAME (x:xs) = Just $ foldr (\\y acc -> max y acc + NUMBER) x xs -- TEXT\n',
    "latex": '\\begin{equation}\\label{eq:NAME}\n  \\sum_{i=0}^{NUMBER} \\frac{x_i^2}{\\sqrt{2\\pi}} \\leq \\mathcal{O}(n \\log n) % TEXT\n\\end{equation}\n',
    "json": '{"NAME": [NUMBER, -1.5e-3, true, null], "OTHER": {"text": "TEXT\\n\\u00e9", "empty": {}}}\n',
    "makefile": "NAME.o: OTHER.c OTHER.h\n\t$(CC) -O2 -DNUMBER $(CFLAGS) -c $< -o $@ # TEXT\n",
}

MARKERS = (
    "<|im_start|> <|im_end|> <|endoftext|> <s> </s> <unk> <pad> <bos> <eos> <start_of_turn> <end_of_turn> <|begin_of_text|> <|eot_id|> "
    "<|start_header_id|> <|end_header_id|> <|fim_prefix|> <fim_middle> <think> </think> <0x0A> [INST] [/INST] <|assistant|> <|end|> <mask> "
    "<|turn> <turn|> <extra_id_0> <｜end▁of▁sentence｜> <EOT> <|EOT|> <file_sep> <reponame> <jupyter_code> <|vision_start|> <|user|> <<SYS>>"
).split()

EMOJI = (
    "😀 😂 🥰 👍 👍🏽 👨‍👩‍👧‍👦 👩🏿‍🚀 🏳️‍🌈 🏴‍☠️ 🇫🇷 🇯🇵 🇺🇳 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f 1️⃣ #️⃣ ❤️ ❤️‍🔥 ☺︎ ☺️ 🧑‍💻 🫠 🪿 ⚕ ♂️ "
    "✈️ ™️ ©️ 〰️ 🀄 🃏 🧙🏼‍♀️ 👁️‍🗨️"
).split()

WHITE_SPACE = [c for c in map(chr, range(0x110000)) if unicodedata.category(c)[0] == "Z"] + list("\t\n\v\f\r\x85")
NEAR_SPACE = list("\u200b\u200c\u200d\u2060\ufeff\u180e\u00ad")
CONTROLS = [c for c in map(chr, range(0x80)) if unicodedata.category(c) == "Cc" and c not in WHITE_SPACE]
ASSIGNED = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cn", "Cs", "Co") and c not in CONTROLS]
MARKS = [c for c in ASSIGNED if unicodedata.category(c)[0] == "M"]
NUMBERS = [c for c in ASSIGNED if unicodedata.category(c)[0] == "N"]
RUNS = ["a", "Z", "0", "!", "=", "-", ".", " ", "\t", "\n", "é", "я", "\u0301", "中", "あ", "😀", "'"]


class Writer:
    def __init__(self, seed, controls):
        self.random = random.Random(seed)
        self.near_space = NEAR_SPACE + (CONTROLS if controls else [])
        self.words = {script: text.split() for script, text in PROSE.items()}
        self.letters = {
            script: sorted({c for c in text if unicodedata.category(c)[0] in "LM"}) for script, text in PROSE.items()
        }
        self.library = self.library_sources()

    @staticmethod
    def library_sources():
        for path in sorted(pathlib.Path(random.__file__).parent.glob("*.py")):
            yield "".join(c for c in path.read_text(encoding="utf-8", errors="ignore") if c not in CONTROLS)

    def word(self, script):
        if self.random.random() < 0.8:
            return self.random.choice(self.words[script])
        return "".join(self.random.choices(self.letters[script], k=self.random.randint(1, 9)))

    def prose(self):
        script = self.random.choice(list(PROSE))
        if self.random.random() < 0.3:
            return PROSE[script] + "\n"
        joint = "" if script in ("Han", "Kana", "Thai", "Lao", "Khmer", "Myanmar") and self.random.random() < 0.7 else " "
        text = joint.join(self.word(script) for _ in range(self.random.randint(4, 60)))
        return text + self.random.choice([".", "!", "?", "…", "。", " —", "\n", "\r\n", "\n\n", ".\n\n\n"]) + joint

    def english(self):
        words = PROSE["Latin"].split()[:20] + "we'll they've I'm you'd CAN'T don'T Hello HTTPServer camelCase snake_case 3rd".split()
        return " ".join(self.random.choices(words, k=self.random.randint(5, 40))) + self.random.choice([". ", "!\n", "?\n\n", ", "])

    def name(self):
        parts = self.random.choices("get set node list_of HTTP value idx Buffer x tmp2 parse_ Token größe".split(), k=self.random.randint(1, 3))
        return "".join(parts) if self.random.random() < 0.5 else "_".join(parts)

    def code(self):
        text = self.random.choice(list(CODE.values()))
        for slot in ("NAME", "OTHER"):
            text = text.replace(slot, self.name())
        text = text.replace("NUMBER", str(self.random.randrange(10 ** self.random.randint(1, 12))))
        text = text.replace("TEXT", self.prose().strip()[:60])
        return text.replace("\n", "\n" + self.random.choice(["", "", "  ", "    ", "\t", " " * 12]))

    def library_code(self):
        return next(self.library, "")[: self.random.randint(2000, 12000)]

    def digits(self):
        kinds = [
            lambda: str(self.random.randrange(10 ** self.random.randint(1, 30))),
            lambda: f"{self.random.uniform(-1e6, 1e6):,.3f}",
            lambda: "0x%X" % self.random.randrange(1 << 64),
            lambda: "".join(self.random.choices(NUMBERS, k=self.random.randint(1, 6))),
            lambda: "%d-%02d-%02dT%02d:%02dZ" % (self.random.randint(1900, 2100), 3, 14, 15, 9),
            lambda: "192.168.0.%d" % self.random.randrange(256),
        ]
        return "".join(self.random.choice(kinds)() + self.random.choice([" ", ", ", "\n", "", "%", "€", "\u00a0"]) for _ in range(20))

    def emoji(self):
        return "".join(self.random.choice(EMOJI) + self.random.choice(["", "", " ", "\u200d", "\ufe0f", "a", "🏽"]) for _ in range(30)) + "\n"

    def marks(self):
        bases = self.letters[self.random.choice(list(PROSE))] + list("aeiou 1!")
        return "".join(
            self.random.choice(bases) + "".join(self.random.choices(MARKS, k=self.random.choice([0, 1, 1, 2, 5]))) for _ in range(40)
        )

    def spaces(self):
        out = []
        for space in WHITE_SPACE + self.near_space:
            out.append(self.random.choice(["a", "1", "!", "é", "中", "", "'s", "\n"]) + space * self.random.choice([1, 1, 2, 3, 7]))
        self.random.shuffle(out)
        return "".join(out)

    def markers(self):
        out = []
        for marker in self.random.choices(MARKERS, k=20):
            out.append(self.random.choice(["", " ", "word", "x ", "\n", "<", "'s"]) + marker + self.random.choice(["", " ", "ing", "\n\n", ">", "1"]))
        return "".join(out)

    def soup(self):
        return "".join(self.random.choices(ASSIGNED, k=60)) + self.random.choice(["", " ", "\n"])

    def text(self, size):
        kinds = [
            (self.prose, 60), (self.english, 20), (self.code, 16), (self.library_code, 1), (self.digits, 4), (self.emoji, 3), (self.marks, 3),
            (self.spaces, 3), (self.markers, 3), (self.soup, 3),
        ]
        parts = [PROSE[script] + "\n" for script in PROSE] + [CODE[language] for language in CODE]
        total = sum(len(part.encode()) for part in parts)
        while total < size:
            part = self.random.choices([kind for kind, _ in kinds], weights=[weight for _, weight in kinds])[0]()
            parts.append(part)
            total += len(part.encode())
        return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1_200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-runs", action="store_true")
    parser.add_argument("--controls", action="store_true")
    parser.add_argument("--run-length", type=int, default=100_000)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    text = Writer(options.seed, options.controls).text(options.bytes)
    if not options.no_runs:
        text += "\n" + "".join(run * options.run_length + "\n" for run in RUNS)
    data = text.encode("utf-8")
    pathlib.Path(options.out).write_bytes(data)
    print(f"{options.out}: {len(data)} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
