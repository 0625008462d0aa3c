"""The words the catalogue is made of."""

TRANSLATIONS: dict[str, str | None] = {
    "風景": "landscape",
    "オリジナル": "original",
    "灯台": "lighthouse",
    "空": "sky",
    "海": "sea",
    "夕焼け": "sunset",
    "夜景": "night view",
    "星空": "starry sky",
    "鉄道": "railway",
    "猫": "cat",
    "背景": "background",
    "街並み": "townscape",
    "雪": "snow",
    "桜": "cherry blossoms",
    "漫画": "manga",
    "うごイラ": "ugoira",
    "AIイラスト": "AI-generated",
    "R-18": None,
    "架空の町シリーズ": None,
}

SCENERY = ("空", "海", "夕焼け", "夜景", "星空", "雪", "背景", "街並み", "桜")
SUBJECTS = ("灯台", "鉄道", "猫", "架空の町シリーズ")

PLACES = ("岬", "港", "峠", "河口", "離れ島", "丘の上", "終着駅", "水門", "雪原", "旧市街")
MOMENTS = ("夜明け", "昼下がり", "夕凪", "宵の口", "真夜中", "雨上がり", "初雪の朝", "嵐の前")

AUTHORS = (
    ("雲野しおり(架空)", "kumono_example"),
    ("Papermoth Example", "papermoth_example"),
    ("波止場ねこ", "hatoba_example"),
    ("青磁/せいじ\\工房", "seiji_example"),
    ("🌊みなと🌙", "minato_example"),
    ("Émile Żółw-Example", "emile_example"),
    ("架空鉄道旅行社" * 6, "kakutetsu_example"),
    ("終わりの点...", "dots_example"),
    ("硝子屋", "garasuya_example"),
    ("Nor Lantern", "lantern_example"),
    ("\u202eひっくり返る名前", "rtl_example"),
    ("ゆきのはら", "yukinohara_example"),
)

HOSTILE_TITLES = (
    '港/朝 \\ 2026: *?"<>|',
    "🗼✨ 灯台まつり 🎉👩‍👩‍👧‍👦",
    "とても長い題名の灯台と海と空と町と鉄道と猫の話" * 9,
    "CON",
    "..",
    " 前と後ろに空白と点 ... ",
    "\u202egnp.右から左\u202c",
    "タブ\tと改行\nの絵",
    "",
    "../../etc/passwd",
)
