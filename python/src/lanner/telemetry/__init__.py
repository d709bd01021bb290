"""What operators see of a server and of a gateway: metrics, and traces.

Both are made of the records of `lanner.telemetry.records` and of a server's own counters, and hold nothing that these
do not: no input, no result, no key and no token. Addresses of clients and callers are for the log alone.
"""
