"""One repetition: data, model and out-of-fold residuals that all methods share."""

import json
from pathlib import Path

import numpy as np
import yaml

from nsc.data import sample
from nsc.krr import KernelRidge, out_of_fold_residuals

DEFAULTS = Path(__file__).resolve().parent.parent / "configs" / "defaults.yaml"


def load(path):
    """Defaults, updated with the settings of an experiment."""
    settings = yaml.safe_load(DEFAULTS.read_text())
    settings.update(yaml.safe_load(Path(path).read_text()) or {})
    return settings


def prepare(problem, repetition, settings, tilt=0.0):
    """Training, calibration and test data with the fitted model."""
    rng = np.random.default_rng([settings["seed"], repetition])
    x, y, _ = sample(problem, settings["n_train"], rng)
    x_cal, y_cal, _ = sample(problem, settings["n_cal"], rng)
    x_test, y_test, sigma = sample(problem, settings["n_test"], rng, tilt)

    def make_model():
        return KernelRidge(settings["bandwidth"], settings["ridge"])

    model = make_model().fit(x, y)
    return {
        "x": x,
        "residuals": out_of_fold_residuals(x, y, make_model, settings["folds"], rng),
        "fitted_residuals": y - model.predict(x),
        "x_cal": x_cal,
        "y_cal": y_cal,
        "x_test": x_test,
        "y_test": y_test,
        "sigma": sigma,
        "model": model,
        "centre": model.predict(x_test),
    }


def save(path, records):
    """Write records as JSON, creating the directory."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(records, indent=1) + "\n")
    print(f"saved {path}")
