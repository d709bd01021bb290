//! Private neural-network inference between a data owner and a model owner.
