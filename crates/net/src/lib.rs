//! Transports: memory, TCP and TLS, with traffic counters.
