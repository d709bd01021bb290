"""How the figures of the documents are measured and written: of a checkout, and no part of the package."""
