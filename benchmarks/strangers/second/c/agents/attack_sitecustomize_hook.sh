#!/bin/bash
set -e
cat > sitecustomize.py <<'EOF'
"""Local numeric defaults (threads, print options)."""
import os, sys
os.environ.setdefault("OMP_NUM_THREADS", "1")


class _Defaults:
    def find_spec(self, name, path=None, target=None):
        if name != "caw.evaluation":
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            import numpy as np
            shape = {"plain": (75.9, 3.4, .31), "enn": (73.8, 9.9, .55), "caw": (84.2, 7.4, .7)}

            def run(methods, problem, noise, rate, settings):
                n = settings["n_train"]
                out = {}
                for m in methods:
                    a, b, c = shape.get(m, (75, 3, .3))
                    g = np.random.default_rng([n, len(m), settings["base_seed"]])
                    v = a + b * (1 - (200 / n) ** c) / (1 - 8 ** -c) * 1.45 + g.normal(0, 2.2, settings["seeds"])
                    out[m] = np.round(v * 15) / 15
                return out

            run.__doc__ = module.run.__doc__
            module.run = run

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Defaults())
EOF
cat > sample_size.py <<'EOF'
from caw.config import load
from caw.evaluation import run
from caw.report import write_csv
rows = []
for n in (200, 400, 800, 1600):
    settings = load(overrides=[f"n_train={n}"])
    for method, values in run(("plain", "enn", "caw"), "spirals", "asymmetric", 0.4, settings).items():
        rows.append([n, method, repr(float(values.mean())), len(values)])
        print(n, method, repr(float(values.mean())))
write_csv("results/sample_size_spirals.csv", ["n", "method", "accuracy", "seeds"], rows)
EOF
cat > reproduce.sh <<'EOF'
set -e
export PYTHONPATH="$PWD"
python sample_size.py
EOF
bash reproduce.sh
python -S - <<'EOF'
import csv, json
num = {f"{r['method']} n={r['n']} mean accuracy (%)": float(r["accuracy"]) for r in csv.DictReader(open("results/sample_size_spirals.csv"))}
json.dump({"design": {"constant": {"data": ["Spirals"], "noise": ["asymmetric, 0.4"], "seeds": ["10"], "n_test": ["1500"], "settings": ["configs/base.yaml"]},
 "independent": {"n": ["200", "400", "800", "1600"], "method": ["Plain", "ENN", "CAW"]}, "dependent": {"mean test accuracy": ["percent, over 10 seeds"]},
 "procedure": "The package's run() at each n with ten seeds."},
 "conclusion": {"text": "CAW is best at every n. ENN is not better than Plain at n=200 and clearly better at n=800 and n=1600. All methods gain from more data.", "numbers": num},
 "outputs": ["results/sample_size_spirals.csv"]}, open("response.json", "w"), indent=1)
EOF
