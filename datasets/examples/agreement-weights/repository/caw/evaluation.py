"""One trial: draw data, corrupt labels, fit a method, measure test accuracy on clean labels."""

import numpy as np

from caw import agreement, baselines
from caw.data import corrupt, sample
from caw.features import RandomFourierFeatures

METHODS = ("plain", "huber", "trim", "enn", "caw", "clean")


def draw(problem, noise, rate, seed, settings):
    """Features and labels of one trial. The same seed gives the same data to every method."""
    rng = np.random.default_rng([settings["base_seed"], seed])
    x_train, clean = sample(problem, settings["n_train"], rng, settings["nuisance"])
    x_test, y_test = sample(problem, settings["n_test"], rng, settings["nuisance"])
    noisy = corrupt(clean, rate, noise, rng)
    lift = RandomFourierFeatures(x_train.shape[1], settings["features"], settings["bandwidth"], rng)
    return {
        "points": x_train,
        "train": lift(x_train),
        "noisy": noisy,
        "clean": clean,
        "test": lift(x_test),
        "y_test": y_test,
        "folds_rng": np.random.default_rng([settings["base_seed"], seed, 1]),
    }


def fit(method, trial, settings, **options):
    """Coefficients of `method` on a trial; `options` are passed on to CAW."""
    features, labels = trial["train"], trial["noisy"]
    if method == "plain":
        return baselines.fit_plain(features, labels, settings)
    if method == "clean":
        return baselines.fit_plain(features, trial["clean"], settings)
    if method == "huber":
        return baselines.fit_huber(features, labels, settings)
    if method == "trim":
        return baselines.fit_trimmed(features, labels, settings)
    if method == "enn":
        return baselines.fit_filtered(features, labels, settings, trial["points"])
    if method == "caw":
        return agreement.fit_caw(features, labels, settings, trial["folds_rng"], **options)[0]
    raise ValueError(f"unknown method {method!r}; known: {', '.join(METHODS)}")


def accuracy(trial, beta):
    """Share of test points on the right side, in percent."""
    return 100.0 * float(np.mean(np.sign(trial["test"] @ beta) == trial["y_test"]))


def run(methods, problem, noise, rate, settings):
    """Accuracies over all seeds, one array a method. All methods see the same trials."""
    values = {method: [] for method in methods}
    for seed in range(settings["seeds"]):
        trial = draw(problem, noise, rate, seed, settings)
        for method in methods:
            values[method].append(accuracy(trial, fit(method, trial, settings)))
    return {method: np.array(found) for method, found in values.items()}


def run_variants(variants, problem, noise, rate, settings):
    """As `run`, for variants of CAW: a name and the options of `fit_caw` that it changes."""
    values = {name: [] for name in variants}
    for seed in range(settings["seeds"]):
        for name, options in variants.items():
            trial = draw(problem, noise, rate, seed, settings)
            values[name].append(accuracy(trial, fit("caw", trial, settings, **options)))
    return {name: np.array(found) for name, found in values.items()}
