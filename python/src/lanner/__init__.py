"""Private neural-network inference."""
