#!/usr/bin/env bash
# Tests the Python package with the library in bin, then the wheel in a fresh environment. Needs Debian's python3-sklearn,
# python3-pandas, python3-pytest, python3-build, python3-setuptools, python3-wheel and python3-venv.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-/usr/bin/python3}
export PYTHONDONTWRITEBYTECODE=1
export COHORT_LIBRARY=$PWD/bin/libcohort.so
"$PYTHON" -m pytest -q -p no:cacheprovider python/tests

echo "== the wheel in a fresh environment"
unset COHORT_LIBRARY
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$PYTHON" -m venv --system-site-packages "$work/venv"
"$work/venv/bin/python" -m pip install -q --no-index --disable-pip-version-check bin/cohort_kmeans-*.whl
cp -r python/tests "$work/tests"
cd "$work"
COHORT_INSTALLED=1 "$work/venv/bin/python" -m pytest -q -p no:cacheprovider tests/test_wheel.py tests/test_private.py
