"""The client for browsers and Node, and the page that uses it.

``client/`` is the npm package ``lanner``, of which ``make web`` builds ``lanner.wasm``; ``page/`` is the page, which
shares its style and its drawings with that of the gateway.
"""
