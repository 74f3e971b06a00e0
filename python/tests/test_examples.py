"""The examples run, and find the groups."""

import ast
import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"
GROUPS = np.array([(20, 70), (50, 30), (80, 60)])


def near(centers, reach):
    """Whether each group has one of the centres near it."""
    return all(np.min(np.linalg.norm(np.asarray(centers) - g, axis=1)) < reach for g in GROUPS)


@pytest.mark.parametrize("name, reach", [("with_sklearn", 2), ("with_cohort", 2), ("private_with_diffprivlib", 15), ("private_with_cohort", 8)])
def test_programs(name, reach):
    if "diffprivlib" in name and importlib.util.find_spec("diffprivlib") is None:
        pytest.skip("needs diffprivlib, which Debian does not have: pip install diffprivlib")
    out = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert out.returncode == 0, out.stderr
    assert near(json.loads(re.search(r"centres: (.*)", out.stdout)[1]), reach), out.stdout


def test_the_programs_are_alike():
    """Only the import, and the lines of what each has of its own, differ."""
    a, b = ((EXAMPLES / f"{n}.py").read_text().splitlines()[2:] for n in ("with_sklearn", "with_cohort"))
    assert [x for x, y in zip(a, b) if x != y] == ["from sklearn.cluster import KMeans"]


def test_notebook():
    """Every cell runs, in order, as a notebook would run it."""
    book = json.loads((EXAMPLES / "quickstart.ipynb").read_text())
    names, shown = {}, []
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], "the notebook is kept without outputs"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None
        shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else printed.getvalue() or repr(value))
    for estimator, reach in (("plain", 2), ("private", 8), ("federated", 8)):
        assert near(names[estimator].cluster_centers_, reach), estimator
    assert any("<table>" in s and "discrete-gaussian" in s for s in shown)
    assert "is left" in shown[-1]
