"""The words by which papers name metrics, settings and kinds of sections.

Only vocabulary: regular expressions with what they mean. Who uses them decides. Lists were read off published
EXP-Bench tasks and the hand-labelled papers; they name things, they never hold a result.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "CONDITION_HEADER", "FINDING", "HIGHER", "INDEX_HEADER", "LOWER", "METRIC", "MODIFIER", "OBSERVED", "ROLE_TITLES",
    "SETTING", "WINNER", "direction_of", "find_metric", "is_metric_header",
]  # fmt: skip

_HIGHER_WORDS: Final = (
    r"adjusted rand(?: index)?|accuracy|accuracies|acc\b\.?|precision|recall|sensitivity|specificity|"
    r"F[-_ ]?1(?:[- ]?scores?)?|F[- ]?(?:scores?|measures?)|(?:recognition|classification|identification|"
    r"verification) rates?|(?:[PRHB]|R(?:ank)?-?|Prec|Rec(?:all)?|MAP|Acc|"
    r"Top)@\d+|Smatch|SPICE|(?:ROC|PR)[- ]?AUC|AU(?:RO|PR)?C|AP(?:@?\d+)?|m?AP\b|MRR|"
    r"[Nn]?DCG(?:@\w+)?|hit rates?|Hits?@\w+|i?BLEU(?:-\d)?|ROUGE(?:-[\dL])?|METEOR|CIDEr|chrF\+*|SARI|BERTScore|COMET|"
    r"exact match(?:es)?|EM\b|m?IoU|Dice(?: score)?|PSNR|SSIM|ARI\b|NMI|AMI\b|purity|silhouette|R\s?[2²](?![\w(])|"
    r"R-squared|(?:Pearson|Spearman|Kendall)(?:[’']?s)?(?: (?:rho|tau|r|correlation))?|correlation(?: coefficient)?|"
    r"cohen\s?[’'´]?\s?s (?:d|kappa)|kappa|MCC|success rates?|win rates?|pass@\w+|throughput|speed-?ups?(?: factor)?|"
    r"coverage|log-?likelihood|ELBO|(?:cosine )?similarity|inception score|SNR|rewards?|returns?|IQM|agreement"
)
_LOWER_WORDS: Final = (
    r"errors?(?: rate)?s?|loss(?:es)?|perplexity|PPL|N?RMSE|N?M[SA]E|MAPE|WER|CER|(?:Self[- ]\s?)?TER|S?FID|"
    r"KL(?: divergence)?|NLL|BPC|regret|latency|run-?times?|(?:wall[- ]?clock|training|inference|computation|execution|"
    r"running|CPU|solve|query|fit(?:ting)?|sampling) times?|(?:peak )?memory(?: usages?| footprint|"
    r" consumption)?|FLOPs|EER|ECE|"
    r"Brier(?: score)?|bias|discrepancy|violations?|(?:false|true) (?:positive|negative) rates?|FPR|FNR|deviation|"
    r"(?:average|mean|ave\.?|avg\.?) ranks?|(?:interval|Winkler|pinball) scores?|CRPS|LPIPS|Self[- ]\s?BLEU|"
    r"MACs|energy consumption|overhead|(?:min|act)?[- ]?DCF"
)
_NEUTRAL_WORDS: Final = (
    r"(?:(?!(?:a|the|this|that|of|to|at|noise|aspect)\b)[\w-]+ )?ratio|"
    r"(?:acceptance|rejection|detection|recovery|failure|completion|compression|convergence|discovery|"
    r"misclassification|"
    r"survival|response|dropout|retention|solve) rates?|scores?|slope|p-values?|time\b|effect size|variance|gap\b|"
    r"standard deviation|(?:(?!(?:a|the|this|that|of|to|at)\b)[\w-]+ )?distance|entropy|iterations to \w+|"
    r"number of iterations|power\b|gain\b"
)
_MODIFIERS: Final = (
    "test|testing|train|training|validation|valid|val|dev|mean|median|average|avg|overall|final|best|top-1|top-5|"
    "top-k|relative|absolute|squared|balanced|macro|micro|macro-averaged|weighted|normalized|normalised|"
    "estimation|prediction|predictive|classification|generalization|generalisation|reconstruction|held-out|root|"
    "root-mean-square|maximum|max|minimum|min|worst-case|cumulative|total|standard|approximation|recovery|"
    "clustering|regression|integration|percentage|mean-squared|mean-absolute|episode|out-of-sample|in-sample|"
    "cross-validated|zero-shot|few-shot|robust|clean|adversarial|empirical|L1|L2|RMS|test-set|token|word|character|"
    "calibration|expected|simple|type|rand"
)
METRIC: Final = re.compile(rf"(?<![\w@/-])(?:{_HIGHER_WORDS}|{_LOWER_WORDS}|{_NEUTRAL_WORDS})(?![\w-])", re.IGNORECASE)
HIGHER: Final = re.compile(rf"(?<![\w-])(?:{_HIGHER_WORDS})(?![\w-])", re.IGNORECASE)
LOWER: Final = re.compile(rf"(?<![\w-])(?:{_LOWER_WORDS})(?![\w-])", re.IGNORECASE)
MODIFIER: Final = re.compile(rf"(?:(?<=\s)|(?<=^)|(?<=\())(?:{_MODIFIERS})\s+$", re.IGNORECASE)

SETTING: Final = (
    r"learning rates?|batch sizes?|mini-?batch sizes?|(?:training )?epochs?|(?:training |warm-?up |gradient |"
    r"total )?steps|"
    r"(?:random )?seeds?|weight decay|dropout(?: rate| probability)?|hidden (?:size|dimension|units|layers)|"
    r"embedding (?:size|dimension)|(?:node-?wise |interaction |attention |transformer |convolutional )*layers|heads|"
    r"temperature|momentum|folds|replicates|replications|repetitions|repeats|trials|independent runs|runs|restarts|"
    r"(?:bootstrap |training |test )?(?:samples|examples|instances|observations)|sample sizes?|bandwidth|"
    r"regulari[sz]ation(?: strength| parameter| coefficient| weight)?|threshold|window size|context (?:size|length)|"
    r"(?:maximum )?sequence length|trees|neighbou?rs|maximum depth|max(?:imum)? depth|noise (?:level|variance|scale)|"
    r"step size|discount factor|buffer size|rollouts?|iterations|burn-in|chains|clusters|dimensions?|rank|"
    r"prompt length|prefix length|beam (?:size|width)|tolerance|penalty|ridge(?: penalty)?|smoothing(?: parameter)?|"
    r"kernel size|grid density level|label noise|dimensionality|width|depth"
)
CONDITION_HEADER: Final = re.compile(
    rf"^(?:#.*|no\.?(?: of .*)?|n(?:umber|um)\.? of .*|[α-ωΑ-Ω]|[a-zA-Z]|dim\.?|dimensions?|size|type|year|params?\.?|"
    rf"parameters|depth|width|rank|seeds?|samples|order(?: \w+)?|{SETTING})$",
    re.IGNORECASE,
)
INDEX_HEADER: Final = re.compile(r"^(?:#|no\.?|id|idx|index|nr\.?|row|ref\.?|reference|year)$", re.IGNORECASE)

WINNER: Final = re.compile(
    r"\b(?:outperform\w*|beats?|beating|surpass\w*|superior|inferior|underperform\w*|exceeds?|dominates?|wins\b|"
    r"tops\b|improvements? (?:of|over) .{0,40}?(?:is|are)\b|up to \d[\d.]*\s?%|(?:significant|dramatical|"
    r"substantial|great|marked|slight|considerab|notab|clear|consistent)ly "
    r"(?:reduc|improv|increas|decreas|boost|lower|enhanc|surpass|degrad|alleviat)\w*|"
    r"(?:does|do|did) not (?:improve|help|hurt|degrade|reduce|increase|change)\b|(?:significant|large|clear|"
    r"consistent|substantial|notable) (?:\w+ )?(?:improvement|gain|drop|"
    r"decrease|increase|"
    r"reduction|boost)s?\b|can (?:\w+ly )?(?:boost|improve|increase|reduce|hurt)\b|improv(?:es|ed|"
    r"ing) (?:\w+ ){0,3}?(?:accurac\w+|performances?|results?|scores?|quality)\b|(?:is|are|was|"
    r"were) (?:\w+ly )?improved|best[- ]perform\w+|(?:top|best) scorers?|ahead of(?! time)|ranks? (?:first|"
    r"second|last|highest|lowest|best|worst)|leads? by|"
    r"state[- ]of[- ]the[- ]art results?|advantages?|improves? (?:up)?on|(?:is|are|was|were|performs?|works?|does|do) "
    r"(?:\w+ly |much |slightly |far )?(?:better|worse|best|worst|higher|lower|faster|slower|superior|stronger|weaker)|"
    r"(?:better|worse|higher|lower|faster|slower|stronger|weaker|larger|smaller|more \w+|less \w+|fewer \w+)"
    r"(?: \w+){0,3} than|(?!(?:other|rather)\b)\w+er than\b|\d\s?(?:×|x|times) (?:\w+ )?\w+er\b|differs? by|"
    r"hardly matters?|(?:a|the) (?:reduction|"
    r"improvement|increase|"
    r"decrease) of|\d\s?%? (?:percentage )?(?:points? )?(?:above|below|against|versus|ahead)\b|achiev\w+ (?:the |a |"
    r"an )?(?:best|highest|lowest|better|higher|lower|comparable|competitive)|"
    r"(?:increases?|decreases?|improves?|degrades?|drops?|rises?|falls?|reduces?|boosts?|hurts?)"
    r"(?: \w+){0,4} (?:monotonic\w*|significantly|dramatically|substantially|slightly|steadily|sharply|consistently|"
    r"by|from|to \d)|not (?:statistically )?(?:significant|separable|distinguishable)|gains? of|no (?:gain|benefit|"
    r"effect))",
    re.IGNORECASE,
)
FINDING: Final = re.compile(
    r"\b(?:confirm\w*|demonstrat\w+|show(?:s|ed|ing)?(?: that|n that)?|reveal\w*|indicat\w+ that|suggest\w*|prove[sd]?|"
    r"find(?:s|ing)?\b|found that|observ\w+ that|conclude\w*|evident|notabl[ye]|interestingly|surprisingly|as expected|"
    r"clearly|attribut\w+|yields?|achiev\w+|attain\w*|reach(?:es|ed)|obtains?|highlight\w*|this is because|explains?|"
    r"we see|can be seen|as seen|drawback|promising|effective\w*|robust to|result(?:s|ed) in|leads? to|retains?|"
    r"recovers?|fails? to|helps?|benefit\w*)\b",
    re.IGNORECASE,
)

OBSERVED: Final = re.compile(
    r"\b(?:loses?|lost|falls? (?:behind|short)|hardly|nearly|matters?|depends? (?:on|strongly)|tends? to|suffers?|"
    r"benefits? (?:least|most|from)|is (?:close to|within|sensitive|robust|insensitive|stable)|close to the (?:level|"
    r"value|performance)|within (?:\d[\d.]* )?(?:points|percent)|lucky|comparable|counterbalanced|as (?:a )?"
    r"consequence|"
    r"consequently|allows?|brings?|easiest|hardest|blessing|at the (?:price|cost) of|presumably|as expected|due to|"
    r"observe[sd]?\b|the reasons?\b|fail(?:s|ed) (?:to|in)|we can\b|has an? \w+ (?:impact|influence|effect)|"
    r"var(?:y|ies) greatly|behaves?\b|erratic\w*|the (?:picture|curves?|difference|trend|gap)\b|narrow\w*|"
    r"holds? on average|visible|noticeabl\w+|drops?|gains?)\b",
    re.IGNORECASE,
)
"""What sentences of result sections say about an outcome without comparing or concluding: they tell, they do not do."""

ROLE_TITLES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("skip", re.compile(
        r"related work|prior work|literature|acknowledg|references|bibliography|broader impact|ethic|author contrib|"
        r"checklist|funding|competing interest|data availability|code availability|societal", re.IGNORECASE)),
    ("setup", re.compile(
        r"(?:compar\w+|competing|competitor|baseline) (?:methods|algorithms|approaches|models)|"
        r"^metrics\b", re.IGNORECASE)),
    ("evaluation", re.compile(
        r"^(?:main |overall |experimental |further |additional )?(?:comparison|results?|evaluation of|performance)\b|"
        r"\b(?:performance|results?) (?:on|for|of|with|in)\b",
        re.IGNORECASE)),
    ("evaluation", re.compile(r"(?:\bstud(?:y|ies)|\bsensitivity|\bablations?)$", re.IGNORECASE)),
    ("setup", re.compile(
        r"set-?up|setting|implementation|dataset|^data\b|baseline|metric|protocol|training (?:detail|procedure)|"
        r"hyper-?param|configuration|experimental (?:detail|design|method)|ablation design|reproducib|architecture|"
        r"computing|resources|tasks?$", re.IGNORECASE)),
    ("evaluation", re.compile(
        r"experiment|result|evaluat|ablation|analys|compar|performance|benchmark|empirical|simulation|case stud|"
        r"validation|accuracy|robust|convergence|sensitivity|run-?time|scal(?:ing|ability)|diagnostic|classification|"
        r"cross-domain|findings|effect of|impact of|influence of", re.IGNORECASE)),
    ("framing", re.compile(
        r"abstract|introduction|conclusion|concluding|discussion|summary|limitation|future work|overview|"
        r"background|preliminar|motivation", re.IGNORECASE)),
)  # fmt: skip


def find_metric(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int, str]]:
    """Metric phrases in `text[start:end]` as (start, end, phrase), leading modifiers included, left to right."""
    stop = len(text) if end is None else end
    found: list[tuple[int, int, str]] = []
    for match in METRIC.finditer(text, start, stop):
        left = match.start()
        if re.fullmatch(SETTING, match.group(), re.IGNORECASE) or text[max(0, left - 1) : left] in ("∆", "Δ"):
            continue  # a `learning rate` is set, and a difference of two claims is not a third claim
        while (modifier := MODIFIER.search(text, max(start, left - 40), left)) is not None:
            left = modifier.start()
        if found and left < found[-1][1]:
            if match.end() <= found[-1][1]:
                continue
            left = found.pop()[0]
        found.append((left, match.end(), re.sub(r"\s+", " ", text[left : match.end()]).strip()))
    return found


_SHORT_METRIC: Final = re.compile(
    r"(?<![\w-])(?:F1|Acc\.?|EM|AUC|AUROC|BLEU|METEOR|ROUGE-\w+|mAP|MAE|MSE|RMSE|NLL|PSNR|SSIM|PPL|ppl|Corr\.?|"
    r"MCC|IoU|[Tt]op-[15]|[Rr]ank-(?:1|5|10|20)|AP(?:50|75)|Dist-[12])"
    r"\s*[)\]]?\s*%?$"
)


def is_metric_header(text: str) -> bool:
    """Does a table header (or row label) name a metric? An arrow is a metric's sign whatever the words are."""
    if re.search(r"[↑↓]", text):
        return True
    if _SHORT_METRIC.search(text) and len(text.split()) <= 4:
        return True  # `SQuAD 2.0 F1`, `MNLI-m (Acc)`: data set and metric in one header
    bare = re.sub(r"[\[(].*?[\])]|±.*$", " ", text).strip()
    if re.search(
        r"\b(?:approach|method|model|kernel|algorithm|network|learning|estimator|baseline)s?$", bare, re.IGNORECASE
    ):
        return False  # `Edit distance approach` is compared, not measured
    spans = find_metric(bare)
    if not spans:
        return False
    named = sum(end - start for start, end, _ in spans)
    return named * 2 >= len(bare)  # `accuracy` in `accuracy-aware sampling` is not what the column measures


def direction_of(metric: str) -> int:
    """+1 when larger values are better, -1 when smaller ones are, 0 when the name does not say."""
    if "↑" in metric or "↓" in metric:
        return 1 if "↑" in metric else -1
    if LOWER.search(metric) or re.search(r"\btime\b", metric, re.IGNORECASE):
        return -1
    return 1 if HIGHER.search(metric) else 0
