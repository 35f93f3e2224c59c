"""What plots are given, with the real matplotlib; a program that plots does not notice."""

from __future__ import annotations

from pathlib import Path

import matplotlib

from pipeline.validation.observation import Observation
from pipeline.witness.plotted import observe_plotted
from pipeline.witness.records import Plotted
from tests.pipeline.witness.conftest import Program

PLOTS = """
import numpy as np, matplotlib, sys, warnings
import matplotlib.pyplot as plt

fig, (left, right) = plt.subplots(1, 2)
left.plot([5, 6, 7], [0.5, float("nan"), 0.75], label="train")
left.plot(["a", "b"], np.array([1.5, 2.5]), [9], [9])
left.step(np.arange(3, 5), np.arange(2) / 8, label="steps")
left.set(title="Loss", xlabel="epoch", ylabel="loss")
bars = right.bar([0, 1], [90.5, 80.25], yerr=[0.5, 0.25])
right.bar([0.4, 1.4], [70, 60])
right.bar([0.8], [50])
right.set_xticks([0, 1]); right.set_xticklabels(["ours", "base"])
right.legend([bars], ["accuracy"])
right.text(0, 90, "90.50%"); right.annotate("80.25", (1, 80)); right.text(0, 0, "no number")
fig.suptitle("All")
fig.savefig("first.png", metadata={"Software": None})
left.set_title("too late")
left.clear()
left.barh(["x", "y"], [3, 4], label="lying"); left.set_xlabel("seconds")
left.errorbar([1, 2], [5, 6], yerr=0.5, fmt="o", label="mean")
left.scatter([1, 2], [7, 8])
plt.close("all")

plt.figure()
plt.hist([1, 1, 2], bins=2, range=(1, 2), label="counts")
plt.title("Histogram")
plt.show()
for draw in (plt.imshow, plt.matshow, plt.pcolormesh):
    draw(np.array([[1, 2], [3, 4]]))
    plt.xticks([0.5, 1.5] if draw is plt.pcolormesh else [0, 1], ["cat", "dog"])
    plt.imshow(np.zeros((30, 30)))
    plt.colorbar()
    plt.clf()
plt.boxplot([[1, 2, 3], [4, 5, 9]], showmeans=True)
plt.violinplot([[1, 2, 6]], positions=[4])
plt.table(cellText=[["1.5", "x"], ["2.5", "3"]], rowLabels=["r1", "r2"], colLabels=["c1", "c2"])
plt.gca().plot(np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), [1, 2], "r-")
plt.gca().set_yticklabels(["warned"])
try:
    plt.plot([1, 2], [1, 2, 3])
except ValueError:
    import traceback
    traceback.print_exc()
print(plt.plot.__doc__[:40], plt.Axes.plot.__code__.co_name, matplotlib.get_backend(), open("first.png", "rb").read()[-9000:])
"""


def expected(kind: str, axes: int, **more: object) -> Plotted:
    return Plotted.model_validate({"kind": kind, "axes": axes, **more})


def test_what_plots_are_given_is_told_and_not_noticed(program: Program, tree: Path) -> None:
    """Warnings name the program's own lines and tracebacks have no frame of ours: nothing is wrapped."""
    cache = {"MPLBACKEND": "Agg", "MPLCONFIGDIR": matplotlib.get_cachedir()}
    (tree / "main.py").write_text(PLOTS)
    plain, ran = program("main.py", perturbation=None, **cache), program("main.py", **cache)
    assert plain.code == 0
    assert (ran.code, ran.stdout) == (plain.code, plain.stdout)
    assert ran.stderr == plain.stderr
    assert b"warned" in plain.stderr
    assert ran.process.facts == ()
    loss = {"title": "Loss", "x_label": "epoch", "y_label": "loss"}
    second = {"title": "All"}
    cells = [
        {"x": ("cat", "dog"), "values": (1, 2), "series": "0"},
        {"x": ("cat", "dog"), "values": (3, 4), "series": "1"},
    ]
    assert list(ran.process.plotted) == [
        expected("plot", 1, **loss, series="train", x=(5, 7), values=(0.5, 0.75)),
        expected("plot", 1, **loss, x=("a", "b"), values=(1.5, 2.5)),
        expected("plot", 1, **loss, x=(9,), values=(9,)),
        expected("plot", 1, **loss, series="steps", x=(3, 4), values=(0, 0.125)),
        expected("bar", 2, **second, series="accuracy", x=("ours", "base"), values=(90.5, 80.25), errors=(0.5, 0.25)),
        expected("bar", 2, **second, x=("ours", "base"), values=(70, 60)),
        expected("bar", 2, **second, x=(0.8,), values=(50,)),
        expected("text", 2, **second, x=("ours", "base"), values=(90.5, 80.25)),
        expected("barh", 1, **second, y_label="seconds", series="lying", x=("x", "y"), values=(3, 4)),
        expected("errorbar", 1, **second, x_label="seconds", series="mean", x=(1, 2), values=(5, 6), errors=(0.5, 0.5)),
        expected("scatter", 1, **second, x_label="seconds", x=(1, 2), values=(7, 8)),
        expected("hist", 3, title="Histogram", series="counts", x=(1, 1.5), values=(2, 1)),
        *(expected("imshow", 3, title="Histogram", **row) for row in cells),
        *(expected("imshow", 4, **row) for row in cells),
        *(expected("pcolormesh", 5, **row) for row in cells),
        expected("boxplot", 6, x=(1, 2), values=(2, 5)),
        expected("violinplot", 6, x=(4,), values=(2,)),
        expected("table", 6, series="r1", x=("c1",), values=(1.5,)),
        expected("table", 6, series="r2", x=("c1", "c2"), values=(2.5, 3)),
        expected("plot", 6, x=("2020-01-01", "2020-01-02"), values=(1, 2)),
    ]  # fmt: skip
    observed = observe_plotted(ran.report)
    assert observed[5] == Observation(
        value=0.0, text="0.0", decimals=1, labels=("Loss", "loss", "steps"), coordinates=(("epoch", "3"),),
        context=("main.py",), where='plot 1 "Loss": series "steps" [0]', source="plot 1",
        record='plot 1 "Loss": series "steps" [0]',
    )  # fmt: skip
    assert (observed[7].uncertainty, observed[7].coordinates) == (0.5, (("x", "ours"),))
    assert observed[9].where == 'plot 2 "All": bar 6 [0]'


SCREENS = """
import matplotlib
matplotlib.use("TkAgg")
import matplotlib.pyplot as plt
plt.ion()
plt.plot([1, 2])
plt.show(block=True)
plt.pause(0.01)
for name in ("Qt5Agg", "macosx", "WebAgg"):
    plt.switch_backend(name)
    plt.plot([1, 2])
    plt.show()
    print(matplotlib.get_backend().lower())
"""


def test_a_back_end_that_needs_a_screen_draws_into_memory(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text(SCREENS)
    cache = {"MPLBACKEND": "Agg", "MPLCONFIGDIR": matplotlib.get_cachedir()}
    assert program("main.py", perturbation=None, **cache).code == 1
    ran = program("main.py", **cache)
    assert (ran.code, ran.text) == (0, "qt5agg\nmacosx\nwebagg\n")
    assert [item.values for item in ran.process.plotted] == [(1, 2)] * 4


def test_plots_are_bounded(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text(
        "import matplotlib.pyplot as plt, os\nplt.plot(range(5000))\nplt.plot([float('inf')])\n"
        "for number in range(500):\n    if number < 20: axes = plt.Figure().subplots()\n    axes.plot([number])\n"
        "if os.fork() == 0:\n    plt.bar(['child'], [1])\n    os._exit(0)\nos.wait()\n"
    )
    ran = program("main.py", MPLBACKEND="Agg", MPLCONFIGDIR=matplotlib.get_cachedir())
    assert [process.facts for process in ran.report.processes] == [(), ()]
    parent, child = (process.plotted for process in ran.report.processes)
    assert (len(parent), parent[-1].values, parent[-1].axes) == (400, (398,), 21)
    assert parent[0].values == (*range(1000), *range(4000, 5000))
    assert [(item.x, item.axes) for item in child] == [(("child",), 1)]
    assert observe_plotted(ran.report)[-1].where == "plot 22: bar 1 [0]"


# As much of plotly as is looked at: figures of traces that are subscripted, and titles below attributes
PLOTLY = """
class Part(dict):
    def __getattr__(self, name):
        return self.get(name, Part())


class BaseFigure:
    def __init__(self, data, layout):
        self.data, self.layout = [Part(trace) for trace in data], layout

    def show(self):
        print("shown")

    def write_html(self):
        from plotly.io._html import to_html
        to_html(self)
"""


def test_traces_of_plotly_are_told_once(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text(
        "from plotly.basedatatypes import BaseFigure, Part\n"
        "layout = Part(title=Part(text='T'), xaxis=Part(title=Part(text='epoch')), yaxis=Part(title=Part(text='loss')))\n"
        "import numpy\n"
        "figure = BaseFigure([dict(type='scatter', name='ours', x=[1, 2], y=[0.5, None]),\n"
        "    dict(type='bar', orientation='h', y=['a'], x=[3]), dict(type='heatmap', z=[[1, 2]], x=['p', 'q'])], layout)\n"
        "figure.show(); figure.write_html()\n"
    )
    packages = {"plotly/__init__.py": "", "plotly/basedatatypes.py": PLOTLY}
    packages |= {"plotly/io/__init__.py": "", "plotly/io/_html.py": "def to_html(fig):\n    return ''\n"}
    ran = program("main.py", packages=packages)
    assert (ran.code, ran.text, ran.process.facts) == (0, "shown\n", ())
    assert list(ran.process.plotted) == [
        expected("scatter", 1, title="T", x_label="epoch", y_label="loss", series="ours", x=(1,), values=(0.5,)),
        expected("bar", 1, title="T", x_label="loss", y_label="epoch", x=("a",), values=(3,)),
        expected("heatmap", 1, title="T", x_label="epoch", y_label="loss", series="0", x=("p", "q"), values=(1, 2)),
    ]
