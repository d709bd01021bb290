//! Two-party protocols, one file each, beside their costs.
