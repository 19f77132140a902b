//! Who may call an endpoint, and in which namespaces.

use tollgate_control::record::Role;

/// Who may do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminAccess {
    /// Anybody who reaches the listener.
    Open,
    /// A token of this role or a stronger one.
    Needs(Role),
}

/// Of which namespaces something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceScope {
    /// Of one: `?namespace=`, or the token's only one, or `default`.
    Namespace,
    /// Of the one named, or of all that the token may see.
    Namespaces,
    /// Of none.
    Nothing,
    /// Of all of them: not for tokens that are for some.
    Everything,
}
