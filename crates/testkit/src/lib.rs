//! Development helpers: seeded generators and statistics.
