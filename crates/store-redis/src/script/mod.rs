//! What runs inside the store.
