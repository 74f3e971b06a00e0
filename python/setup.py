"""The wheel has a library for one platform, and serves every Python 3 there: it is reached by ctypes."""

import os
import platform
import sys

from setuptools import setup
from setuptools.dist import Distribution
from wheel.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    def get_tag(self):
        tag = os.environ.get("COHORT_PLATFORM")
        if tag is None:
            machine = platform.machine()
            tag = f"macosx_11_0_{machine}" if sys.platform == "darwin" else f"linux_{machine}"
        return "py3", "none", tag


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"bdist_wheel": Wheel}, distclass=WithLibrary)
