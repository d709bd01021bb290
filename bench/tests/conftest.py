"""What tests of the package have, too."""

from helpers.times import pytest_runtest_call as pytest_runtest_call
