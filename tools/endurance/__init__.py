"""Trials of what happens to real processes over time and in trouble: `make endurance` runs them.

A module is one trial: its docstring says what it does, and its ``run`` takes a `Trial`, to which it tells what it
counted, and what it checked against which bound. Parties are processes of their own on loopback, `lanner serve` and a
client, as people run them. docs/reliability.md is written from what a run saved, by `endurance.page`.
"""
